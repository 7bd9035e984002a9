/** Log lines of the containers of one host, from the engine into the stream and out by the API. */
import { cacheFolder } from '../../dev/paths.ts';
import { startStack, type Stack } from '../../dev/stack/stack.ts';
import { createLog } from '../../lib/log.ts';
import { connectNats, credentialsFile } from '../../lib/nats/connection.ts';
import { streams } from '../../schemas/records/buckets.ts';
import { limits } from '../../schemas/limits.ts';
import { ownerOf, referenceOf } from '../docker/engine-alone.ts';
import { dockerEngine } from '../docker/peer.ts';
import type { Section, Table } from '../section.ts';
import { figure } from '../statistics.ts';
import { lineBytes } from './line.ts';
import { measure, type Measured } from './measure.ts';
import { declared, made, pushPrinter, type Sources } from './sources.ts';
import { childRunning } from '../usage.ts';

const containers = 10;
const linesPerSecond = 50_000;
const seconds = { full: 15, short: 2 } as const;

interface Line {
  readonly what: string;
  readonly measured: Measured;
  /** Measured until the stream holds the last line. */
  readonly intoStreamPerSecond?: number;
}

/** The time at which JetStream stored the newest block of lines. */
async function newestStoredMs({ nats }: Stack): Promise<number> {
  const options = { servers: [nats.url], name: 'bench', authenticator: credentialsFile(nats.credsFile) };
  const nc = await connectNats(options, createLog('bench', 'warn'));
  try {
    const answer = await nc.request(`$JS.API.STREAM.INFO.${streams.logs.name}`, '', { timeout: limits.streamReadMs });
    return Date.parse(answer.json<{ readonly state: { readonly last_ts: string } }>().state.last_ts);
  } finally {
    await nc.close();
  }
}

function linesTable(lines: readonly Line[], engineVersion: string): Table {
  return {
    title: `Log lines of ${containers} containers on one host`,
    columns: ['', 'written/s', 'in the stream/s', 'read/s', 'lost', 'duplicated', 'p50 ms', 'p99 ms'],
    rows: lines.map(({ what, measured: { writtenPerSecond, read, readPerSecond }, intoStreamPerSecond }) => [
      what,
      figure(writtenPerSecond),
      intoStreamPerSecond === undefined ? '–' : figure(intoStreamPerSecond),
      figure(readPerSecond),
      String(read.lost),
      String(read.duplicated),
      figure(read.p50Ms),
      figure(read.p99Ms),
    ]),
    remarks: [
      `Docker ${engineVersion}, json-file; lines of ${lineBytes} bytes with their newline, each with its number and the time it was written; ${lines[0]?.measured.lines} lines in each row. Rates count up to the last line.`,
      'The engine alone: the same process reads `GET /containers/:id/logs?follow=1`.',
      `For each container a host keeps the newest ${limits.engineLogFiles} files of ${limits.engineLogFileSize}, and the stream the newest ${limits.logBlocksPerContainer} blocks (of at most ${limits.logBlockBytes / 1024} KiB). A reader that falls behind by more loses lines.`,
      'When Docker rotates a log, it sometimes sends lines to a follower twice. The agent reads the files instead (ADR 30).',
      'Writer and reader are two processes on the same machine.',
    ],
  };
}

function costTable(lines: readonly Line[]): Table {
  return {
    title: 'CPU and memory per part',
    columns: ['', 'CPU µs/line', 'MiB'],
    rows: lines.flatMap(({ what, measured: { lines, parts } }) =>
      parts.map(({ name, cpuSeconds, memBytes }) => [
        `${what}: ${name}`,
        figure((cpuSeconds * 1e6) / lines),
        figure(memBytes / 1024 ** 2),
      ]),
    ),
    remarks: ['At 50,000 lines/s, 20 µs per line is one core.'],
  };
}

async function withSources<T>(sources: Sources, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } finally {
    await sources.remove();
  }
}

async function measureStack(stack: Stack, folder: string, seconds: number): Promise<Line[]> {
  const { engine, nats, api, tokens } = stack;
  if (engine.origin !== 'private')
    throw new Error(
      'this section needs its own Docker engine: unset DOCKER_HOST, stop the other engine, or run as root',
    );
  const direct = dockerEngine(engine.host);
  const printer = await pushPrinter(stack);
  const dockerd = ['dockerd', engine.server().pid] as const;
  const load = { linesPerSecond, seconds };

  const ours = await declared(stack, printer, containers);
  const through = await withSources(ours, async (): Promise<Line> => {
    const from = { kind: 'api', baseUrl: api.baseUrl, token: tokens.tenants.other.token } as const;
    const programs = ['host-agent', 'actors', 'gateway'].map(
      (name) => [name, childRunning(`programs/${name}.js`)] as const,
    );
    const pids = new Map([dockerd, ['nats-server', nats.server().pid], ...programs]);
    const measured = await measure({ ...load, sources: ours.all, from, pids });
    const intoStreamPerSecond = (measured.lines * 1000) / ((await newestStoredMs(stack)) - measured.writtenFromMs);
    return { what: 'Longshore', measured, intoStreamPerSecond };
  });

  await direct.pull(referenceOf(printer));
  const theirs = await made(direct, ownerOf(folder), printer, containers);
  const alone = await withSources(theirs, async (): Promise<Line> => {
    const from = { kind: 'engine', socketPath: engine.socketPath } as const;
    const measured = await measure({ ...load, sources: theirs.all, from, pids: new Map([dockerd]) });
    return { what: 'the engine alone', measured };
  });
  return [alone, through];
}

export const logs: Section = {
  name: 'logs',
  run: async ({ env, folder, signal, isShort }) => {
    const stack = await startStack({ env, stateFolder: folder, cacheFolder: cacheFolder(env), signal });
    try {
      const lines = await measureStack(stack, folder, isShort ? seconds.short : seconds.full);
      return { tables: [linesTable(lines, stack.engine.version), costTable(lines)] };
    } finally {
      await stack.stop();
    }
  },
};
