/**
 * An actors process on a real nats-server, with asks as gateways send them and messages as agents
 * send them.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import t, { type Test } from 'tap';
import { createUser } from '@nats-io/nkeys';
import { sleep } from '../../../lib/time/backoff.ts';
import type { Container, ContainerStatusView, Observation } from '../../../schemas/api/container.ts';
import type { Capacity, HostView } from '../../../schemas/api/host.ts';
import type { ContainerId, HostKey, Region } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { HelloAnswer, Report, ReportAnswer, Stranger, SyncAnswer } from '../../../schemas/wire/host.ts';
import { partitionOf, subjects } from '../../../schemas/wire/subjects.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';
import { agentKey, agentOf, containerId, hostKey, operation, specOf, tenantId } from '../../actors/support.ts';
import { controlPlane, createAsker, enrolHost, ownerOn, spawnActors, startCluster, type Ground } from './support.ts';
import { observation as observationOf } from '../../actors/support/records.ts';

const partitions = 4;

async function startOwner(t: Test, ground: Ground, more: Parameters<typeof ownerOn>[2] = {}) {
  const nc = await controlPlane(ground.nats);
  t.teardown(() => nc.close());
  const owner = ownerOn(ground, nc, more);
  await owner.start();
  t.teardown(() => owner.stop());
  return owner;
}

/** Runs the program itself, for tests that kill it. */
async function startProgram(t: Test, { nats, nc }: Ground): Promise<ChildProcess> {
  const child = spawnActors(nats, partitions, { env: { LOG_LEVEL: 'warn' }, stdio: ['ignore', 'inherit', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  const ask = createAsker(nc, partitions);
  for (let partition = 0; partition < partitions; partition++) {
    for (let tries = 0; tries < 200; tries++) {
      const answer = await ask({ type: 'host.list', partition, limit: 1, after: '' }).catch(() => undefined);
      if (answer !== undefined) break;
      await sleep(50);
    }
  }
  return child;
}

const roomy: Capacity = { cpu_millis: 64_000, mem_bytes: 64 * 1024 ** 3, containers: 500 };

/** A host's agent, as far as the control plane sees it. */
function createHost({ nc }: Ground, key: HostKey) {
  let session = 0;
  let seq = 0;
  return {
    async hello(capacity = roomy, more: { stops_after_ms?: number | null } = {}): Promise<HelloAnswer> {
      const hello = JSON.stringify({ v: 1, ...protocolFields, agent_version: '0', capacity, ...more });
      const answer = (await nc.request(subjects.hostHello(agentOf(key)), hello, { timeout: 3000 })).json<HelloAnswer>();
      if (answer.ok) session = answer.session;
      nc.publish(
        subjects.hostBeat(agentOf(key)),
        JSON.stringify({
          v: 1,
          ...protocolFields,
          session,
          used: { cpu_millis: 0, mem_bytes: 0, containers: 0 },
          engine: 'test',
          orphans_held: 0,
          volumes_left: 0,
          faults: [],
          room: {},
        }),
      );
      return answer;
    },
    async sync(
      held: Record<string, [number, number]> = {},
      strangers: readonly Stranger[] = [],
    ): Promise<SyncAnswer[]> {
      const answers: SyncAnswer[] = [];
      const options = { strategy: 'count' as const, maxMessages: partitions, maxWait: 3000 };
      for await (const message of await nc.requestMany(
        subjects.hostSync(agentOf(key)),
        JSON.stringify({ v: 1, ...protocolFields, held, strangers }),
        options,
      )) {
        answers.push(message.json<SyncAnswer>());
      }
      return answers;
    },
    async report(
      tenant: string,
      item: Partial<Report['items'][number]>,
      observation: Partial<Observation>,
    ): Promise<ReportAnswer> {
      const report = {
        v: 1,
        ...protocolFields,
        partition: partitionOf(tenant, partitions),
        session,
        items: [
          {
            tenant,
            seq: ++seq,
            gone: false,
            ...item,
            observation: { ...observationOf('running'), ...observation },
          },
        ],
      };
      return (
        await nc.request(subjects.hostReport(agentOf(key)), JSON.stringify(report), { timeout: 3000 })
      ).json<ReportAnswer>();
    },
  };
}

async function withHost(ground: Ground, key: HostKey) {
  const ask = createAsker(ground.nc, partitions);
  await enrolHost(ask, key);
  const host = createHost(ground, key);
  await host.hello();
  return { ask, host };
}

const dataOf = <T>(answer: { json: unknown }): T => (answer.json as { data: T }).data;

t.test('a container is created, placed, run, stopped, started and deleted', async (t) => {
  const ground = await startCluster(t, partitions);
  await startOwner(t, ground);
  const { ask, host } = await withHost(ground, hostKey('h1'));
  const tenant = tenantId('acme');
  const id = containerId();

  const created = await ask({
    type: 'container.create',
    tenant,
    id,
    op: operation(),
    spec: specOf('web'),
    idempotency: null,
  });
  t.equal(created.code, 'created');
  t.match(dataOf<Container>(created), { id, tenant_id: 'acme', name: 'web', host_key: 'h1', status: 'pending' });
  t.equal(Object.keys(dataOf<Container>(created)).length, 16);

  const [desired] = (await host.sync()).flatMap(({ containers }) => containers);
  t.match(desired, { id, tenant: 'acme', generation: 2, placement: 2, desired: 'running', cpu_millis: 100 });

  t.match(await host.report(tenant, { id, generation: 2 }, { status: 'running' }), { ok: true });
  t.equal(dataOf<Container>(await ask({ type: 'container.get', tenant, id })).status, 'running');

  t.match(await host.report(tenant, { id, generation: 1 }, { status: 'failed' }), { ok: true });
  t.equal(
    dataOf<Container>(await ask({ type: 'container.get', tenant, id })).status,
    'running',
    'an older generation is ignored',
  );

  await ask({ type: 'container.stop', tenant, id, op: operation() });
  await host.report(tenant, { id, generation: 3 }, { status: 'stopped', exit_code: 0 });
  t.match(dataOf<ContainerStatusView>(await ask({ type: 'container.status', tenant, id })), {
    status: 'stopped',
    desired: 'stopped',
    exit_code: 0,
  });

  const again = await ask({ type: 'container.start', tenant, id, op: operation() });
  t.equal(dataOf<Container>(again).status, 'pending');

  const deleted = await ask({ type: 'container.delete', tenant, id, op: operation() });
  t.equal(deleted.code, 'accepted');
  t.equal(dataOf<Container>(deleted).status, 'removing');
  t.equal((await ask({ type: 'container.start', tenant, id, op: operation() })).code, 'conflict');
  const taken = await ask({
    type: 'container.create',
    tenant,
    id: containerId(),
    op: operation(),
    spec: specOf('web'),
    idempotency: null,
  });
  t.same(
    taken.json,
    { error: 'invalid', details: { name: ['has already been taken'] } },
    'the name is held until it is gone',
  );

  await host.report(tenant, { id, generation: 5, gone: true }, { status: 'stopped' });
  t.equal((await ask({ type: 'container.get', tenant, id })).code, 'not_found');
  t.same(dataOf(await ask({ type: 'container.trace', tenant, id })), { history: ['h1'], gone: true });
  t.same(
    (await host.sync()).flatMap(({ containers }) => containers),
    [],
  );
});

t.test('a sync answers “same” for a current set, and a change rings the doorbell', async (t) => {
  const ground = await startCluster(t, partitions);
  await startOwner(t, ground);
  const { ask, host } = await withHost(ground, hostKey('h1'));
  const answers = await host.sync();
  t.equal(answers.length, partitions);
  const held = Object.fromEntries(
    answers.map(({ partition, epoch, revision }): [string, [number, number]] => [String(partition), [epoch, revision]]),
  );
  t.ok((await host.sync(held)).every(({ same }) => same));

  const doorbell = ground.nc.subscribe('desired.h1.*', { max: 1 });
  const tenant = tenantId('acme');
  await ask({
    type: 'container.create',
    tenant,
    id: containerId(),
    op: operation(),
    spec: specOf('web'),
    idempotency: null,
  });
  for await (const message of doorbell) t.equal(message.subject, `desired.h1.${partitionOf(tenant, partitions)}`);
  const changed = (await host.sync(held)).filter(({ same }) => !same);
  t.same(
    changed.map(({ partition }) => partition),
    [partitionOf(tenant, partitions)],
  );
});

t.test('a repeated operation is not executed again', async (t) => {
  const ground = await startCluster(t, partitions);
  await startOwner(t, ground);
  const ask = createAsker(ground.nc, partitions);
  const tenant = tenantId('acme');
  const create = {
    type: 'container.create',
    tenant,
    id: containerId(),
    op: operation(),
    spec: specOf('web'),
    idempotency: null,
  } as const;
  const first = await ask(create);
  t.same(await ask(create), first);
  const start = { type: 'container.start', tenant, id: create.id, op: operation() } as const;
  await ask({ type: 'container.stop', tenant, id: create.id, op: operation() });
  await ask(start);
  await ask({ type: 'container.stop', tenant, id: create.id, op: operation() });
  await ask(start);
  t.equal(
    dataOf<ContainerStatusView>(await ask({ type: 'container.status', tenant, id: create.id })).desired,
    'stopped',
  );
});

t.test('acknowledged writes and outcomes of operations survive the process', async (t) => {
  const ground = await startCluster(t, partitions);
  const actors = await startProgram(t, ground);
  const ask = createAsker(ground.nc, partitions);
  const creates = Array.from({ length: 60 }, (_, index) => ({
    type: 'container.create' as const,
    tenant: tenantId(`t${index % 5}`),
    id: containerId(),
    op: operation(),
    spec: specOf(`c${index}`),
    idempotency: null,
  }));
  const answers = await Promise.all(creates.map(async (create) => ask(create)));
  t.ok(answers.every(({ code }) => code === 'created'));
  const [first] = creates;
  if (first === undefined) return t.fail();
  const deleted = await ask({ type: 'container.delete', tenant: first.tenant, id: first.id, op: operation() });
  t.equal(deleted.code, 'accepted');
  actors.kill('SIGKILL');
  await once(actors, 'exit');

  await startOwner(t, ground);
  for (const create of creates.slice(1)) {
    t.equal((await ask({ type: 'container.get', tenant: create.tenant, id: create.id })).code, 'ok');
    t.equal((await ask(create)).code, 'created', 'a retry of the create is the same create');
  }
  t.equal((await ask({ type: 'container.get', tenant: first.tenant, id: first.id })).code, 'not_found');
  const listed = dataOf<Container[]>(
    await ask({ type: 'container.list', tenant: tenantId('t1'), limit: 100, before: null }),
  );
  t.equal(listed.length, 12);
  const times = listed.map(({ inserted_at, id }) => `${inserted_at} ${id}`);
  t.same(times, [...times].sort().reverse(), 'newest first');
});

t.test('concurrent creates never exceed a cap, and none is lost', async (t) => {
  const ground = await startCluster(t, partitions);
  await startOwner(t, ground);
  const ask = createAsker(ground.nc, partitions);
  const tenant = tenantId('edge');
  const answers = await Promise.all(
    Array.from({ length: 40 }, async (_, index) =>
      ask({
        type: 'container.create',
        tenant,
        id: containerId(),
        op: operation(),
        spec: specOf(`c${index}`),
        idempotency: null,
      }),
    ),
  );
  t.equal(answers.filter(({ code }) => code === 'created').length, 20);
  const refused = answers.filter(({ code }) => code === 'over_quota');
  t.equal(refused.length, 20);
  t.same(refused[0]?.json, { error: 'over_quota', detail: { dimension: 'containers', requested: 21, max: 20 } });
  const { usage } = dataOf<{ usage: Record<string, number> }>(await ask({ type: 'tenant.quota', tenant, region: '*' }));
  t.same(usage, {
    containers: 20,
    cpu_millis: 2000,
    mem_bytes: 20 * 16 * 1024 ** 2,
    ports: 0,
    disk_bytes: 20 * 10 * 1024 ** 3,
    vpn_peers: 0,
    deletes_per_hour: 0,
  });
});

t.test('a host enrols once with its token, is cordoned, and is removed', async (t) => {
  const ground = await startCluster(t, partitions);
  await startOwner(t, ground);
  const ask = createAsker(ground.nc, partitions);
  const host = hostKey('h9');
  const made = await ask({
    type: 'host.create',
    host,
    region: 'default' as Region,
    joinTokenHash: 'right',
    op: operation(),
  });
  t.match(dataOf<HostView>(made), { key: 'h9', region: 'default', status: 'joining' });
  t.equal(
    (await ask({ type: 'host.create', host, region: 'default' as Region, joinTokenHash: 'x', op: operation() })).code,
    'conflict',
  );
  const publicKey = agentKey;
  const enrol = { type: 'host.enrol', host, publicKey } as const;
  t.equal((await ask({ ...enrol, joinTokenHash: 'wrong', op: operation() })).code, 'unauthenticated');
  const enrolled = await ask({ ...enrol, joinTokenHash: 'right', op: operation() });
  t.match(dataOf(enrolled), { host: 'h9', region: 'default', cluster: ground.cluster.id, jwt: /^ey/ });
  const thief = { ...enrol, publicKey: createUser().getPublicKey(), joinTokenHash: 'right' } as const;
  t.equal((await ask({ ...thief, op: operation() })).code, 'unauthenticated', 'the token is spent');

  const sessionOf = async (): Promise<number> => {
    const answer = await createHost(ground, host).hello();
    if (!answer.ok) throw new Error(answer.error);
    return answer.session;
  };
  const session = await sessionOf();
  t.ok((await sessionOf()) > session);
  t.match(await createHost(ground, hostKey('stranger')).hello(), { ok: false, error: 'unknown_host' });

  await ask({ type: 'host.update', host, update: { cordoned: true }, op: operation() });
  const tenant = tenantId('acme');
  const waiting = await ask({
    type: 'container.create',
    tenant,
    id: containerId(),
    op: operation(),
    spec: specOf('web'),
    idempotency: null,
  });
  t.match(dataOf<Container>(waiting), { host_key: null, status: 'pending' });
  const pinned = await ask({
    type: 'container.create',
    tenant,
    id: containerId(),
    op: operation(),
    spec: specOf('pinned', { host_key: host }),
    idempotency: null,
  });
  t.match(dataOf<Container>(pinned), { host_key: 'h9' });
  const nowhere = await ask({
    type: 'container.create',
    tenant,
    id: containerId(),
    op: operation(),
    spec: specOf('x', { host_key: hostKey('nope') }),
    idempotency: null,
  });
  t.same(nowhere.json, { error: 'invalid', details: { host_key: ['is not a host in an allocated region'] } });

  t.match(await ask({ type: 'host.remove', host, op: operation() }), { code: 'conflict', body: /drain/ });
  t.match(dataOf<HostView>(await ask({ type: 'host.get', host })), { key: 'h9' }, 'a live host is not removed');
  const removal = { type: 'host.remove', host, force: true, dead: true, op: operation() } as const;
  t.equal((await ask(removal)).code, 'accepted');
  t.equal((await ask({ type: 'host.get', host })).code, 'not_found');
  t.match(dataOf<Container>(await ask({ type: 'container.get', tenant, id: dataOf<Container>(pinned).id })), {
    status: 'lost',
  });
  t.match(await createHost(ground, host).hello(), { ok: false, error: 'unknown_host' });
  await enrolHost(ask, host);
  t.ok((await sessionOf()) > session + 1, 'a host that is made again goes on above what its containers remember');
});

t.test('a host learns which of its unknown containers were moved or deleted', async (t) => {
  const ground = await startCluster(t, partitions);
  await startOwner(t, ground);
  const { ask, host } = await withHost(ground, hostKey('h1'));
  const tenant = tenantId('acme');
  const create = async (name: string) => {
    const id = containerId();
    await ask({ type: 'container.create', tenant, id, op: operation(), spec: specOf(name), idempotency: null });
    return id;
  };
  const [moved, deleted, kept] = [await create('moved'), await create('deleted'), await create('kept')];
  await ask({ type: 'container.delete', tenant, id: deleted, op: operation() });
  await host.report(tenant, { id: deleted, generation: 3, gone: true }, { status: 'stopped' });
  const held = (await host.sync()).flatMap(({ containers }) => containers.map(({ id }) => id));
  t.same(held.sort(), [kept, moved].sort());

  const { host: other } = await withHost(ground, hostKey('h2'));
  await ask({ type: 'host.update', host: hostKey('h1'), update: { draining: true }, op: operation() });
  const isMoved = async (): Promise<boolean> => {
    const there = (await other.sync()).flatMap(({ containers }) => containers.map(({ id }) => id));
    return there.includes(moved) && there.includes(kept);
  };
  for (let tries = 0; tries < 400 && !(await isMoved()); tries++) await sleep(50);
  const toldTo = async (of: { sync: typeof other.sync }): Promise<string[]> =>
    (await of.sync()).flatMap(({ containers }) => containers.map(({ desired, prepare }) => `${desired} ${prepare}`));
  t.same(await toldTo(host), ['stopped undefined', 'stopped undefined']);
  t.same(await toldTo(other), ['stopped true', 'stopped true'], 'they start when they have stopped');
  for (const id of [moved, kept]) await host.report(tenant, { id, generation: 3 }, { status: 'stopped' });
  t.same(await toldTo(host), []);
  t.same(await toldTo(other), ['running undefined', 'running undefined']);

  const unknown = containerId();
  const strangers = [moved, deleted, kept, unknown].map((id) => ({ tenant, id, placement: 2 }));
  const gone = async (host: { sync: typeof other.sync }, named: Stranger[]): Promise<string[]> =>
    (await host.sync({}, named)).flatMap((answer) => answer.gone ?? []).map(({ id }) => id);
  t.same((await gone(host, strangers)).sort(), [moved, deleted, kept].sort(), 'and nothing of what nobody knows');
  const erased = (await host.sync({}, strangers)).flatMap((answer) => answer.gone ?? []);
  t.same(
    erased.filter((each) => each.deleted).map(({ id }) => id),
    [deleted],
    'of these, one is nowhere any more',
  );
  t.same(await gone(host, [{ tenant, id: moved, placement: 99 }]), [], 'of a later placement than is known');
  t.same(await gone(other, [{ tenant, id: deleted, placement: 2 }]), [], 'of what another host had');
});

t.test('a host removed by force is fenced, and nothing runs twice', async (t) => {
  const ground = await startCluster(t, partitions);
  await startOwner(t, ground);
  const { ask, host } = await withHost(ground, hostKey('h1'));
  const tenant = tenantId('acme');
  const id = containerId();
  await ask({ type: 'container.create', tenant, id, op: operation(), spec: specOf('web'), idempotency: null });
  await host.report(tenant, { id, generation: 2 }, { status: 'running' });
  await withHost(ground, hostKey('h2'));
  const statusOf = async () => dataOf<ContainerStatusView>(await ask({ type: 'container.status', tenant, id }));
  t.match(await statusOf(), { status: 'running', host_key: 'h1' });

  const remove = async (more: { force?: true; dead?: true } = {}) =>
    ask({ type: 'host.remove', host: hostKey('h1'), ...more, op: operation() });
  t.equal((await remove()).code, 'conflict');
  t.equal((await remove({ force: true })).code, 'accepted');
  const view = dataOf<HostView>(await ask({ type: 'host.get', host: hostKey('h1') }));
  t.match(view, { status: 'fenced' });
  t.same(await host.hello(), { ...protocolFields, ok: false, error: 'fenced' });
  for (const answer of await host.sync()) t.match(answer, { fenced: true, same: true, containers: [] });
  t.match(await host.report(tenant, { id, generation: 2 }, { status: 'failed' }), { ok: false });
  // Wait for several sweeps: the container must not move while it may still run there.
  for (let sweeps = 0; sweeps < 3; sweeps++) {
    await sleep(limits.sweepIntervalMs);
    t.match(await statusOf(), { status: 'lost', reason: 'host_removed', host_key: 'h1', observed_status: 'running' });
  }
  t.equal((await remove({ force: true, dead: true })).code, 'accepted');
  for (let tries = 0; tries < 400 && (await statusOf()).host_key !== 'h2'; tries++) await sleep(50);
  t.match(await statusOf(), { host_key: 'h2', status: 'pending' });
});

t.test('a fenced host is settled only after its agent had time to stop everything', async (t) => {
  const ground = await startCluster(t, partitions);
  await startOwner(t, ground, { fenceMarginMs: 1000 });
  const tenant = tenantId('acme');
  const stopsAfterMs = 500;
  /** Reports of each host's agent, in their order. */
  const told: Record<string, readonly ({ stops_after_ms: number | null } | undefined)[]> = {
    stops: [{ stops_after_ms: stopsAfterMs }],
    never: [{ stops_after_ms: null }],
    silent: [undefined],
    // The agent reported that it stops while its containers keep running.
    left: [{ stops_after_ms: stopsAfterMs }, { stops_after_ms: null }],
  };
  const made = new Map<string, ContainerId>();
  for (const [key, hellos] of Object.entries(told)) {
    const { ask, host } = await withHost(ground, hostKey(key));
    for (const hello of hellos) t.match(await host.hello(roomy, hello), { ok: true });
    const id = containerId();
    const spec = specOf(key);
    await ask({ type: 'container.create', tenant, id, op: operation(), spec, idempotency: null });
    made.set(key, id);
    await ask({ type: 'host.update', host: hostKey(key), update: { cordoned: true }, op: operation() });
  }
  const { ask } = await withHost(ground, hostKey('other'));
  const placed = async (key: string) => {
    const id = made.get(key) ?? containerId();
    return dataOf<ContainerStatusView>(await ask({ type: 'container.status', tenant, id })).host_key;
  };
  const fence = async (key: string, more: { dead?: true } = {}) =>
    ask({ type: 'host.remove', host: hostKey(key), force: true, ...more, op: operation() });
  for (const key of ['never', 'silent', 'left', 'stops']) {
    t.equal(await placed(key), key);
    const { stops_after_ms: shown } = dataOf<HostView>(await fence(key));
    t.equal(shown, key === 'stops' ? stopsAfterMs : null, 'the answer says whether silence will settle it');
  }
  for (let tries = 0; tries < 600 && (await placed('stops')) !== 'other'; tries++) await sleep(50);
  t.equal(await placed('stops'), 'other');
  t.equal((await ask({ type: 'host.get', host: hostKey('stops') })).code, 'not_found');
  // They were fenced earlier, and have been silent for as long.
  for (const key of ['never', 'silent', 'left']) {
    t.equal(await placed(key), key);
    t.match(dataOf<HostView>(await ask({ type: 'host.get', host: hostKey(key) })), { status: 'fenced' });
  }
  await fence('left', { dead: true });
  for (let tries = 0; tries < 600 && (await placed('left')) !== 'other'; tries++) await sleep(50);
  t.equal(await placed('left'), 'other');
});
