import t from 'tap';
import { createCachedEngine } from '../../../host-agent/docker/cached-engine.ts';
import { createEngine } from '../../../host-agent/docker/engine.ts';
import { labels, networkName, ownerLabels } from '../../../host-agent/docker/ownership.ts';
import type { Call, Transport } from '../../../host-agent/docker/transport.ts';
import { networkBody } from '../../../host-agent/network/network.ts';
import { limits } from '../../../schemas/limits.ts';
import { EngineModel } from '../../support/engine/model.ts';
import { transportTo } from '../../support/engine/transport.ts';
import { until } from '../../support/until.ts';
import { id, owner, tenant } from '../support/decisions.ts';

const image = 'docker.io/library/web:1';
const marks = {
  ...ownerLabels(owner),
  [labels.container]: id,
  [labels.tenant]: tenant,
  [labels.placement]: '1',
};
const body = { Image: image, Labels: marks, HostConfig: {} };

/** A cached engine that is watched and has listed, and the calls that reach the engine. */
async function rig() {
  const clock = { ms: 0 };
  const model = new EngineModel();
  model.pull(image);
  const below = transportTo(model);
  const calls: string[] = [];
  /** Waits before a call of this name is answered. */
  const holds = new Map<string, Promise<void>>();
  const transport: Transport = {
    ...below,
    call: async (call: Call) => {
      calls.push(call.name);
      const reply = await below.call(call);
      await holds.get(call.name);
      return reply;
    },
  };
  const engine = createCachedEngine(createEngine(transport), owner, () => clock.ms);
  await engine.probe(1000);
  const looks: unknown[] = [];
  let isDeaf = false;
  model.onEvent(ownerLabels(owner), ['container'], (line) => {
    if (!isDeaf) looks.push(engine.heard(JSON.parse(line) as Parameters<typeof engine.heard>[0]));
  });
  model.onEvent({}, ['image', 'network'], () => {
    if (!isDeaf) engine.heardChange();
  });
  engine.setWatched(true);
  await engine.listAll();
  calls.splice(0);
  const create = async () => {
    const made = await engine.create('web', body);
    if (made.kind !== 'created') throw new Error(made.kind);
    return made.id;
  };
  return {
    clock,
    model,
    engine,
    holds,
    create,
    made: () => calls.splice(0),
    looks: () => looks.splice(0),
    deafen: () => (isDeaf = true),
  };
}

t.test('a start costs a create, a start and one inspection', async (t) => {
  const { engine, create, made, looks } = await rig();
  t.same(await engine.idsOf(id), []);
  const dockerId = await create();
  t.same(await engine.idsOf(id), [dockerId]);
  t.match(await engine.inspect(dockerId), { State: { Status: 'created' }, Config: { Labels: marks } });
  await engine.start(dockerId);
  for (let again = 0; again < 3; again++) {
    t.equal((await engine.inspect(dockerId))?.State.Status, 'running');
  }
  t.same(made(), ['container create', 'container start', 'container inspect']);
  t.same(looks(), [id, id], 'the events came before the answers');
});

t.test('an event makes it ask again; what changes nothing does not', async (t) => {
  const { engine, model, create, made, looks } = await rig();
  const dockerId = await create();
  await engine.start(dockerId);
  await engine.inspect(dockerId);
  made();
  looks();
  const about = { ID: dockerId, Attributes: marks };
  for (const Action of ['exec_start: curl', 'kill', 'stop', 'create', 'start']) {
    t.equal(engine.heard({ Action, Actor: about }), undefined, Action);
  }
  await engine.inspect(dockerId);
  t.same(made(), []);
  for (const Action of ['die', 'pause', 'health_status: healthy', 'rename']) {
    t.equal(engine.heard({ Action, Actor: about }), id, Action);
    await engine.inspect(dockerId);
    t.same(made(), ['container inspect'], Action);
  }
  t.equal(engine.heard({ Action: 'die' }), undefined, 'of nothing');
  model.exit(model.find(dockerId)!, 3);
  t.same(looks(), [id]);
  t.match(await engine.inspect(dockerId), { State: { Status: 'exited', ExitCode: 3 } });
});

t.test('the end of a container is known from the event, until it is inspected', async (t) => {
  const { engine, model, create } = await rig();
  const dockerId = await create();
  await engine.start(dockerId);
  const before = await engine.inspect(dockerId);
  t.equal(engine.endOf(dockerId), undefined);
  model.exit(model.find(dockerId)!, 143);
  t.match(engine.endOf(dockerId), {
    State: { Status: 'exited', ExitCode: 143, StartedAt: before?.State.StartedAt },
    Config: { Labels: marks },
  });
  await engine.inspect(dockerId);
  t.equal(engine.endOf(dockerId), undefined);
});

t.test('containers that another program removes or makes are known from events', async (t) => {
  const { engine, model, create, made, looks } = await rig();
  const dockerId = await create();
  looks();
  model.remove(model.find(dockerId)!);
  t.same(await engine.idsOf(id), []);
  model.create('by-hand', body);
  t.same(await engine.idsOf(id), [model.find('by-hand')?.id]);
  t.same(looks(), [id, id]);
  t.same(made(), ['container create']);
});

t.test('without events, or before a list, it asks the engine', async (t) => {
  const { engine, create, made } = await rig();
  const dockerId = await create();
  made();
  engine.setWatched(false);
  const ask = async (): Promise<void> => {
    t.same(await engine.idsOf(id), [dockerId]);
    t.ok(await engine.inspect(dockerId));
    t.ok(await engine.imageId(image));
  };
  const asked = ['container list', 'container inspect', 'image inspect'];
  await ask();
  await ask();
  t.same(made(), [...asked, ...asked]);
  engine.setWatched(true);
  await ask();
  t.same(made(), asked, 'events alone do not say what was there before');
  await engine.listAll();
  made();
  await ask();
  t.same(made(), ['image inspect'], 'the inspection was made while it was watched');
  await ask();
  t.same(made(), []);
});

t.test('a list corrects what events did not say', async (t) => {
  const { engine, model, create, made, deafen } = await rig();
  const dockerId = await create();
  deafen();
  model.drop(dockerId);
  const other = model.create('other', body);
  t.equal(other.status, 201);
  t.same(await engine.idsOf(id), [dockerId]);
  await engine.listAll();
  const now = model.find('other')?.id ?? '';
  t.same(await engine.idsOf(id), [now]);
  await engine.start(now);
  await engine.inspect(now);
  made();
  await engine.listAll();
  await engine.inspect(now);
  t.same(made(), ['container list'], 'as it was');
  model.exit(model.find(now)!, 0);
  await engine.listAll();
  t.equal((await engine.inspect(now))?.State.Status, 'exited');
});

t.test('a container that changes during a question is asked for again', async (t) => {
  const { engine, model, create, holds, made } = await rig();
  const dockerId = await create();
  await engine.start(dockerId);
  let answer = (): void => undefined;
  const reached = async () => until('a call', () => made().length > 0);
  const hold = (name: string) => holds.set(name, new Promise((resolve) => (answer = resolve)));
  hold('container inspect');
  made();
  const early = engine.inspect(dockerId);
  await reached();
  model.exit(model.find(dockerId)!, 1);
  answer();
  t.equal((await early)?.State.Status, 'running');
  t.equal((await engine.inspect(dockerId))?.State.Status, 'exited');
  // A list that is older than a removal and a create.
  hold('container list');
  made();
  const listing = engine.listAll();
  await reached();
  model.remove(model.find(dockerId)!);
  const next = await create();
  answer();
  await listing;
  t.same(await engine.idsOf(id), [next]);
  // A question about an image that is replaced.
  made();
  hold('image inspect');
  const asking = engine.imageId(image);
  await reached();
  model.pull('docker.io/library/other:1');
  answer();
  await asking;
  await engine.imageId(image);
  t.same(made(), ['image inspect'], 'what was asked before the change is not remembered');
});

t.test('an inspection that no list confirms is asked again after a while', async (t) => {
  const { engine, create, made, clock } = await rig();
  const dockerId = await create();
  made();
  clock.ms += limits.inspectionTrustMs - 1;
  await engine.inspect(dockerId);
  t.same(made(), []);
  await engine.listAll();
  clock.ms += limits.inspectionTrustMs - 1;
  await engine.inspect(dockerId);
  t.same(made(), ['container list']);
  clock.ms += 1;
  await engine.inspect(dockerId);
  t.same(made(), ['container inspect']);
});

t.test('images and the network are asked for once, until one of them changes', async (t) => {
  const { engine, model, made } = await rig();
  const ask = async (): Promise<void> => {
    await engine.imageId(image);
    await engine.imageDetails(image, image);
    await engine.networks(ownerLabels(owner));
  };
  await ask();
  await ask();
  t.equal(made().filter((name) => name === 'network list').length, 2, 'there is none yet');
  await engine.createNetwork(networkName(owner), networkBody(owner));
  await ask();
  made();
  await ask();
  t.same(made(), []);
  model.pull('docker.io/library/other:1');
  await ask();
  t.same(made(), ['image inspect', 'image inspect', 'image history', 'network list']);
  t.equal(await engine.imageId('docker.io/library/none:1'), undefined);
  made();
  await engine.imageId('docker.io/library/none:1');
  t.same(made(), ['image inspect'], 'an image that is missing may come');
});

t.test('the containers of tenants and their states are known from events', async (t) => {
  const { engine, model, create, made } = await rig();
  t.same(await engine.containers(), []);
  const dockerId = await create();
  const known = { dockerId, id, tenant };
  t.same(await engine.containers(), [{ ...known, state: 'created' }]);
  await engine.start(dockerId);
  const running = await engine.containers();
  t.same(running, [{ ...known, state: 'running' }]);
  await engine.inspect(dockerId);
  t.equal(await engine.containers(), running, 'the same array while nothing has changed');
  model.exit(model.find(dockerId)!, 0);
  t.same(await engine.containers(), [{ ...known, state: 'exited' }]);
  const sandbox = { ...ownerLabels(owner), [labels.sandbox]: '{}' };
  model.create('sandbox', { ...body, Labels: sandbox });
  t.equal((await engine.containers()).length, 1, 'a sandbox is of no tenant');
  model.remove(model.find(dockerId)!);
  t.same(await engine.containers(), []);
  t.notOk(made().includes('container list'));
});

t.test('a list says the states that no event did', async (t) => {
  const { engine, model, create, made, deafen } = await rig();
  const dockerId = await create();
  deafen();
  model.start(model.find(dockerId)!);
  made();
  t.match(await engine.containers(), [{ dockerId, state: 'created' }]);
  await engine.listAll();
  t.match(await engine.containers(), [{ dockerId, state: 'running' }]);
  t.same(made(), ['container list']);
  engine.setWatched(false);
  model.exit(model.find(dockerId)!, 0);
  t.match(await engine.containers(), [{ dockerId, state: 'exited' }], 'without events it asks the engine');
  t.same(made(), ['container list']);
});

t.test('a failed call is asked about again', async (t) => {
  const { engine, model, create, made } = await rig();
  const dockerId = await create();
  await engine.start(dockerId);
  await engine.inspect(dockerId);
  made();
  await t.rejects(engine.remove(dockerId).then(() => Promise.reject(new Error('removed'))));
  await engine.inspect(dockerId);
  t.equal(made().at(-1), 'container inspect');
  t.ok(model.find(dockerId));
});
