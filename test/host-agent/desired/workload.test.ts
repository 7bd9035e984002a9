import t from 'tap';
import { accept, Assembly, emptyDesired, type DesiredSet } from '../../../host-agent/desired/desired-set.ts';
import { createWorkload, type Present, type Workload } from '../../../host-agent/desired/workload.ts';
import { noOrphans, type OrphanState } from '../../../host-agent/desired/orphans.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import type { DesiredContainer, Stranger } from '../../../schemas/wire/host.ts';
import { quietLog } from '../../actors/support.ts';
import { container, syncAnswer } from '../support/decisions.ts';

const ids = (...names: string[]): Set<ContainerId> => new Set(names.map((name) => name as ContainerId));
const tenant = 'acme' as TenantId;
const present = (...names: string[]): Present =>
  new Map(names.map((name) => [name as ContainerId, { tenant, placement: 1 }]));
const stranger = (name: string, placement = 1): Stranger => ({ tenant, id: name as ContainerId, placement });
const one = (name: string, changes: Partial<DesiredContainer> = {}) =>
  container({ id: name as ContainerId, ...changes });

/** Both partitions of a cluster of two, as their owners answered them. */
function answered(containers: DesiredContainer[], hold: ContainerId[] = []): DesiredSet {
  let desired = emptyDesired('c1');
  for (const partition of [0, 1]) {
    const first = partition === 0;
    const of = first ? { containers, hold } : {};
    const answer = new Assembly().add(syncAnswer({ partition, ...of }));
    if (answer !== undefined) desired = accept(desired, 2, answer, new Map());
  }
  return desired;
}

interface Host {
  present: Present;
  orphans: OrphanState;
}

/** A host that took in this set from its owners. */
function start(
  desired: DesiredSet,
  {
    isSettled = true,
    orphans = { ...noOrphans, word: 0 },
  }: { readonly isSettled?: boolean; readonly orphans?: OrphanState } = {},
) {
  const host: Host = { present: present(), orphans };
  const stored: DesiredSet[] = [];
  const warnings: object[] = [];
  let changed: ContainerId[] = [];
  const workload = createWorkload({
    cluster: 'c1',
    store: { save: (next) => void stored.push(next) },
    capacity: () => ({ cpu_millis: 1000, mem_bytes: 1024 ** 3, containers: 10 }),
    present: { all: () => host.present },
    orphans: { orphans: () => host.orphans, setOrphans: (state) => void (host.orphans = state) },
    log: { ...quietLog, warn: (event, fields) => void warnings.push({ event, ...fields }) },
  });
  workload.events.on('changed', (ids) => void changed.push(...ids));
  const news = (): ContainerId[] => {
    const told = [...new Set(changed)];
    changed = [];
    return told.sort();
  };
  const accept = (next: DesiredSet): ContainerId[] => {
    workload.accept(next, 'owners');
    return news();
  };
  workload.approveOrphans(0);
  accept(desired);
  if (isSettled) workload.settled();
  news();
  /** The engine lists these. */
  const list = (now: Present): ContainerId[] => {
    host.present = now;
    workload.evaluate('any');
    return news();
  };
  return { workload, host, list, accept, news, stored, warnings };
}
const wantOf = (workload: Workload, name: string): string => workload.wanted(name as ContainerId).want;

t.test('a known container is as desired; an unknown one is ignored until its owner gives it away', (t) => {
  const { workload, list, news } = start(answered([one('a'), one('b', { desired: 'stopped' })]));
  list(present('a', 'x'));
  t.same(workload.unjudged(), [stranger('x')]);
  t.equal(wantOf(workload, 'a'), 'running');
  t.equal(wantOf(workload, 'b'), 'stopped');
  t.equal(wantOf(workload, 'x'), 'ignored');
  t.equal(workload.orphansHeld(), 0, 'its owner has given no verdict');
  workload.applyVerdicts([stranger('x')], [stranger('x')]);
  t.same(news(), ['x']);
  t.equal(wantOf(workload, 'x'), 'nothing');
  t.equal(workload.orphansHeld(), 0);
  t.same(workload.unjudged(), []);
  t.end();
});

t.test('a container that its owner does not know is held until an operator approves', (t) => {
  const { workload, host, list, news, warnings } = start(answered([]));
  list(present('x'));
  workload.applyVerdicts([stranger('x')], []);
  t.equal(workload.orphansHeld(), 1);
  t.same(warnings, [{ event: 'orphans_held', orphans: 1, present: 1 }]);
  t.equal(wantOf(workload, 'x'), 'ignored');
  workload.approveOrphans(1);
  t.same(news(), ['x']);
  t.equal(wantOf(workload, 'x'), 'nothing');
  t.same(host.orphans, { approved: ids('x'), word: 1 }, 'over a restart, too');
  t.end();
});

t.test('a container that its owner gives away goes, though other owners are silent', (t) => {
  const { workload, list } = start({ ...answered([]), heard: new Set([0]) }, { isSettled: false });
  list(present('x'));
  workload.applyVerdicts([stranger('x')], [stranger('x')]);
  t.equal(wantOf(workload, 'x'), 'nothing');
  t.end();
});

for (const [name, desired, isSettled] of [
  ['from disk alone, though it is complete', { ...answered([]), heard: new Set<number>() }, true],
  ['with one owner silent', { ...answered([]), heard: new Set([0]) }, true],
  ['while answers are under way', answered([]), false],
] as const) {
  t.test(`${name}: an operator’s approval has no effect yet`, (t) => {
    const { workload, list } = start(desired, { isSettled });
    list(present('x'));
    workload.applyVerdicts([stranger('x')], []);
    workload.approveOrphans(1);
    t.equal(wantOf(workload, 'x'), 'ignored');
    t.end();
  });
}

t.test('an approval from before a restart has no effect until owners confirm the set', (t) => {
  const orphans = { ...noOrphans, approved: ids('x') };
  const { workload, list } = start({ ...answered([]), heard: new Set<number>() }, { isSettled: false, orphans });
  list(present('x'));
  t.equal(wantOf(workload, 'x'), 'ignored');
  t.end();
});

t.test('a verdict covers the named placement; a container made under a later one stays', (t) => {
  const { workload, list } = start(answered([]));
  list(present('x'));
  workload.applyVerdicts([stranger('x')], [stranger('x')]);
  list(new Map([['x' as ContainerId, { tenant, placement: 7 }]]));
  t.equal(wantOf(workload, 'x'), 'ignored');
  t.same(workload.unjudged(), [stranger('x', 7)], 'the agent asks about it again');
  t.end();
});

t.test('after a container moves away and back, the earlier verdict does not count', (t) => {
  const { workload, list, accept } = start(answered([]));
  list(present('x'));
  workload.applyVerdicts([stranger('x')], [stranger('x')]);
  accept(answered([one('x')]));
  workload.applyVerdicts([stranger('x')], [stranger('x')]);
  t.equal(wantOf(workload, 'x'), 'running');
  accept(answered([]));
  workload.settled();
  t.equal(wantOf(workload, 'x'), 'ignored', 'nor after it has left again');
  t.end();
});

t.test('an approval ends when the container is known again', (t) => {
  const { host, list } = start(answered([one('x')]), {
    isSettled: false,
    orphans: { approved: ids('x'), word: 0 },
  });
  list(present('x'));
  t.equal(host.orphans.approved.size, 0);
  t.end();
});

t.test('the container of a damaged record is ignored', (t) => {
  const { workload, list } = start(answered([], ['d' as ContainerId]));
  list(present('d'));
  t.same(workload.strangers(), []);
  t.equal(wantOf(workload, 'd'), 'ignored');
  t.equal(workload.knows('d' as ContainerId), true);
  t.end();
});

t.test('strangers without a verdict come first, then those with the oldest verdict', (t) => {
  const { workload, list } = start(answered([]));
  list(present('a', 'b', 'c'));
  workload.applyVerdicts([stranger('b'), stranger('a')], []);
  t.same(
    workload.strangers().map(({ id }) => id),
    ['c', 'b', 'a'],
  );
  workload.applyVerdicts([stranger('b'), stranger('c')], []);
  t.same(
    workload.strangers().map(({ id }) => id),
    ['a', 'b', 'c'],
  );
  t.end();
});

t.test('on an isolated host, containers that should run stop, and the rest stays', (t) => {
  const { workload, news } = start(answered([one('a'), one('b', { desired: 'removed' })]));
  workload.isolate(false);
  t.same(news(), [], 'it was not');
  workload.isolate(true);
  t.same([wantOf(workload, 'a'), wantOf(workload, 'b')], ['stopped', 'removed']);
  t.same(news(), ['a', 'b']);
  workload.isolate(false);
  t.equal(wantOf(workload, 'a'), 'running');
  t.same(news(), ['a', 'b']);
  t.end();
});

t.test('a container that another host still runs is prepared, and takes room', (t) => {
  const { workload } = start(answered([one('a', { desired: 'stopped', prepare: true }), one('b', { prepare: true })]));
  t.same([wantOf(workload, 'a'), wantOf(workload, 'b')], ['prepared', 'running']);
  t.equal(workload.used().containers, 2);
  t.end();
});

t.test('an admitted container keeps its place against one placed earlier that comes later', (t) => {
  const { workload, accept } = start(answered([one('b', { placement: 2, cpu_millis: 800 })]));
  accept(answered([one('b', { placement: 2, cpu_millis: 800 }), one('a', { cpu_millis: 800 })]));
  t.match(workload.wanted('b' as ContainerId), { admitted: true });
  t.match(workload.wanted('a' as ContainerId), { admitted: false });
  t.end();
});

t.test('only changed containers get a look', (t) => {
  const { accept } = start(answered([one('a'), one('b')]));
  t.same(accept(answered([one('a'), one('b', { generation: 9 }), one('c')])), ['b', 'c']);
  t.same(accept(answered([one('a')])), ['b', 'c']);
  t.same(accept(answered([], ['a' as ContainerId])), ['a']);
  t.end();
});

t.test('a set of its owners is kept on disk, and the change is told before what follows from it', (t) => {
  const { workload, stored } = start(answered([]));
  const told: unknown[] = [];
  workload.events.on('desired', (names, from) => void told.push([names, from, wantOf(workload, 'a')]));
  workload.events.on('changed', (names) => void told.push(names));
  const next = answered([one('a')]);
  workload.accept(next, 'owners');
  t.equal(stored.at(-1), next);
  t.equal(workload.desired(), next);
  t.same(told, [[['a'], 'owners', 'running'], ['a'], ['a']]);
  workload.accept(answered([]), 'disk');
  t.equal(stored.at(-1), next, 'what comes from there is there');
  t.end();
});

t.test('the version before an update has its own secrets and parts, or none', (t) => {
  const secrets = { env: { A: { name: 'a', version: 2 } }, files: {} };
  const parts = { process: { user: '1000' }, repull: 4 };
  const { tenant: _, id: __, generation, placement, desired, name, ...version } = one('a');
  const updated = one('a', { secrets, ...parts, update: { since: 4, previous: version } });
  const { workload } = start(answered([updated]));
  const wanted = workload.wanted('a' as ContainerId);
  if (!('container' in wanted)) throw new Error('not wanted');
  t.same(wanted.container.secrets, secrets);
  t.match(wanted.container, parts);
  t.equal(wanted.update?.previous.container.secrets, undefined);
  t.equal(wanted.update?.previous.container.process, undefined);
  t.equal(wanted.update?.previous.container.repull, undefined);
  t.not(wanted.update?.previous.spec, wanted.spec);
  t.same([generation, placement, desired, name], [3, 1, 'running', 'web']);
  t.end();
});
