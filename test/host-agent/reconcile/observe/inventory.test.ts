import t from 'tap';
import type { Summary } from '../../../../host-agent/docker/answers.ts';
import { labels } from '../../../../host-agent/docker/ownership.ts';
import { observe } from '../../../../host-agent/docker/observed.ts';
import { inventory } from '../../../../host-agent/reconcile/observe/inventory.ts';
import { id, tenant } from '../../support/decisions.ts';

const marks = { [labels.container]: id, [labels.tenant]: tenant, [labels.placement]: '1' };
const summary = (more: Partial<Summary> = {}): Summary => ({
  Id: 'd1',
  State: 'running',
  Status: 'Up 1 minute',
  Labels: marks,
  ...more,
});
const listIn = (...listed: Summary[]) => inventory({ listAll: () => Promise.resolve(listed) });
const seenIn = async (...listed: Summary[]) => (await listIn(...listed)).present;
const fingerprintOf = async (...listed: Summary[]) => (await seenIn(...listed)).get(id)?.fingerprint;

t.test('a container that lacks a label of an agent is not ours', async (t) => {
  t.same([...(await seenIn(summary())).values()], [{ tenant, placement: 1, fingerprint: 'd1 running ;' }]);
  for (const [name, Labels] of [
    ['no labels', null],
    ['no container', { ...marks, [labels.container]: '' }],
    ['a container of another name', { ...marks, [labels.container]: 'web' }],
    ['no tenant', { [labels.container]: id, [labels.placement]: '1' }],
    ['a tenant that would be two tokens', { ...marks, [labels.tenant]: 'a.b' }],
    ['no placement', { [labels.container]: id, [labels.tenant]: tenant }],
    ['no number', { ...marks, [labels.placement]: 'one' }],
    ['half a placement', { ...marks, [labels.placement]: '1.5' }],
    ['below any', { ...marks, [labels.placement]: '-1' }],
  ] as const) {
    t.equal((await seenIn(summary({ Labels }))).size, 0, name);
  }
});

t.test('the sandboxes of all of several with one id are in use; the newest placement counts', async (t) => {
  const inSandbox = (Id: string, sandbox: string, placement: string) =>
    summary({
      Id,
      Labels: { ...marks, [labels.placement]: placement },
      HostConfig: { NetworkMode: `container:${sandbox}` },
    });
  const { users, inUse } = await listIn(inSandbox('d1', 's1', '2'), inSandbox('d2', 's2', '1'));
  t.same([...inUse], ['s1', 's2']);
  t.same([...users], [[id, 's1']]);
});

t.test('of the copies of an update, the sandbox of the one that runs counts', async (t) => {
  const copy = (Id: string, State: string) => summary({ Id, State, HostConfig: { NetworkMode: `container:s-${Id}` } });
  for (const [old, next] of [
    ['d1', 'd2'],
    ['d2', 'd1'],
  ] as const) {
    t.same([...(await listIn(copy(old, 'running'), copy(next, 'created'))).users], [[id, `s-${old}`]]);
    t.same([...(await listIn(copy(old, 'exited'), copy(next, 'running'))).users], [[id, `s-${next}`]]);
  }
});

t.test('of several with one id the newest placement counts, in whatever order they are listed', async (t) => {
  const both = [summary(), summary({ Id: 'd0', State: 'exited', Labels: { ...marks, [labels.placement]: '3' } })];
  const one = await seenIn(...both);
  t.match(one.get(id), { placement: 3 });
  t.same(await seenIn(...both.toReversed()), one);
});

t.test('a fingerprint changes with what needs a look, and with nothing else', async (t) => {
  const before = await fingerprintOf(summary());
  t.equal(await fingerprintOf(summary({ Status: 'Up 2 hours' })), before, 'time passes');
  for (const [name, listed] of [
    ['another state', [summary({ State: 'exited' })]],
    ['another container in its place', [summary({ Id: 'd2' })]],
    ['a second one', [summary(), summary({ Id: 'd2' })]],
    ['healthy', [summary({ Status: 'Up 1 minute (healthy)' })]],
    ['unhealthy', [summary({ Status: 'Up 1 minute (unhealthy)' })]],
    ['not yet known', [summary({ Status: 'Up 1 minute (health: starting)' })]],
  ] as const) {
    t.not(await fingerprintOf(...listed), before, name);
  }
  t.not(
    await fingerprintOf(summary({ Status: 'Up (healthy)' })),
    await fingerprintOf(summary({ Status: 'Up (unhealthy)' })),
  );
});

t.test('a look passes over what went meanwhile', async (t) => {
  const gone = { idsOf: async () => Promise.resolve(['gone']), inspect: async () => Promise.resolve(undefined) };
  t.same(await observe({ ...gone, endOf: () => undefined }, id, false), []);
});

t.test('sandboxes are listed beside the containers, with those that use them', async (t) => {
  const { present, sandboxes, users } = await listIn(
    // The engine gives a container the labels of its image, and the agent blanks them.
    summary({ Labels: { ...marks, [labels.sandbox]: '' }, HostConfig: { NetworkMode: 'container:s1' } }),
    summary({ Id: 's1', Labels: { [labels.sandbox]: '80/tcp', [labels.published]: '20001' } }),
    summary({ Id: 's2', State: 'exited', Labels: { [labels.sandbox]: '' } }),
  );
  t.same([...present.keys()], [id], 'a sandbox is no container of a tenant');
  t.same(sandboxes, [
    { dockerId: 's1', shape: '80/tcp', published: [20_001], isRunning: true, isCut: false },
    { dockerId: 's2', shape: '', published: [], isRunning: false, isCut: false },
  ]);
  t.same([...users], [[id, 's1']]);
});
