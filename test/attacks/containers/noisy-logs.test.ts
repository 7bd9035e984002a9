/**
 * A tenant's three containers write control characters as fast as they can; each byte becomes six
 * when it is sent. Another tenant's lines must arrive as they are written, and stay readable: one
 * tenant must fill neither the host nor the stream.
 */
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ServerResponse } from 'node:http';
import { jetstreamManager } from '@nats-io/jetstream';
import t, { type Test } from 'tap';
import { createBudgets } from '../../../actors/retention/budgets.ts';
import { serveReads } from '../../../actors/endpoints/reads.ts';
import { LogReader } from '../../../gateway/streams/logs.ts';
import { createEngine } from '../../../host-agent/docker/engine.ts';
import { createTransport, parseEngineAddress } from '../../../host-agent/docker/transport.ts';
import { createFaults } from '../../../host-agent/faults.ts';
import { createCollector } from '../../../host-agent/logs/collector.ts';
import { loadCursors } from '../../../host-agent/logs/cursors.ts';
import { createPasses } from '../../../host-agent/logs/passes.ts';
import { createPublish } from '../../../host-agent/logs/publish.ts';
import { createLogTurns, type LogRates } from '../../../host-agent/logs/rates.ts';
import { openSpool } from '../../../host-agent/logs/spool.ts';
import { createStateDisk } from '../../../host-agent/disk/state-disk.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { timestamp } from '../../../lib/time/timestamp.ts';
import { decoder } from '../../../lib/decode.ts';
import { createSlices } from '../../../lib/time/slices.ts';
import type { ContainerId, HostKey, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { LogBlock, type LogEntry } from '../../../schemas/api/log.ts';
import { quietLog } from '../../actors/support.ts';
import { startCluster, type Ground } from '../../integration/actors/support.ts';
import { simulatedEngine } from '../../host-agent/support/simulated-engine.ts';
import type { SimulatedEngine } from '../../support/engine/server.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';
import type { LogSource } from '../../../host-agent/logs/source.ts';

const decodeBlock = decoder(LogBlock);
const host = 'h1' as HostKey;
const KiB = 1024;
const streamBytes = 4096 * KiB;
const rates: LogRates = {
  containerBytes: 256 * KiB,
  tenantBytes: 512 * KiB,
  hostBytes: 1024 * KiB,
  burstMs: 500,
};
/**
 * A step of virtual time. All containers together may send far less in it than the quarter of the
 * stream that the budgets leave free.
 */
const stepMs = 250;
const idOf = (number: number) => `0190a000-0000-7000-8000-00000000000${number}` as ContainerId;
const noisy = [1, 2, 3].map((number): LogSource => ({ tenant: 'noisy' as TenantId, id: idOf(number) }));
const quiet: LogSource = { tenant: 'quiet' as TenantId, id: idOf(9) };

const frame = (line: string, micros: number): Buffer => {
  const ts = `${timestamp(Math.floor(micros / 1000)).slice(0, -1)}${String(micros % 1000).padStart(3, '0')}000Z`;
  const payload = Buffer.from(`${ts} ${line}\n`);
  const header = Buffer.alloc(8);
  header[0] = 1;
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, payload]);
};

/**
 * The engine's side of the logs: the noisy containers give as much as the agent reads, the quiet
 * one what the test writes.
 */
function writeLogs(engine: SimulatedEngine) {
  const quietLines: Buffer[] = [];
  const listeners = new Set<ServerResponse>();
  const loud = '\u0001'.repeat(1000);
  let micros = Date.now() * 1000;

  /**
   * A followed read never ends. Any other read gives a full file; by the next read the engine has
   * rotated all files.
   */
  function* noise(isFollowing: boolean): Generator<Buffer> {
    micros += 10_000_000;
    for (let count = 0; isFollowing || count < 450; count++) yield frame(loud, (micros += 10));
  }

  engine.intercept(({ path, query }, response) => {
    if (!path.endsWith('/logs')) return undefined;
    const isFollowing = query.get('follow') === '1';
    response.writeHead(200);
    if (!path.includes(quiet.id)) {
      const through = new PassThrough();
      pipeline(noise(isFollowing), through, response).catch(() => undefined);
    } else {
      response.write(Buffer.concat(quietLines));
      listeners.add(response);
      response.once('close', () => listeners.delete(response));
    }
    return 'answered';
  });
  return {
    isFollowed: () => listeners.size > 0,
    speak: (line: string): void => {
      const bytes = frame(line, (micros += 10));
      quietLines.push(bytes);
      for (const listener of listeners) listener.write(bytes);
    },
  };
}

async function startHost(t: Test, { nc }: Ground, engine: SimulatedEngine, given: LogRates, monotonicMs: () => number) {
  const address = parseEngineAddress(engine.host);
  if (address === undefined) throw new Error(engine.host);
  const stateDir = temporaryFolder(t);
  const metrics = {
    logLines: () => undefined,
    logBlocks: () => undefined,
    logHeldUp: () => undefined,
    logGaps: () => undefined,
    logDropped: () => undefined,
    logAbandoned: () => undefined,
    logDamaged: () => undefined,
    logFollowers: () => undefined,
  };
  const clock = { ...systemClock, monotonicMs };
  const backoff = { minMs: 10, maxMs: 100 };
  const disk = createStateDisk(createFaults(quietLog), backoff, quietLog);
  const request = async (subject: string, payload: string, timeout: number) =>
    (await nc.request(subject, payload, { timeout })).data;
  const engineClient = createEngine(createTransport(address, () => undefined));
  const logs = createCollector({
    runPass: createPasses({ engine: engineClient, logPath: () => undefined, clock, metrics, log: quietLog }),
    cursors: await loadCursors(stateDir, disk, quietLog),
    spool: await openSpool(
      stateDir,
      () => Date.now(),
      () => undefined,
      quietLog,
    ),
    publish: createPublish({
      ...{ host, request, backoff, clock, metrics },
      turns: createLogTurns(given, clock),
      log: quietLog,
    }),
    ...{ backoff, clock, metrics },
    log: quietLog,
  });
  t.teardown(() => logs.stop());
  return logs;
}

/**
 * Steps until the noisy tenant has written so many times the size of the stream; the quiet one
 * writes a line in each step.
 */
async function run(t: Test, given: LogRates, times: number) {
  const ground = await startCluster(t, 1);
  const { nc } = ground;
  serveReads(nc, quietLog);
  const manager = await jetstreamManager(nc);
  await manager.streams.update('LOGS', { max_bytes: streamBytes });
  const engine = await simulatedEngine(t);
  const log = writeLogs(engine);
  let nowMs = 0;
  const logs = await startHost(t, ground, engine, given, () => nowMs);
  const budgets = createBudgets({
    nc,
    owned: () => [0],
    slices: createSlices(systemClock),
    log: quietLog,
    onTrimmed: () => undefined,
    random: Math.random,
  });
  t.teardown(() => budgets.stop());
  for (const source of [quiet, ...noisy]) logs.follow(source, source.id, 'run');
  await until('a follower of the quiet container', () => log.isFollowed());

  const noise: LogEntry[] = [];
  let noiseBytes = 0;
  let largestBytes = 0;
  nc.subscribe('host.h1.log.noisy.*', {
    callback: (_, { data }) => {
      noiseBytes += data.length;
      largestBytes = Math.max(largestBytes, data.length);
      noise.push(...decodeBlock(data).lines);
    },
  });
  const spoken: string[] = [];
  while (noiseBytes < times * streamBytes) {
    spoken.push(`line ${spoken.length}`);
    log.speak(spoken.at(-1) ?? '');
    nowMs += stepMs;
    await budgets.look();
  }
  log.speak('the last');
  spoken.push('the last');
  const reader = new LogReader(Promise.resolve(nc), systemClock, () => t.fail('a block that can’t be read'));
  const read = await until('the last line of the quiet container', async () => {
    nowMs += stepMs;
    const { lines } = await reader.newest(quiet.tenant, quiet.id, [host], limits.logsMax);
    const entries = lines.map(({ json }) => JSON.parse(json) as LogEntry);
    return entries.at(-1)?.line === 'the last' ? entries : undefined;
  });
  return { spoken, read, noise, largestBytes };
}

t.test('without rates, the noisy tenant pushes the other’s lines out of the stream', async (t) => {
  const { spoken, read } = await run(t, { ...rates, containerBytes: 0, tenantBytes: 0, hostBytes: 0 }, 8);
  t.ok(read.length < spoken.length, `${read.length} of ${spoken.length} lines are left`);
});

t.test('with rates, the other tenant reads every line, and the noisy one reads what it lost', async (t) => {
  const { spoken, read, noise, largestBytes } = await run(t, rates, 2);
  t.same(
    read.map(({ line }) => line),
    spoken.slice(-limits.logsMax),
  );
  t.ok(largestBytes <= limits.logBlockBytes, `blocks of ${largestBytes} bytes`);
  t.match(
    noise.find(({ stream }) => stream === 'stderr')?.line ?? '',
    /^\[longshore\] lines written between .* were lost: more was logged than its host may send$/,
  );
});
