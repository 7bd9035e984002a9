/**
 * All actors and gateways restart one after another under load: no request fails, and no operation
 * is executed twice. Like a proxy, the clients use only gateways whose `/readyz` answers 200.
 */
import { join } from 'node:path';
import t from 'tap';
import { startNats } from '../../../dev/servers/nats.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { clientFor } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { startPrograms, type Running } from '../support/programs.ts';
import { check, shutdownDelayMs, work, type Seen } from '../support/rolling-load.ts';

t.test('a rolling restart fails no request', { timeout: 300_000 }, async (t) => {
  const folder = temporaryFolder(t, 'longshore-rolling-');
  const nats = await startNats({ dir: join(folder, 'nats') });
  t.teardown(() => nats.stop());
  const settings = { actors: {}, gateway: { SHUTDOWN_DELAY: `${shutdownDelayMs}ms` } };
  const access = { ...nats, urls: [nats.url] };
  const { issuer, actors, gateways } = await startPrograms(t, folder, access, settings, { actors: 3, gateways: 2 });
  const tenants = ['roll-a', 'roll-b', 'roll-c', 'roll-d'];
  const ending = new AbortController();
  const body = { registry: 'registry.test', repository: 'demo', cpu_limit: '0.1', mem_limit: '16m' };
  const load = { body, pauseMs: 5, hasHosts: false, signal: ending.signal };
  const seen: Seen = { requests: 0, slowestMs: 0, failures: [] };
  const [{ baseUrl: firstUrl = '' } = {}] = gateways;
  const operator = await clientFor(firstUrl, issuer, 'ops', 'operator');
  for (const tenant of tenants) {
    // On a fast machine a client exceeds the default of deletes per hour.
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
  const working = Promise.all(pools.map(async (pool, index) => work(pool, { ...load, name: `w${index}` }, seen)));

  const restart = async (program: Running): Promise<void> => {
    await program.stop();
    t.same(program.server().exit(), { kind: 'code', code: 0 }, 'it exits with code 0');
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

  t.comment(`${seen.requests} requests, the slowest ${Math.round(seen.slowestMs)} ms`);
  t.same(seen.failures, []);
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
      'the list holds exactly the acknowledged containers',
    );
  }
});
