/**
 * The rule of docs/upgrades.md: an upgrade from the last release and back, one program at a time,
 * while clients work; one actors process is killed. The programs of the last release are its own
 * compiled code; NATS and Redis are real; the engine is simulated, and counts what runs.
 */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startNats } from '../../dev/servers/nats.ts';
import { startRedis } from '../../dev/servers/redis.ts';
import type { Container } from '../../schemas/api/container.ts';
import type { Event } from '../../schemas/api/event.ts';
import { encodeAsks } from '../../schemas/wire/codec.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import { protocolVersion } from '../../schemas/wire/version.ts';
import { createRandom } from '../actors/support/random.ts';
import { anyAnswer, clientFor } from '../e2e/support/client.ts';
import { eventually } from '../e2e/support/eventually.ts';
import { hostKey, prepareHosts } from '../e2e/support/hosts.ts';
import { connectTo, startPrograms, thisRelease } from '../e2e/support/programs.ts';
import { check, work, type Member, type Seen } from '../e2e/support/rolling-load.ts';
import { startTroubledEngine } from '../faults/engine/engine.ts';
import { startOtlpReceiver } from '../support/otlp.ts';
import { temporaryFolder } from '../support/folder.ts';
import { unpackLastRelease } from './last-release.ts';

const tenants = ['up-a', 'up-b', 'up-c'];
const body = { registry: 'registry.test', repository: 'demo', cpu_limit: '0.1', mem_limit: '16m' };

/** Starts a cluster of the last release on real servers and a simulated engine. */
async function startLastRelease(t: Test, compiled: string, traced: Record<string, string>) {
  const folder = temporaryFolder(t, 'longshore-upgrade-');
  const nats = await startNats({ dir: join(folder, 'nats') });
  t.teardown(() => nats.stop());
  const redis = await startRedis({ folder: join(folder, 'redis') });
  t.teardown(() => redis.stop());
  const engine = await startTroubledEngine(join(folder, 'engine.sock'), 'nobody', createRandom(1));
  t.teardown(() => engine.close());
  const access = { ...nats, urls: [nats.url] };
  const gateway = { ...redis.settings, ...traced, SHUTDOWN_DELAY: '3s' };
  const copies = { actors: 2, gateways: 2 };
  const { issuer, actors, gateways } = await startPrograms(
    t,
    folder,
    access,
    { actors: traced, gateway },
    copies,
    compiled,
  );
  const baseUrl = gateways[0]!.baseUrl;
  const settings = { ...traced, REGISTRIES_ALLOWED: 'registry.test' };
  const options = { baseUrl, issuer, nats: access, dockerHost: engine.host, settings, compiled };
  const hosts = await prepareHosts(t, folder, options);
  const agent = await hosts.startAgent(hostKey);
  /** One client of the tenant for each gateway. */
  const clientsOf = async (tenant: string): Promise<Member[]> =>
    Promise.all(
      gateways.map(async (gateway) => ({
        baseUrl: gateway.baseUrl,
        client: await clientFor(gateway.baseUrl, issuer, tenant, undefined, anyAnswer),
        isReady: true,
      })),
    );
  const nc = await connectTo(access);
  t.teardown(() => nc.close());
  /** The protocol of the actors process that owns partition 0, from its answer. */
  const protocolOfOwner = async (): Promise<number> => {
    const ask = JSON.stringify({ type: 'host.list', partition: 0, limit: 1, after: '', rid: 'r', budgetMs: 30_000 });
    const answer = await nc.request(subjects.partition(0), encodeAsks([ask]), { timeout: 30_000 });
    return Number.parseInt(answer.string(), 10);
  };
  return {
    engine,
    view: hosts.engine,
    protocolOfOwner,
    actors,
    others: [...gateways, agent],
    operator: await clientFor(baseUrl, issuer, 'ops', 'operator', anyAnswer),
    clientsOf,
  };
}

/** Sends one create to both gateways, and waits until the container runs. */
async function createWitness(t: Test, [one, other]: readonly Member[], name: string): Promise<Container> {
  const create = async ({ client }: Member): Promise<Container> => {
    const { status, text, body: created } = await client.create({ ...body, name }, { 'idempotency-key': name });
    if (status !== 201) throw new Error(`create of ${name}: ${status} ${text}`);
    return created.data;
  };
  const [first, second] = await Promise.all([create(one!), create(other!)]);
  t.equal(second.id, first.id, `${name}: both gateways create one container`);
  const { status, text } = await one!.client.wait(first, 'running', 60);
  if (status !== 200) throw new Error(`${name} does not run: ${status} ${text}`);
  return first;
}

t.test('an upgrade from the last release and back fails no request', { timeout: 600_000 }, async (t) => {
  const lastRelease = await unpackLastRelease();
  const receiver = await startOtlpReceiver(t);
  const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  const stack = await startLastRelease(t, lastRelease, traced);
  const { engine, view, protocolOfOwner, actors, others, operator, clientsOf } = stack;
  for (const tenant of tenants) {
    // A container deleted while the agent restarts counts against the cap until the agent is back.
    const caps = { deletes_per_hour: null, containers: 1000 };
    await operator.call('PUT', `/api/v2/operator/tenants/${tenant}`, { caps });
  }
  const pools = await Promise.all(tenants.map(clientsOf));
  const witnesses = await clientsOf('witness');
  const create = async (name: string): Promise<Container> => createWitness(t, witnesses, name);
  const old = [await create('old-0'), await create('old-1'), await create('old-2')];
  const startsOf = async (): Promise<object[]> =>
    Promise.all(
      old.map(async ({ id }) => {
        const { Id, State } = await view.only(id);
        return { id, Id, started: State.StartedAt };
      }),
    );
  const before = await startsOf();
  const witness = witnesses[0]!.client;
  const label = (given: object) => witness.call<unknown>('PUT', `/api/v2/compute/${old[0]!.id}/labels`, given);

  const ending = new AbortController();
  const load = { body, pauseMs: 250, hasHosts: true, signal: ending.signal };
  const seen: Seen = { requests: 0, slowestMs: 0, failures: [] };
  const checking = Promise.all(pools.map(async (pool) => check(pool, ending.signal)));
  const working = Promise.all(pools.map(async (pool, index) => work(pool, { ...load, name: `w${index}` }, seen)));

  // Each pair of programs meets in both combinations: during the upgrade new actors serve the last
  // release's gateways and agent; on the way back the last release's actors serve the new ones.
  for (const [compiled, name, protocol] of [
    [thisRelease, 'new', protocolVersion],
    [lastRelease, 'last', protocolVersion - 1],
  ] as const) {
    const [first, second] = actors;
    // The journal of a process that is killed is read by one of the other release.
    await second!.program.kill9();
    await second!.program.start(compiled);
    for (const [index, { program }] of [first!, ...others].entries()) {
      const { name: what } = program.server();
      await program.stop();
      t.same(program.server().exit(), { kind: 'code', code: 0 }, `${what} exits with code 0`);
      await program.start(compiled);
      await eventually(
        'every check finds every gateway ready',
        async () => Promise.resolve(pools.flat()),
        (members) => members.every((member) => member.isReady),
      );
      await create(`${name}-${index}`);
    }
    t.equal(await protocolOfOwner(), protocol, `the ${name} release runs`);
    if (name === 'new') t.match(await label({ team: 'a' }), { status: 200 });
  }
  const { body: told } = await witness.call<{ data: Event[] }>('GET', `/api/v2/compute/${old[0]!.id}/events`);
  t.match(told.data.at(-1), { type: 'labels_changed' }, 'the last release reads its event');
  ending.abort();
  await checking;
  const kept = await working;

  t.comment(`${seen.requests} requests, the slowest ${Math.round(seen.slowestMs)} ms`);
  t.ok(seen.requests > 100, 'the load made requests');
  t.same(seen.failures, []);
  const wanted: string[] = [];
  for (const [index, pool] of pools.entries()) {
    const { body: list } = await eventually(
      'deleted containers are gone, and the others run',
      async () => pool[0]!.client.list(),
      ({ status, body }) => status === 200 && body.data.every((container) => container.status === 'running'),
    );
    const ids = list.data.map(({ id }) => id);
    t.same(ids.sort(), [...kept[index]!].sort(), 'the list holds exactly the acknowledged containers');
    wanted.push(...ids);
  }
  wanted.push(...(await witnesses[0]!.client.list()).body.data.map(({ id }) => id));
  t.same(
    engine
      .running()
      .map(({ container }) => container)
      .sort(),
    wanted.sort(),
    'the engine runs each container once',
  );
  t.same(engine.doubles, [], 'no container ran twice');
  const spans = new Set(receiver.spans.map(({ name }) => name));
  t.ok(spans.has('answer container.create') && spans.has('reconcile'), 'requests were traced in between');
  t.same(await startsOf(), before, 'containers that no client changed were never restarted');
});
