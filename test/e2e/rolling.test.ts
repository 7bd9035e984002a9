/**
 * All actors and all gateways are restarted, one after the other, under load: no request fails, and
 * nothing is done twice. What a proxy in front does is done here: only gateways whose `/readyz` is
 * 200 are asked.
 */
import { join } from 'node:path';
import t from 'tap';
import { startNats } from '../../dev/servers/nats.ts';
import { sleep } from '../../lib/backoff.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { temporaryFolder } from '../support/folder.ts';
import { clientFor, eventually, startPrograms, type Client, type Running } from './rig.ts';

/** Of the checks of a proxy; the gateways' delay is longer (docs/deploy.md). */
const checkMs = 100;
/** Within it the checks have to notice, on a starved machine too. */
const shutdownDelayMs = 10_000;

interface Member {
  readonly baseUrl: string;
  readonly client: Client;
  isReady: boolean;
}

async function isReady(baseUrl: string): Promise<boolean> {
  try {
    return (await fetch(`${baseUrl}/readyz`, { signal: AbortSignal.timeout(10_000) })).ok;
  } catch {
    return false;
  }
}

async function check(members: readonly Member[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await Promise.all(members.map(async (member) => (member.isReady = await isReady(member.baseUrl))));
    await sleep(checkMs, signal);
  }
}

interface Done {
  requests: number;
  slowestMs: number;
  readonly failures: string[];
}

/**
 * One request at a time: a container is created, read, stopped, started, listed, and every other
 * one deleted.
 */
async function work(
  members: readonly Member[],
  name: string,
  signal: AbortSignal,
  done: Done,
): Promise<Set<ContainerId>> {
  const kept = new Set<ContainerId>();
  let turn = 0;
  const ask = async <T>(
    what: string,
    wanted: number,
    call: (client: Client) => Promise<{ status: number; text: string; body: T }>,
  ): Promise<T> => {
    const ready = members.filter((member) => member.isReady);
    const member = ready[turn++ % ready.length];
    if (member === undefined) throw new Error('no gateway is ready');
    const startMs = performance.now();
    const { status, text, body } = await call(member.client);
    done.requests++;
    done.slowestMs = Math.max(done.slowestMs, performance.now() - startMs);
    if (status !== wanted) done.failures.push(`${what}: ${status} ${text}`);
    return body;
  };
  for (let round = 0; !signal.aborted; round++) {
    const body = {
      name: `${name}-${round}`,
      registry: 'registry.test',
      repository: 'demo',
      cpu_limit: '0.1',
      mem_limit: '16m',
    };
    const { data } = await ask('create', 201, async (client) => client.create(body));
    // A refusal has no data; the failure is reported at the end.
    if (done.failures.length > 0) break;
    kept.add(data.id);
    await ask('stop', 200, async (client) => client.stop(data));
    await ask('start', 200, async (client) => client.start(data));
    const seen = await ask('status', 200, async (client) => client.status(data));
    if (seen.data.generation !== 3) done.failures.push(`generation ${seen.data.generation} after two changes`);
    const listed = await ask('list', 200, async (client) => client.list());
    const ids = new Set(listed.data.map(({ id }) => id));
    for (const id of kept) if (!ids.has(id)) done.failures.push(`a list lacks ${id}`);
    if (kept.size > 10 || round % 2 === 1) {
      await ask('delete', 202, async (client) => client.remove(data));
      kept.delete(data.id);
      await ask('read of what is deleted', 404, async (client) => client.get(data));
    }
    await sleep(5);
  }
  return kept;
}

t.test('a rolling restart under load', { timeout: 300_000 }, async (t) => {
  const folder = temporaryFolder(t, 'longshore-rolling-');
  const nats = await startNats({ dir: join(folder, 'nats') });
  t.teardown(() => nats.stop());
  const settings = { actors: {}, gateway: { SHUTDOWN_DELAY_MS: String(shutdownDelayMs) } };
  const access = { ...nats, urls: [nats.url] };
  const { issuer, actors, gateways } = await startPrograms(t, folder, access, settings, { actors: 3, gateways: 2 });
  const tenants = ['roll-a', 'roll-b', 'roll-c', 'roll-d'];
  const ending = new AbortController();
  const done: Done = { requests: 0, slowestMs: 0, failures: [] };
  const [{ baseUrl: firstUrl = '' } = {}] = gateways;
  const operator = await clientFor(firstUrl, issuer, 'ops', 'operator');
  for (const tenant of tenants) {
    // On a fast machine they delete more than the default allows in an hour.
    const { status } = await operator.call('PUT', `/api/v2/operator/tenants/${tenant}`, {
      caps: { deletes_per_hour: null },
    });
    t.equal(status, 200);
  }
  const pools = await Promise.all(
    tenants.map(async (tenant) =>
      Promise.all(
        gateways.map(async ({ baseUrl }) => ({
          baseUrl,
          client: await clientFor(baseUrl, issuer, tenant),
          isReady: true,
        })),
      ),
    ),
  );
  const checking = Promise.all(pools.map(async (pool) => check(pool, ending.signal)));
  const working = Promise.all(pools.map(async (pool, index) => work(pool, `w${index}`, ending.signal, done)));

  const restart = async (program: Running): Promise<void> => {
    await program.stop();
    t.same(program.server().exit(), { kind: 'code', code: 0 }, 'it ends in order');
    await program.start();
    await eventually(
      'every check finds every gateway ready',
      async () => Promise.resolve(pools.flat()),
      (members) => members.every((member) => member.isReady),
    );
  };
  for (const { program } of actors) await restart(program);
  for (const { program } of gateways) await restart(program);
  ending.abort();
  await checking;
  const kept = await working;

  t.comment(`${done.requests} requests, the slowest ${Math.round(done.slowestMs)} ms`);
  t.same(done.failures, []);
  for (const [index, pool] of pools.entries()) {
    const [member] = pool;
    if (member === undefined) return t.fail();
    const { body } = await eventually(
      'the list',
      async () => member.client.list(),
      ({ status }) => status === 200,
    );
    t.same(
      body.data.map(({ id }) => id).sort(),
      [...(kept[index] ?? [])].sort(),
      'what was acknowledged, and nothing else',
    );
  }
});
