import t from 'tap';
import { labels as ours } from '../../../host-agent/docker/ownership.ts';
import { frameOf, recordsSince } from './log.ts';
import { EngineModel, type Labels } from './model.ts';

const labels: Labels = { [ours.cluster]: 'c1', [ours.container]: 'one' };

function start() {
  let made = 0;
  const model = new EngineModel({ nowMs: () => Date.parse('2026-01-02T03:04:05Z'), newId: () => `d${++made}` });
  model.pull('web:1');
  const create = (name: string, marks: Labels = labels) => {
    const { status } = model.create(name, { Image: 'web:1', Labels: marks });
    return { status, made: model.find(name)! };
  };
  return { model, create };
}

t.test('create, start, stop and remove answer with the statuses of the engine', (t) => {
  const { model, create } = start();
  const { status, made } = create('web');
  t.equal(status, 201);
  t.equal(model.stop(made).status, 304, 'a container that is not running');
  t.equal(model.start(made).status, 204);
  t.equal(model.start(made).status, 304, 'a running container');
  t.equal(model.remove(made).status, 409, 'a running container');
  t.equal(model.stop(made).status, 204);
  t.match(model.inspect(made).body, { State: { Status: 'exited', ExitCode: 0 }, Config: { Labels: labels } });
  t.equal(model.remove(made).status, 204);
  t.equal(model.find('web'), undefined);
  t.same(model.counts, { running: 0, created: 1, started: 1, stopped: 1, removed: 1 });
  t.end();
});

t.test('a create needs a present image and a free name', (t) => {
  const { model, create } = start();
  t.equal(model.create('web', { Image: 'other:1' }).status, 404);
  t.equal(create('web').status, 201);
  t.equal(create('web').status, 409);
  model.drop(create('other').made.id);
  t.equal(create('other').status, 201, 'the name is free again');
  t.equal(new EngineModel({ hasEveryImage: true }).create('web', { Image: 'other:1' }).status, 201);
  t.end();
});

t.test('a list returns the containers that have every label', (t) => {
  const { model, create } = start();
  create('one');
  create('two', { ...labels, [ours.container]: 'two' });
  create('other', { [ours.cluster]: 'c2', [ours.container]: 'one' });
  const ids = (asked: Labels) =>
    (model.list(asked).body as { Id: string }[]).map(({ Id }) => model.containers.get(Id)?.name);
  t.same(ids({ [ours.cluster]: 'c1' }), ['one', 'two']);
  t.same(ids(labels), ['one']);
  t.same(ids({ [ours.container]: 'three' }), []);
  t.end();
});

t.test('a second running container with the same Longshore id is recorded', (t) => {
  const { model, create } = start();
  const [first, second] = [create('one').made, create('two').made];
  model.start(first);
  t.same(model.doubles, []);
  model.start(second);
  t.match(model.doubles, [/^one: /]);
  t.equal(model.running().length, 2);
  t.end();
});

t.test('a container whose network was removed cannot start', (t) => {
  const { model } = start();
  model.createNetwork({ Name: 'net', Labels: labels });
  model.create('web', { Image: 'web:1', HostConfig: { NetworkMode: 'net' } });
  const [{ Id }] = model.networks(labels).body as [{ Id: string }];
  t.equal(model.removeNetwork(Id).status, 204);
  t.equal(model.removeNetwork(Id).status, 404);
  t.equal(model.start(model.find('web')!).status, 404);
  t.end();
});

t.test('a listener gets the events of its labels until it unsubscribes', (t) => {
  const { model, create } = start();
  const actions: string[] = [];
  const end = model.onEvent({ [ours.cluster]: 'c1' }, ['container'], (line) =>
    actions.push((JSON.parse(line) as { Action: string }).Action),
  );
  const { made } = create('one');
  create('other', { [ours.cluster]: 'c2' });
  model.start(made);
  model.exit(made, 1);
  model.remove(made);
  end();
  create('two');
  t.same(actions, ['create', 'start', 'die', 'destroy']);
  t.end();
});

t.test('onDown calls back when the container is not running, unless it is cancelled', (t) => {
  const { model, create } = start();
  const { made } = create('one');
  let down = 0;
  model.onDown(made, () => down++);
  t.equal(down, 1, 'at once for a container that is not running');
  model.start(made);
  model.onDown(made, () => down++);
  const cancel = model.onDown(made, () => down++);
  cancel();
  model.stop(made);
  t.equal(down, 2);
  t.end();
});

t.test('a log keeps what a container wrote while it ran, over its runs', (t) => {
  const { model, create } = start();
  const { made } = create('web');
  const heard: string[] = [];
  const unread = model.onLine(made, ({ text }) => heard.push(text));
  model.write(made, 'not yet');
  model.start(made);
  model.write(made, 'one');
  model.write(made, 'two');
  model.stop(made);
  model.write(made, 'no more');
  model.start(made);
  model.write(made, 'three');
  unread();
  model.write(made, 'four');
  t.same(heard, ['one', 'two', 'three']);
  const log = made.log ?? [];
  t.same(
    log.map(({ text }) => text),
    ['one', 'two', 'three', 'four'],
  );
  t.equal(new Set(log.map(({ micros }) => micros)).size, 4, 'each at a time of its own');
  const second = Math.floor((log[1]?.micros ?? 0) / 1_000_000);
  t.equal(recordsSince(log, '0').length, 4);
  t.equal(recordsSince(log, `${second}.000001000`).length, 3);
  const frame = frameOf(log[1]!);
  t.equal(frame.readUInt32BE(4), frame.length - 8);
  t.equal(frame.subarray(8).toString(), '2026-01-02T03:04:05.000001000Z two\n');
  t.end();
});
