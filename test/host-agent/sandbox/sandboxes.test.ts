import t, { type Test } from 'tap';
import { createCachedEngine } from '../../../host-agent/docker/cached-engine.ts';
import { createEngine, type Engine } from '../../../host-agent/docker/engine.ts';
import { EngineError } from '../../../host-agent/docker/errors.ts';
import { labels, networkName } from '../../../host-agent/docker/ownership.ts';
import { inventory } from '../../../host-agent/reconcile/observe/inventory.ts';
import { networkBody } from '../../../host-agent/network/network.ts';
import type { SandboxSource } from '../../../host-agent/metrics.ts';
import { SandboxPool, type SandboxesParts, concurrentSandboxes } from '../../../host-agent/sandbox/sandboxes.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import type { Port } from '../../../schemas/api/fields/container.ts';
import { EngineModel } from '../../support/engine/model.ts';
import { transportTo } from '../../support/engine/transport.ts';
import { until } from '../../support/until.ts';
import { quietLog } from '../../actors/support.ts';
import { owner, tenant } from '../support/decisions.ts';

const idOf = (number: number): ContainerId =>
  `0190a000-0000-7000-8000-${String(number).padStart(12, '0')}` as ContainerId;
const declared = (number: number, ...ports: Port[]) => ({ id: idOf(number), ports });

/** The engine's event of a sandbox that went down. */
const ended = (dockerId: string) => ({ Action: 'die', Actor: { ID: dockerId, Attributes: { [labels.sandbox]: '' } } });

const sandboxesUp = (model: EngineModel) =>
  [...model.containers.values()].filter(({ state }) => state.status === 'running');

const partsOf = (engine: SandboxesParts['engine']): SandboxesParts => ({
  engine,
  owner,
  publishAddress: '127.0.0.1',
  ports: { first: 20_000, last: 20_099 },
  size: 2,
  architecture: () => 'x86_64',
  ensureNetwork: async () => Promise.resolve(),
  metrics: { sandbox: () => undefined },
  log: quietLog,
});

async function rig(t: Test, changes: Partial<SandboxesParts> = {}) {
  const model = new EngineModel();
  const engine = createCachedEngine(createEngine(transportTo(model)), owner, () => performance.now());
  await engine.createNetwork(networkName(owner), networkBody(owner));
  const from: SandboxSource[] = [];
  const metrics = { sandbox: (source: SandboxSource) => void from.push(source) };
  const pool = new SandboxPool({ ...partsOf(engine), metrics, ...changes });
  t.teardown(() => pool.stop());
  const wanted = new Set<ContainerId>();
  return {
    model,
    engine,
    pool,
    from,
    wanted,
    /** Looks as the agent does after each list of the engine. */
    look: async () => pool.look(await inventory(engine), (id) => wanted.has(id)),
    /** The container of the engine that runs in this sandbox. */
    place: async (number: number, sandbox: string, more: Record<string, string> = {}) => {
      const marks = {
        ...more,
        'longshore.cluster': owner.cluster,
        'longshore.host': owner.host,
        'longshore.tenant': tenant,
        'longshore.container': idOf(number),
        'longshore.placement': '1',
      };
      const body = {
        Image: 'longshore-sandbox:1',
        Labels: marks,
        HostConfig: { NetworkMode: `container:${sandbox}` },
      };
      const made = await engine.create(`c${number}-${sandbox.slice(0, 6)}`, body);
      if (made.kind !== 'created') throw new Error(made.kind);
      wanted.add(idOf(number));
      return made.id;
    },
    isFull: (ready: number) => until('ready sandboxes', () => pool.counts().ready === ready),
    portsAt: async (sandbox: string) =>
      Object.entries((await engine.inspect(sandbox))?.NetworkSettings.Ports ?? {}).map(
        ([port, bindings]) => `${port} at ${bindings?.map(({ HostPort }) => HostPort).join()}`,
      ),
    statuses: () => [...model.containers.values()].map(({ state }) => state.status),
  };
}

t.test('a sandbox goes with its container, and serves no other', async (t) => {
  const { pool } = await rig(t, { size: 0 });
  const first = await pool.claim(declared(1, 80));
  pool.release(idOf(1));
  t.not(await pool.claim(declared(2, 80)), first);
});

t.test('a container that leaves the network of its tenant, or comes to it, gets another', async (t) => {
  const { pool, place } = await rig(t, { size: 0 });
  const inNetwork = await pool.claim(declared(1, 80));
  await place(1, inNetwork);
  const update = { since: 2, previous: {} } as never;
  const apart = await pool.claim({ ...declared(1, 80), network: { mode: 'none' }, update });
  t.not(apart, inNetwork);
  t.not(await pool.claim({ ...declared(1, 80), update }), apart);
});

t.test('sandboxes wait ready, of the shapes that were asked for last', async (t) => {
  const { pool, model, look, isFull, from, portsAt } = await rig(t);
  await look();
  await isFull(2);
  const first = await pool.claim(declared(1));
  t.same(from, ['ready']);
  await isFull(2);
  const second = await pool.claim(declared(2, 80));
  t.same(from, ['ready', 'made'], 'none of that shape was ready');
  t.not(first, second);
  t.match(await portsAt(second), [/^80\/tcp at 200\d\d$/]);
  // The next of the same shape finds one.
  const withPort = () => sandboxesUp(model).filter(({ labels }) => labels['longshore.sandbox'] === '80/tcp');
  await until('another with a port', () => withPort().length === 2 && pool.counts().ready === 2);
  const third = await pool.claim(declared(3, 80));
  t.equal(from.at(-1), 'ready');
  t.not(await portsAt(third), await portsAt(second));
});

t.test('a sandbox that is claimed while another is made stays', async (t) => {
  const { pool, model, look, isFull } = await rig(t);
  await look();
  await isFull(2);
  // The pool makes one with a port then, in place of one without.
  await pool.claim(declared(1, 80));
  const claimed = await Promise.all([pool.claim(declared(2)), pool.claim(declared(3))]);
  const next = await Promise.all([4, 5, 6, 7].map((number) => pool.claim(declared(number, 80))));
  await isFull(2);
  const all = [...claimed, ...next];
  t.equal(new Set(all).size, all.length, 'each has its own');
  t.same(
    all.map((id) => model.find(id)?.state.status),
    all.map(() => 'running'),
  );
  t.equal(model.containers.size, 1 + all.length + 2);
});

t.test('a container keeps its sandbox and its ports until it is gone', async (t) => {
  const { pool, place, engine, model, from, portsAt, statuses } = await rig(t, { size: 0 });
  const sandbox = await pool.claim(declared(1, 80));
  const ports = await portsAt(sandbox);
  await place(1, sandbox);
  t.equal(await pool.claim(declared(1, 80)), sandbox, 'it is made again');
  t.same(from, ['made', 'kept']);
  // As when the engine restarts.
  await engine.kill(sandbox);
  t.equal(await pool.claim(declared(1, 80)), sandbox);
  t.same(await portsAt(sandbox), ports);
  t.not(await pool.claim(declared(1, 81)), sandbox, 'with other ports it needs another');
  await until('its removal', () => model.find(sandbox) === undefined);
  pool.release(idOf(1));
  await until('the removal of the other', () => statuses().length === 1);
  t.same(pool.counts(), { ready: 0, used: 0 });
});

t.test('two claims of one container get one sandbox, such as before and after its pull', async (t) => {
  const { pool, model } = await rig(t, { size: 0 });
  pool.prepare(declared(1, 80));
  const [one, two] = await Promise.all([pool.claim(declared(1, 80)), pool.claim(declared(1, 80))]);
  t.equal(one, two);
  t.equal(model.containers.size, 1);
});

t.test('a port of the host that is taken: others are tried', async (t) => {
  const { pool, portsAt } = await rig(t, { size: 0, ports: { first: 20_000, last: 20_001 } });
  const first = await pool.claim(declared(1, 80));
  const second = await pool.claim(declared(2, 80));
  t.same([...(await portsAt(first)), ...(await portsAt(second))].sort(), ['80/tcp at 20000', '80/tcp at 20001']);
  await t.rejects(pool.claim(declared(3, 80)), /all ports are allocated/);
  pool.release(idOf(1));
  await until('its port is free', async () => {
    try {
      return (await pool.claim(declared(3, 80))) !== '';
    } catch {
      return false;
    }
  });
});

t.test('ports that another agent published are found out by the start', async (t) => {
  const { engine, model, pool, portsAt } = await rig(t, { size: 0, ports: { first: 20_000, last: 20_003 } });
  model.pull('other:1');
  for (const port of ['20000', '20001', '20002']) {
    const made = await engine.create(`other-${port}`, {
      Image: 'other:1',
      Labels: {},
      HostConfig: { PortBindings: { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: port }] } },
    });
    if (made.kind === 'created') await engine.start(made.id);
  }
  t.same(await portsAt(await pool.claim(declared(1, 80))), ['80/tcp at 20003']);
  t.equal(model.containers.size, 4, 'what did not start is removed');
});

t.test('after a restart of the agent: what containers use is adopted, the rest is removed', async (t) => {
  const { engine, pool, place, model, look, isFull } = await rig(t);
  await look();
  await isFull(2);
  const sandbox = await pool.claim(declared(1, 80));
  await place(1, sandbox);
  const withPort = () => sandboxesUp(model).filter(({ labels: marks }) => marks[labels.sandbox] === '80/tcp');
  await until('another with a port', () => withPort().length === 2 && model.containers.size === 4);
  // A new agent over the same engine.
  const next = new SandboxPool({ ...partsOf(engine), size: 0 });
  const lookNext = async () => next.look(await inventory(engine), () => true);
  await lookNext();
  t.equal(model.containers.size, 4, 'one that is being made may be among them');
  await lookNext();
  t.equal(model.containers.size, 2);
  t.same(next.counts(), { ready: 0, used: 1 });
  t.equal(await next.claim(declared(1, 80)), sandbox);
});

t.test('ports of a sandbox that is down stay its own, also for the next agent', async (t) => {
  const ports = { first: 20_000, last: 20_002 };
  const { engine, pool, place } = await rig(t, { size: 0, ports });
  const sandbox = await pool.claim(declared(1, 80));
  await place(1, sandbox);
  // As after a restart of the machine, before the container is started.
  await engine.kill(sandbox);
  const { pool: next } = await rig(t, { engine, size: 0, ports });
  await next.look(await inventory(engine), () => true);
  const others = await Promise.all([next.claim(declared(2, 80)), next.claim(declared(3, 80))]);
  t.equal(new Set(others).size, 2);
  await t.rejects(next.claim(declared(4, 80)), /all ports are allocated/);
  await t.resolves(next.start(sandbox), 'nobody has taken its port');
});

t.test('a container with the label of a sandbox is none', async (t) => {
  const { engine, pool, place, model, look } = await rig(t, { size: 0 });
  const sandbox = await pool.claim(declared(1));
  const container = await place(1, sandbox, { [labels.sandbox]: '' });
  await engine.start(container);
  await look();
  await look();
  t.match(model.find(container)?.state, { status: 'running' });
  const marks = { [labels.container]: idOf(1), [labels.sandbox]: '' };
  t.equal(pool.heard({ Action: 'die', Actor: { ID: sandbox, Attributes: marks } }), undefined);
});

t.test('one that waits ready and goes down is replaced; of one that is used, the container is known', async (t) => {
  const { pool, engine, model, look, isFull } = await rig(t);
  await look();
  await isFull(2);
  const used = await pool.claim(declared(1));
  await isFull(2);
  const [idle] = [...model.containers.keys()].filter((id) => id !== used);
  if (idle === undefined) throw new Error('none is ready');
  await engine.kill(idle);
  t.equal(pool.heard(ended(idle)), undefined);
  await until('another', () => model.find(idle) === undefined && pool.counts().ready === 2);
  t.equal(pool.heard(ended(used)), idOf(1));
});

t.test('a sandbox whose container never came is removed when nobody wants the container', async (t) => {
  const { pool, model, look, wanted } = await rig(t, { size: 0 });
  wanted.add(idOf(1));
  const sandbox = await pool.claim(declared(1, 80));
  await look();
  t.ok(model.find(sandbox));
  wanted.delete(idOf(1));
  await look();
  await until('its removal', () => model.find(sandbox) === undefined);
});

t.test('stopped, it leaves nothing ready', async (t) => {
  const { pool, look, isFull, statuses } = await rig(t);
  await look();
  await isFull(2);
  await pool.stop();
  t.same(statuses(), []);
});

t.test('a sandbox that takes long to start is not taken for one that nobody uses', async (t) => {
  const { engine, model } = await rig(t, { size: 0 });
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const slow: Engine = { ...engine, start: (id) => begun.then(() => engine.start(id)) };
  const { pool } = await rig(t, { size: 0, engine: slow });
  const claim = pool.claim(declared(1));
  await until('its create', () => model.containers.size === 1);
  for (let list = 0; list < 3; list++) await pool.look(await inventory(engine), () => true);
  begin();
  t.match(model.find(await claim)?.state, { status: 'running' });
});

t.test('many that are asked for at once are made a few at a time', async (t) => {
  const { engine, model } = await rig(t, { size: 0 });
  let under = 0;
  let most = 0;
  const counting: Engine = {
    ...engine,
    start: async (id) => {
      most = Math.max(most, (under += 1));
      await new Promise(setImmediate);
      await engine.start(id);
      under -= 1;
    },
  };
  const { pool } = await rig(t, { size: 0, engine: counting });
  // Each waits for the same image.
  for (let number = 1; number <= 50; number++) pool.prepare(declared(number));
  await until('all', () => pool.counts().used === 50);
  t.equal(sandboxesUp(model).length, 50);
  t.equal(most, concurrentSandboxes);
});

t.test('a fault of the engine goes to the claim, and the next claim tries again', async (t) => {
  let isBroken = true;
  const { engine, pool } = await rig(t, { size: 0 });
  const broken: Engine = {
    ...engine,
    start: async (id) => {
      if (isBroken)
        throw new EngineError('container start', { kind: 'refused', status: 500 }, 'no space left on device');
      await engine.start(id);
    },
  };
  const { pool: second } = await rig(t, { size: 0, engine: broken });
  await t.rejects(second.claim(declared(1)), /no space left/);
  isBroken = false;
  t.ok(await second.claim(declared(1)));
  t.ok(await pool.claim(declared(1)));
});

t.test('free ports: of the range, those that no container has', async (t) => {
  const ports = { first: 20_000, last: 20_003 };
  const { engine, pool, place, look, wanted } = await rig(t, { ports });
  t.equal(pool.freePorts(), null, 'before the first list');
  await look();
  t.equal(pool.freePorts(), 4);
  await place(1, await pool.claim(declared(1, 80, 81)));
  await until('those that wait ready', () => pool.counts().ready === 2);
  t.equal(pool.freePorts(), 2, 'what waits ready has none of its own');
  const { pool: next } = await rig(t, { engine, size: 0, ports: { first: 20_000, last: 20_099 } });
  await next.look(await inventory(engine), (id) => wanted.has(id));
  const { pool: outside } = await rig(t, { engine, size: 0, ports: { first: 30_000, last: 30_009 } });
  await outside.look(await inventory(engine), () => true);
  t.equal(outside.freePorts(), 10, 'ports of an earlier range');
  await look();
  t.equal(pool.freePorts(), 2);
  pool.release(idOf(1));
  await until('its removal', () => pool.freePorts() === 4);
});

t.test('with the range used up, a sandbox that waits ready gives its ports to a container', async (t) => {
  const { pool, look, portsAt } = await rig(t, { ports: { first: 20_000, last: 20_001 } });
  await look();
  await pool.claim(declared(1, 80));
  await until('one with the last port', () => pool.counts().ready === 2);
  t.equal(pool.freePorts(), 1);
  const other = await pool.claim(declared(2, 81));
  t.match(await portsAt(other), [/^81\/tcp at 2000[01]$/]);
  t.equal(pool.freePorts(), 0);
  await t.rejects(pool.claim(declared(3, 82)), /all ports are allocated/);
});

t.test('a sandbox whose network was taken is removed, and its container gets another', async (t) => {
  const { pool, engine, model, place } = await rig(t, { size: 0 });
  const sandbox = await pool.claim(declared(1, 80));
  const container = await place(1, sandbox);
  await engine.start(container);
  const lookWith = async (networks: object | null | undefined) => {
    // The list of the engine after `docker network disconnect -f`, where a network is missing.
    const listAll = async () =>
      (await engine.listAll()).map((each) =>
        each.Id === sandbox && networks !== undefined
          ? { ...each, NetworkSettings: { Networks: networks as Record<string, unknown> | null } }
          : each,
      );
    await pool.look(await inventory({ listAll }), () => true);
  };
  for (const networks of [undefined, null, { [networkName(owner)]: {} }]) {
    await lookWith(networks);
    t.ok(model.containers.has(sandbox), `stays with ${JSON.stringify(networks)}`);
  }
  await lookWith({});
  t.notOk(model.containers.has(sandbox));
  t.not(await pool.claim(declared(1, 80)), sandbox);
});

t.test('a sandbox whose interface was deleted on the host is removed', async (t) => {
  const cut = new Set<string>();
  const asked: number[] = [];
  const isCutOff = (dockerId: string, pid: number) => {
    asked.push(pid);
    return cut.has(dockerId);
  };
  const { pool, engine, model, place, look } = await rig(t, { size: 0, isCutOff });
  const sandbox = await pool.claim(declared(1, 80));
  await engine.start(await place(1, sandbox));
  await look();
  t.ok(model.containers.has(sandbox));
  t.same(asked, [model.pidOf(sandbox)]);
  cut.add(sandbox);
  await look();
  t.notOk(model.containers.has(sandbox));
});

t.test('the way out of VPN peers: one that no container gets, kept over a restart of the agent', async (t) => {
  const { pool, engine, model, look } = await rig(t, { size: 0 });
  t.equal(await pool.wayOut(false), undefined);
  const out = await pool.wayOut(true);
  t.equal(await pool.wayOut(true), out, 'the same');
  t.not(await pool.claim(declared(1)), out);
  await look();
  await look();
  t.equal(await pool.wayOut(true), out);

  const next = new SandboxPool({ ...partsOf(engine), size: 0 });
  await next.look(await inventory(engine), () => false);
  await next.look(await inventory(engine), () => false);
  t.equal(await next.wayOut(true), out, 'adopted');
  await engine.kill(out ?? '');
  t.equal(await next.wayOut(true), out, 'started again');
  t.equal((await engine.inspect(out ?? ''))?.State.Status, 'running');
  await engine.kill(out ?? '');
  await engine.remove(out ?? '');
  const another = await next.wayOut(true);
  t.not(another, out, 'another one in place of one that is gone');
  t.equal(await next.wayOut(false), undefined);
  await until('it is removed', () => !model.containers.has(another ?? ''));
  await next.stop();
});
