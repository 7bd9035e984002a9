/** Many members in virtual time: what they say, and what they know of each other. */
import t, { type Test } from 'tap';
import { Membership, memberListPaceMs } from '../../../actors/membership/membership.ts';
import type { MemberStore } from '../../../actors/membership/member-store.ts';
import { Others, membersWatched, memberDoubtedMs } from '../../../actors/membership/others.ts';
import { deadRecord, recordOf, type MemberRecord } from '../../../actors/membership/record.ts';
import { encodeValue } from '../../../actors/runtime/journal/codec.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import type { MemberId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { quietLog } from '../support.ts';
import { createMembers } from '../support/members.ts';
import { createFractions, createRandom } from '../support/random.ts';
import { World, type Process } from '../../sim/world/time.ts';

interface Member {
  readonly process: Process;
  readonly membership: Membership;
  partitions: readonly number[];
}

/** Members over one store, and the notices between them. */
class Members {
  readonly world = new World();
  readonly all: Member[] = [];
  /** Messages to and from the server. */
  messages = 0;
  /** Decides for each notice if it arrives, and for each read if its replica is behind. */
  weather = { arrives: (): boolean => true, isStale: (): boolean => false };
  /** Members that were declared dead although their lease was valid. */
  readonly wronged: MemberId[] = [];
  readonly #bucket = createMembers();
  #stale: Awaited<ReturnType<MemberStore['list']>> = [];

  add(): Member {
    const name = `m${this.all.length}`;
    const process = this.world.process(name);
    const ids = createRandom(this.all.length + 1);
    let incarnations = 0;
    const newId = (): MemberId => `${ids.below(2 ** 30).toString(36)}-${name}.${++incarnations}` as MemberId;
    const options = { store: this.#storeOf(process), clock: process.clock, log: quietLog, newId };
    const announce = (notice: string): void => this.#announce(process, notice);
    const calls = { onRenewed: () => {}, onRevoked: () => {}, onWentBack: () => {}, onLooked: () => {}, announce };
    const serving = (): readonly number[] => member.partitions;
    const membership = new Membership({ ...options, ...calls, serving, refused: () => [] });
    const member: Member = { process, membership, partitions: [] };
    this.all.push(member);
    void this.world.spawn(process, () => membership.start());
    return member;
  }

  running(): Member[] {
    return this.all.filter(({ process }) => process.state !== 'dead');
  }

  /** Running members in the order of the ring. */
  ring(): Member[] {
    return this.running().toSorted((one, other) => (one.membership.id < other.membership.id ? -1 : 1));
  }

  agree(): boolean {
    const expected = this.running()
      .map(({ membership }) => membership.id)
      .toSorted();
    return this.running().every(({ membership }) => membership.live().toSorted().join() === expected.join());
  }

  async pass(ms: number): Promise<void> {
    await this.world.until(() => false, ms);
  }

  /** Runs the body when so many members have come to know each other. */
  async run(count: number, body: () => Promise<void>): Promise<void> {
    await this.world.run(createFractions(1), async () => {
      for (let index = 0; index < count; index++) {
        this.add();
        await this.pass(7);
      }
      await this.world.until(() => this.agree(), 10_000);
      await this.pass(2 * limits.leaseMs);
      await body();
    });
  }

  /** Messages in each second of a quiet time. */
  async rate(): Promise<number> {
    const before = this.messages;
    const seconds = 10;
    await this.pass(seconds * 1000);
    return (this.messages - before) / seconds;
  }

  #announce(from: Process, notice: string): void {
    this.messages++;
    for (const { process, membership } of this.all) {
      if (process.state === 'dead' || (process !== from && !this.weather.arrives())) continue;
      this.messages++;
      this.world.at(this.world.nowMs + 1, process, () => membership.handleNotice(Buffer.from(notice)));
    }
  }

  #storeOf(process: Process): MemberStore {
    const { store } = this.#bucket;
    const asked = async <T>(answer: () => Promise<T>, answers: (value: T) => number): Promise<T> => {
      this.messages++;
      await sleep(1);
      const value = await answer();
      this.messages += answers(value);
      await sleep(1);
      return value;
    };
    const listed = async () => (this.weather.isStale() ? this.#stale : (this.#stale = await store.list()));
    const withEnd = ({ length }: readonly unknown[]): number => length + 1;
    return {
      list: () => asked(listed, withEnd),
      readSome: (ids) => asked(async () => (await listed()).filter(({ id }) => ids.includes(id)), withEnd),
      read: (id) =>
        asked(
          () => store.read(id),
          () => 1,
        ),
      replace: (id, value, expected) =>
        asked(
          async () => {
            const revision = await store.replace(id, value, expected);
            if (revision !== undefined && recordOf(value)?.state === 'dead') this.#judge(process, id);
            return revision;
          },
          () => 1,
        ),
    };
  }

  #judge(by: Process, id: MemberId): void {
    const member = this.all.find(({ membership }) => membership.id === id);
    if (member === undefined || member.process === by || member.process.state === 'dead') return;
    if (member.membership.lease().isValid()) this.wronged.push(id);
  }
}

t.test('the messages of members grow as their number, not as its square', async (t) => {
  const rates = new Map<number, number>();
  for (const count of [2, 10, 50]) {
    const members = new Members();
    await members.run(count, async () => {
      const rate = await members.rate();
      rates.set(count, rate);
      t.comment(`${count} members: ${Math.round(rate)} messages/s to and from the server`);
    });
  }
  for (const [count, rate] of rates) t.ok(rate < 60 * count, `${count} members: ${rate}`);
});

t.test('a dead member is known to all, even if all who watched it died with it', async (t) => {
  const members = new Members();
  await members.run(60, async () => {
    for (const count of [1, membersWatched + 1, 5 * membersWatched]) {
      for (const { process } of members.ring().slice(3, 3 + count)) members.world.kill(process);
      const startMs = members.world.nowMs;
      t.ok(
        await members.world.until(() => members.agree(), 3 * limits.leaseUnchangedMs),
        `${count} next to each other`,
      );
      t.comment(`${count} members killed: known to all after ${Math.round(members.world.nowMs - startMs)} ms`);
    }
  });
});

t.test('a notice is heard at once, or found later if it was lost', async (t) => {
  const members = new Members();
  await members.run(30, async () => {
    const [first, second] = members.ring() as [Member, Member];
    const isKnown = (partition: number) => (): boolean =>
      members.running().every(({ membership }) => membership === first.membership || membership.isServed(partition));
    first.partitions = [1];
    t.ok(await members.world.until(isKnown(1), 2 * limits.leaseRenewMs), 'heard');
    const listMs = (members.all.length + 1) * memberListPaceMs;
    // Nobody hears this one; those who watch it find it, and say it.
    const { arrives } = members.weather;
    members.weather.arrives = () => false;
    first.partitions = [2];
    await members.world.until(() => first.membership.isServed(2), limits.leaseRenewMs);
    await members.pass(5);
    members.weather.arrives = arrives;
    t.ok(await members.world.until(isKnown(2), 3 * limits.leaseRenewMs), 'found by those who watch it');
    members.weather.arrives = () => false;
    const late = members.add();
    t.ok(await members.world.until(() => members.agree(), listMs + limits.leaseMs), 'found in a list');
    t.ok(late.membership.lease().isValid());
    members.world.kill(second.process);
    t.ok(await members.world.until(() => members.agree(), listMs + 2 * limits.leaseUnchangedMs), 'a death too');
  });
});

t.test('a notice without content is answered by a list', async (t) => {
  const members = new Members();
  await members.run(30, async () => {
    members.weather.arrives = () => false;
    const late = members.add();
    await members.world.until(() => late.membership.lease().isValid(), limits.leaseMs);
    const [first] = members.all as [Member];
    void members.world.spawn(first.process, async () =>
      Promise.resolve(first.membership.handleNotice(Buffer.from(''))),
    );
    t.ok(await members.world.until(() => first.membership.live().includes(late.membership.id), limits.leaseRenewMs));
  });
});

t.test('pauses, kills, lost notices and stale reads: no valid lease is declared dead', async (t: Test) => {
  for (let seed = 1; seed <= 6; seed++) {
    const random = createRandom(seed);
    const members = new Members();
    await members.run(12, async () => {
      members.weather = { arrives: () => random.below(3) > 0, isStale: () => random.below(4) === 0 };
      for (let fault = 0; fault < 30; fault++) {
        const running = members.running();
        const { process } = running[random.below(running.length)] ?? members.add();
        if (random.below(4) === 0 && running.length > 4) members.world.kill(process);
        else if (random.below(2) === 0) members.add();
        else members.world.pause(process);
        await members.pass(random.below(2 * limits.leaseUnchangedMs));
        for (const one of members.running()) if (random.below(2) === 0) members.world.resume(one.process);
      }
      for (const one of members.running()) members.world.resume(one.process);
      members.weather = { arrives: () => true, isStale: () => false };
      t.ok(await members.world.until(() => members.agree(), 20_000), `seed ${seed}: all agree`);
      t.same(members.wronged, [], `seed ${seed}`);
    });
  }
});

const stored = (id: string, revision: number, more: Partial<MemberRecord> = {}) => {
  const record = { id: id as MemberId, state: 'live' as const, renewal: revision, partitions: [], ...more };
  return { id: record.id, revision, value: encodeValue(record) };
};

t.test('an old list forgets nobody', (t) => {
  const others = new Others();
  const [a, b] = [stored('a', 7), stored('b', 9)];
  others.learn(a, 1);
  others.learn(b, 1);
  others.forgetAllBut([stored('b', 6)]);
  t.ok(others.get(a.id), 'the list is from before its record');
  others.forgetAllBut([b]);
  t.notOk(others.get(a.id), 'the list is from after it');
  t.ok(others.get(b.id));
  t.end();
});

t.test('an old notice changes nothing', (t) => {
  const others = new Others();
  const id = 'a' as MemberId;
  t.ok(others.learn({ id, revision: 5, value: deadRecord(id) }, 1), 'new');
  t.notOk(others.learn(stored('a', 4), 2));
  t.equal(others.get(id)?.record?.state, 'dead');
  t.end();
});

t.test('the members that are watched', (t) => {
  const others = new Others();
  const ids = Array.from({ length: 20 }, (_, index) => `m${String.fromCharCode(97 + index)}` as MemberId);
  let revision = 0;
  const renew = (renewing: readonly MemberId[], nowMs: number): void => {
    for (const id of renewing) others.learn(stored(id, ++revision), nowMs);
  };
  const see = (seen: readonly MemberId[], nowMs: number): void => {
    for (const id of seen) {
      const { revision: known = 0 } = others.get(id) ?? {};
      others.learn(stored(id, known), nowMs);
    }
  };
  const watched = (self: string): readonly MemberId[] | undefined => others.watchedBy(self as MemberId, 0);
  renew(ids, 1000);
  t.equal(watched('ma0'), undefined, 'all, until they are seen to renew');
  renew(ids, 1250);
  t.same(watched('ma0'), ['mb', 'mc', 'md'], 'then the next ones');
  t.same(watched('ms0'), ['mt', 'ma', 'mb'], 'on a ring');
  see(['mb', 'mc'] as MemberId[], 1250 + memberDoubtedMs);
  t.same(watched('ma0'), ['mb', 'mc', 'md', 'me', 'mf'], 'one that may be dead watches nobody');
  t.same(
    others.watchedBy('ma0' as MemberId, 1250 + memberDoubtedMs),
    ['mb', 'mc', 'md'],
    'unless the store itself took no renewals',
  );
  others.learn({ id: 'mb' as MemberId, revision: ++revision, value: deadRecord('mb' as MemberId) }, 2000);
  t.same(watched('ma0'), ['mc', 'md', 'me', 'mf'], 'nobody watches the dead');
  t.end();
});
