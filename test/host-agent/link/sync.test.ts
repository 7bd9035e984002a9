/** One ask: what it says, which answers are taken in, and how it ends. */
import type { Msg, NatsConnection, Subscription, SubOpts } from '@nats-io/transport-node';
import t from 'tap';
import { subscribeAnswers, sync } from '../../../host-agent/link/sync.ts';
import { emptyDesired, type DesiredSet } from '../../../host-agent/desired/desired-set.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Stranger, SyncAsk } from '../../../schemas/wire/host.ts';
import { basisOf, digestOf } from '../../../schemas/wire/set-digest.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import { containerId } from '../../actors/support.ts';
import { container } from '../support/decisions.ts';
import { answerOf, createOwners, partitions, syncParts, type Asked } from '../support/owners.ts';

const all = [0, 1, 2, 3] as const;
/** A tenant of each partition. */
const tenants = all.map((partition) => {
  for (let index = 0; ; index++) {
    const tenant = `t${index}` as TenantId;
    if (partitionOf(tenant, partitions) === partition) return tenant;
  }
});
const strangerIn = (partition: number, id: ContainerId = containerId()): Stranger => ({
  tenant: tenants[partition] ?? ('t' as TenantId),
  id,
  placement: 1,
});

interface Given {
  readonly desired?: DesiredSet;
  readonly only?: readonly number[];
  readonly strangers?: readonly Stranger[];
  /** Strangers that have come during the ask. */
  readonly late?: readonly Stranger[];
}

/** Begins an ask; `did` is what reached the target. */
function ask({ desired = emptyDesired('c1'), only, strangers = [], late = [] }: Given = {}) {
  const did: string[] = [];
  const asked: Asked[] = [];
  const owners = createOwners((one) => void asked.push(one));
  const ending = new AbortController();
  const parts = syncParts({
    desired: () => desired,
    accept: (next) => {
      did.push('updated');
      desired = next;
    },
  });
  const result = sync(
    owners.nc,
    {
      ...parts,
      workload: {
        ...parts.workload,
        settled: () => void did.push('settled'),
        approveOrphans: (word) => void did.push(`word ${word}`),
        strangers: () => [...strangers],
        unjudged: () => [...strangers, ...late],
        applyVerdicts: (named, gone) =>
          void did.push(`${named.map(({ tenant }) => tenant).join()} judged, ${gone.length} gone`),
      },
      lease: { fenced: () => void did.push('fenced'), settled: () => {} },
      onObeyed: (ahead) => {
        if (ahead !== undefined) did.push(`ahead at ${ahead}`);
      },
    },
    only,
    60_000,
    ending.signal,
  );
  return { ...owners, did, asked, result, current: () => desired, end: () => ending.abort() };
}

/** The ask of a sync that gets no answer. */
function asking(given: Given): SyncAsk | undefined {
  const { asked, end } = ask(given);
  end();
  return asked[0]?.ask;
}

t.test('it is complete when every partition has answered, in any order and any number of times', async (t) => {
  const { say, did, result, current } = ask();
  say(answerOf(2), answerOf(0), answerOf(2), answerOf(3));
  t.equal(did.includes('settled'), false);
  say(answerOf(1, { part: 1, parts: 2 }), answerOf(1, { part: 0, parts: 2 }));
  t.same(await result, { kind: 'complete', due: [] });
  t.equal(did.at(-1), 'settled');
  t.same([...current().sets.keys()].sort(), all);
  const before = did.length;
  say(answerOf(2));
  t.equal(did.length, before, 'and it listens no more');
});

t.test('asked for some, it is complete with these, and names the versions that it holds', async (t) => {
  const first = ask();
  first.say(...all.map((partition) => answerOf(partition, { epoch: 5, revision: partition })));
  await first.result;
  const { say, asked, result } = ask({ desired: first.current(), only: [1, 2] });
  t.match(asked, [{ ask: { partitions: [1, 2] } }]);
  t.same(asked[0]?.ask.held, { 1: [5, 1], 2: [5, 2] }, 'of these');
  t.match(first.asked, [{ ask: { partitions: undefined, held: {} } }]);
  t.not(asked[0]?.inbox, first.asked[0]?.inbox, 'in an inbox of its own');
  say(answerOf(1, { epoch: 5, revision: 1, same: true }), answerOf(2, { epoch: 5, revision: 2, same: true }));
  t.match(await result, { kind: 'complete' });
});

t.test('an answer may speak for other partitions of its owner', async (t) => {
  const first = ask();
  first.say(...all.map((partition) => answerOf(partition, { epoch: 5, revision: partition })));
  await first.result;
  const strangers = [strangerIn(1), strangerIn(2)];
  const { say, did, result, current } = ask({ desired: first.current(), strangers });
  const gone = strangers.map(({ id, placement }) => ({ id, placement }));
  say(answerOf(0, { epoch: 5, revision: 0, also: [[1, 5, 1]] }));
  t.same(did, [], 'not one that says what has changed');
  say(answerOf(0, { epoch: 5, revision: 0, same: true, orphan_word: 7 }));
  say(
    answerOf(1, {
      epoch: 5,
      revision: 1,
      same: true,
      gone: gone.slice(0, 1),
      also: [
        [2, 5, 2],
        [3, 6, 9],
      ],
    }),
  );
  t.match(await result, { kind: 'complete' });
  t.same(did.slice(1), [`${tenants[1]} judged, 1 gone`, `${tenants[2]} judged, 0 gone`, 'updated', 'settled']);
  t.match(current().sets.get(3), { epoch: 6, revision: 9 }, 'each at its own version');
  t.match(current().sets.get(2), { epoch: 5, revision: 2 });
});

t.test('the word on orphans may stand beside what is said for others, and is heard once', async (t) => {
  const first = ask();
  first.say(...all.map((partition) => answerOf(partition)));
  await first.result;
  const { say, did, result } = ask({ desired: first.current() });
  const also = [1, 2, 3].map((partition) => [partition, 1, 1] as [number, number, number]);
  say(answerOf(0, { same: true, orphan_word: 7, also }));
  t.match(await result, { kind: 'complete' });
  t.same(did, ['word 7', 'settled']);
});

t.test('digests are named with the versions, of the sets as they are here', async (t) => {
  const first = ask();
  t.same(first.asked[0]?.ask.digests, {}, 'of none at first');
  const one = container();
  const digest = digestOf(basisOf(0), [one], []);
  first.say(answerOf(0, { containers: [one], digest }), ...all.slice(1).map((partition) => answerOf(partition)));
  await first.result;
  t.same(asking({ desired: first.current() })?.digests, { 0: digest });
  const [[partition, set] = [0, undefined]] = first.current().sets;
  if (set === undefined) throw new Error('no set');
  const lost = new Map(first.current().sets).set(partition, { ...set, containers: [] });
  const ofLost = asking({ desired: { ...first.current(), sets: lost } });
  t.same(ofLost?.digests, { 0: digestOf(basisOf(0), [], []) }, 'and an owner sees what was lost');
});

t.test('changes that do not lead to the set of the owner: its whole set is taken next', async (t) => {
  const first = ask();
  const [one, two, three] = [1, 2, 3].map((n) => container({ id: containerId(), generation: n }));
  if (one === undefined || two === undefined || three === undefined) throw new Error('no containers');
  const whole = { containers: [one], digest: digestOf(basisOf(0), [one], []) };
  first.say(...all.map((partition) => answerOf(partition, partition === 1 ? whole : {})));
  await first.result;
  const second = ask({ desired: first.current(), only: [1, 2] });
  const changes = {
    revision: 3,
    since: [1, 1] as [number, number],
    digest: digestOf(basisOf(0), [one, two, three], []),
  };
  second.say(answerOf(2, { same: true }), answerOf(1, { ...changes, containers: [three] }));
  t.same(await second.result, { kind: 'partial', missing: [1] });
  t.notOk(second.did.includes('settled'), 'nothing is an orphan meanwhile');
  t.same(second.current().sets, first.current().sets, 'and the set stays as it was');
  const third = ask({ desired: second.current(), only: [1] });
  t.match(third.asked, [{ ask: { partitions: [1] } }]);
  t.same([third.asked[0]?.ask.held, third.asked[0]?.ask.digests], [{}, {}], 'it names no version');
  third.say(answerOf(1, { revision: 3, containers: [one, two, three], digest: changes.digest }));
  t.match(await third.result, { kind: 'complete' });
  t.equal(third.current().sets.get(1)?.containers.length, 3);
  t.equal(asking({ desired: third.current() })?.digests?.['1'], changes.digest);
});

t.test('an answer that speaks for a partition that is not there is refused', async (t) => {
  const { say, did, result } = ask({ only: [0, 1] });
  say(
    answerOf(0, {
      same: true,
      also: [
        [partitions, 1, 1],
        [1, 1, 1],
      ],
    }),
  );
  t.match(await result, { kind: 'refused', why: 'other_partitions' });
  t.notOk(did.includes('settled'));
});

t.test('other ends of a sync', async (t) => {
  const silent = ask();
  silent.sayNobodyIsThere();
  t.same(await silent.result, { kind: 'silent' }, 'nobody owns a partition');

  const stopped = ask();
  stopped.end();
  t.same(await stopped.result, { kind: 'silent' }, 'no answer until it ends');

  const some = ask();
  some.say(answerOf(3), answerOf(0), answerOf(1, { part: 0, parts: 2 }));
  some.end();
  t.same(await some.result, { kind: 'partial', missing: [1, 2] }, 'half an answer is none');

  const fewer = ask({ only: [1, 2] });
  fewer.say(answerOf(2));
  fewer.end();
  t.same(await fewer.result, { kind: 'partial', missing: [1] }, 'of those that were asked');

  for (const { result, did, say } of [silent, stopped, some, fewer]) {
    await result;
    const before = did.length;
    say(answerOf(1));
    t.equal(did.length, before, 'what comes later is not heard');
    t.notOk(did.includes('settled'));
  }
});

t.test('a connection that is closed is silence', async (t) => {
  const { nc } = createOwners(() => {
    throw new Error('closed');
  });
  const parts = syncParts({ desired: () => emptyDesired('c1'), accept: () => {} });
  t.same(await sync(nc, parts, undefined), { kind: 'silent' });
});

t.test('another cluster, or the removal of this host, ends it with nothing taken in', async (t) => {
  const foreign = ask();
  foreign.say(answerOf(0, { cluster: 'c2' }));
  t.match(await foreign.result, { kind: 'refused', why: 'foreign_cluster' });
  t.same(foreign.did, []);
  const removed = ask();
  removed.say(answerOf(0, { fenced: true, orphan_word: 5 }));
  t.same(await removed.result, { kind: 'refused', why: 'fenced' });
  t.same(removed.did, ['fenced']);
});

t.test('an answer that cannot be read is passed over, and so is an older one', async (t) => {
  const { say, did, result } = ask({ only: [1] });
  say('nonsense', '{}', { ...answerOf(1), v: 2 }, { ...answerOf(1), protocol: 99 });
  t.same(did, []);
  say(answerOf(1, { orphan_word: 7 }));
  t.match(await result, { kind: 'complete' });
  t.same(did, ['word 7', 'updated', 'settled']);
});

t.test('a whole sync says which epoch this host has of owners that it does not obey', async (t) => {
  const first = ask();
  first.say(...all.map((partition) => answerOf(partition, { epoch: 5 + partition })));
  await first.result;
  const desired = first.current();
  const older = (partition: number) => answerOf(partition, { epoch: 4, revision: 9 });
  const second = ask({ desired });
  second.say(...all.map(older));
  t.match(await second.result, { kind: 'complete' });
  t.equal(second.current(), desired, 'nothing is taken in');
  t.same(second.did, ['settled', 'ahead at 8']);

  const takeover = ask({ desired });
  takeover.say(
    older(0),
    answerOf(0, { epoch: 9 }),
    ...all.slice(1).map((partition) => answerOf(partition, { epoch: 9 })),
  );
  await takeover.result;
  t.notMatch(takeover.did.join(), /ahead/, 'the next owner has answered too');
  const some = ask({ desired, only: [1] });
  some.say(older(1));
  await some.result;
  t.notMatch(some.did.join(), /ahead/, 'a doorbell says nothing of all partitions');
});

t.test('strangers are named to the owners that are asked, and judged by their own', async (t) => {
  const first = ask();
  first.say(...all.map((partition) => answerOf(partition)));
  await first.result;
  const strangers = [strangerIn(1), strangerIn(2), strangerIn(3)];
  const late = [strangerIn(3), strangerIn(1), strangerIn(1)];
  const { say, asked, did, result } = ask({ desired: first.current(), only: [1, 2], strangers, late });
  t.same(asked[0]?.ask.strangers, strangers.slice(0, 2));
  const [one] = strangers as [Stranger];
  const same = { same: true } as const;
  say(answerOf(2, same), answerOf(1, { ...same, gone: [{ id: one.id, placement: 1 }] }));
  t.same(
    did.filter((what) => what.includes('judged')),
    [`${tenants[2]} judged, 0 gone`, `${tenants[1]} judged, 1 gone`],
  );
  t.same(await result, { kind: 'complete', due: [3, 1] }, 'who came meanwhile, or was not named, is named next');
});

t.test('an ask names no more strangers than it may, and asks again for the rest', async (t) => {
  const strangers = Array.from({ length: limits.syncStrangers + 1 }, () => strangerIn(2));
  const { say, asked, result } = ask({ strangers });
  t.equal(asked[0]?.ask.strangers?.length, limits.syncStrangers);
  say(...all.map((partition) => answerOf(partition)));
  t.same(await result, { kind: 'complete', due: [2] });
});

function inboxes() {
  const subjects: string[] = [];
  let callback: SubOpts<Msg>['callback'];
  const nc: Partial<NatsConnection> = {
    subscribe: (subject: string, options?: SubOpts<Msg>) => {
      subjects.push(subject);
      callback = options?.callback;
      return {} as Partial<Subscription> as Subscription;
    },
  };
  const say = (error: Error | null, message: Partial<Msg>): void => void callback?.(error, message as Msg);
  return { nc: nc as NatsConnection, subjects, say };
}

t.test('asks of a connection share a subscription, and each hears its own answers until it ends', (t) => {
  const { nc, subjects, say } = inboxes();
  const heard: string[] = [];
  const one = subscribeAnswers(nc, '_INBOX_U', () => heard.push('one'));
  const two = subscribeAnswers(nc, '_INBOX_U', () => heard.push('two'));
  t.equal(subjects.length, 1);
  t.match(subjects[0], /^_INBOX_U\.[0-9a-f]{32}\.\*$/);
  t.not(one.subject, two.subject);
  for (const { subject } of [one, two]) t.ok(subject.startsWith(String(subjects[0]).slice(0, -1)), 'below it');
  say(null, { subject: two.subject });
  say(null, { subject: one.subject });
  say(null, { subject: `${one.subject}0` });
  t.same(heard, ['two', 'one']);
  one.end();
  say(null, { subject: one.subject });
  t.same(heard, ['two', 'one']);
  t.not(subscribeAnswers(inboxes().nc, '_INBOX_U', () => {}).subject, one.subject);
  t.end();
});

t.test('a subscription that the server ends is made again for the next ask', (t) => {
  const { nc, subjects, say } = inboxes();
  const heard: (string | undefined)[] = [];
  subscribeAnswers(nc, '_INBOX_U', (error) => heard.push(error?.message));
  say(new Error('permissions violation'), {});
  t.same(heard, ['permissions violation']);
  const next = subscribeAnswers(nc, '_INBOX_U', (error) => heard.push(error?.message));
  t.equal(subjects.length, 2);
  t.equal(new Set(subjects).size, 2);
  say(null, { subject: next.subject });
  t.same(heard.slice(1), [undefined]);
  t.end();
});
