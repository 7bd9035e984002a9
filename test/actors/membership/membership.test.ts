/** Leases, and which members are dead, in virtual time. */
import t from 'tap';
import { Membership } from '../../../actors/membership/membership.ts';
import type { MemberStore } from '../../../actors/membership/member-store.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import type { MemberId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { quietLog } from '../support.ts';
import { createMembers } from '../support/members.ts';
import { createFractions } from '../support/random.ts';
import { World } from '../../sim/world/time.ts';

/** A member over a store. */
function startMember(world: World, store: MemberStore, name: string, onRenewed = (_: Membership): void => {}) {
  const process = world.process(name);
  const events: string[] = [];
  let incarnations = 0;
  const membership = world.as(
    process,
    () =>
      new Membership({
        store,
        clock: process.clock,
        log: quietLog,
        newId: () => `${name}-${++incarnations}` as MemberId,
        serving: () => [],
        refused: () => [],
        onRenewed: () => {
          events.push('renewed');
          onRenewed(membership);
        },
        onRevoked: () => events.push('revoked'),
        onWentBack: () => events.push('went back'),
        onLooked: () => {},
        announce: () => {},
      }),
  );
  void world.spawn(process, () => membership.start());
  return { process, membership, events };
}

t.test('a renewal that was answered during a pause is worth nothing after it', async (t) => {
  const world = new World();
  let revision = 0;
  const store: MemberStore = {
    list: async () => Promise.resolve([]),
    readSome: async () => Promise.resolve([]),
    read: async () => Promise.resolve({ revision, value: null }),
    replace: async () => {
      await sleep(10);
      return ++revision;
    },
  };
  const validAtMs: number[] = [];
  await world.run(createFractions(1), async () => {
    const { process, membership } = startMember(world, store, 'member', (member) => {
      if (member.lease().isValid()) validAtMs.push(world.nowMs);
    });
    // The first renewal is under way when the process is stopped, and answered while it is.
    await world.until(() => false, 5);
    world.pause(process);
    await world.until(() => false, 3 * limits.leaseMs);
    t.same(validAtMs, []);
    world.resume(process);
    await world.until(() => revision > 0, 1);
    t.same(validAtMs, [], 'the answer is taken in, and the lease is over');
    t.notOk(membership.lease().isValid());
    await world.until(() => validAtMs.length > 0, limits.leaseMs);
    t.ok(membership.lease().isValid(), 'until the next');
  });
});

/** Runs the world for so long, whatever happens. */
const pass = async (world: World, ms: number): Promise<boolean> => world.until(() => false, ms);

t.test('a renewal whose acknowledgement was lost is found, and counts for nothing', async (t) => {
  const world = new World();
  const { store } = createMembers();
  let isLost = false;
  const losing: MemberStore = {
    ...store,
    replace: async (...args) => {
      const revision = await store.replace(...args);
      if (!isLost) return revision;
      isLost = false;
      throw new Error('lost');
    },
  };
  await world.run(createFractions(1), async () => {
    const { membership, events } = startMember(world, losing, 'm');
    t.ok(await world.until(() => events.length === 2, limits.leaseMs));
    isLost = true;
    await pass(world, 4 * limits.leaseRenewMs);
    t.notOk(isLost);
    t.ok(membership.lease().isValid());
    t.equal(membership.id, 'm-1');
    t.notOk(events.includes('revoked'));
  });
});

t.test('a member is dead by its record, or because it cannot come any more', async (t) => {
  const world = new World();
  const { store } = createMembers();
  await world.run(createFractions(1), async () => {
    const one = startMember(world, store, 'one');
    const other = startMember(world, store, 'other');
    await pass(world, limits.leaseMs);
    const isDead = async (id: string): Promise<boolean | undefined> => {
      let answer: boolean | undefined;
      const asking = async () => void (answer = await one.membership.isDead(id as MemberId));
      void world.spawn(one.process, asking);
      await world.until(() => answer !== undefined, limits.leaseMs);
      return answer;
    };
    t.equal(await isDead('never-there'), true);
    t.equal(await isDead('never-there'), true, 'and stays so');
    const { id } = other.membership;
    t.equal(await isDead(id), false);
    const lease = other.membership.lease();
    t.ok(lease.isValid());
    void world.spawn(other.process, () => other.membership.stop());
    await pass(world, limits.leaseMs);
    t.equal(await isDead(id), true);
    t.notOk(lease.isValid());
  });
});

t.test('while no member can renew, none is declared dead', async (t) => {
  const world = new World();
  const { store } = createMembers();
  let isAway = false;
  const leaderless: MemberStore = {
    ...store,
    replace: async (...args) => (isAway ? Promise.reject(new Error('no leader')) : store.replace(...args)),
  };
  await world.run(createFractions(1), async () => {
    const members = ['a', 'b', 'c'].map((name) => startMember(world, leaderless, name).membership);
    await pass(world, limits.leaseMs);
    const ids = members.map(({ id }) => id);
    isAway = true;
    await pass(world, 3 * limits.leaseUnchangedMs);
    t.notOk(members.some((membership) => membership.lease().isValid()));
    isAway = false;
    t.ok(await world.until(() => members.every((membership) => membership.lease().isValid()), limits.leaseMs));
    await pass(world, 2 * limits.leaseUnchangedMs);
    t.same(
      members.map(({ id }) => id),
      ids,
    );
  });
});

t.test('a look that gets no answer holds up no renewal', async (t) => {
  const world = new World();
  const { store } = createMembers();
  let isHeldUp = false;
  const silent: MemberStore = {
    ...store,
    list: async () => (isHeldUp ? new Promise<never>(() => {}) : store.list()),
  };
  await world.run(createFractions(1), async () => {
    const { events } = startMember(world, silent, 'm');
    await pass(world, limits.leaseMs);
    isHeldUp = true;
    const renewed = events.length;
    t.ok(await world.until(() => events.length >= renewed + 5, 6 * limits.leaseRenewMs));
  });
});

t.test('a member whose journal was sealed goes on as another', async (t) => {
  const world = new World();
  const { store } = createMembers();
  await world.run(createFractions(1), async () => {
    const { membership, events } = startMember(world, store, 'm');
    const other = startMember(world, store, 'other');
    await pass(world, limits.leaseMs);
    const lease = membership.lease();
    t.ok(lease.isValid());
    const before = membership.id;
    void membership.abandon(before);
    await pass(world, 1);
    t.notOk(lease.isValid(), 'at once');
    t.same(
      events.filter((event) => event === 'revoked'),
      ['revoked'],
    );
    t.not(membership.id, before);
    t.match(await store.read(before), { value: /"state":"dead"/ }, 'the others need not wait');
    await pass(world, limits.leaseMs);
    t.ok(membership.lease().isValid(), 'as another member');
    t.same(membership.live().toSorted(), [membership.id, other.membership.id].toSorted());
    void membership.abandon(before);
    await pass(world, limits.leaseRenewMs);
    t.equal(events.filter((event) => event === 'revoked').length, 1, 'of the former member nothing is left to end');
  });
});

t.test('a member that cannot say that it is dead goes on as another all the same', async (t) => {
  const world = new World();
  const { store } = createMembers();
  let isAway = false;
  const failing: MemberStore = {
    ...store,
    replace: async (...args) => (isAway ? Promise.reject(new Error('no answer')) : store.replace(...args)),
  };
  await world.run(createFractions(1), async () => {
    const { membership, events } = startMember(world, failing, 'm');
    await pass(world, limits.leaseMs);
    const before = membership.id;
    isAway = true;
    void membership.abandon(before);
    await pass(world, 1);
    t.not(membership.id, before);
    t.ok(events.includes('revoked'));
    isAway = false;
    t.ok(await world.until(() => membership.lease().isValid(), 2 * limits.leaseMs));
  });
});

t.test('what was seen of a member in a store that went back does not count for long', async (t) => {
  const world = new World();
  const { store, copy } = createMembers();
  await world.run(createFractions(1), async () => {
    const { membership } = startMember(world, store, 'm');
    const other = startMember(world, store, 'other');
    await pass(world, 2 * limits.leaseMs);
    const before = [membership.id, other.membership.id];
    const goBack = copy();
    await pass(world, 20 * limits.leaseMs);
    goBack();
    // Partitions have shown it to both before a renewal could.
    void membership.abandon(membership.id);
    void world.spawn(other.process, () => other.membership.abandon(other.membership.id));
    const isNew = (): boolean => membership.live().every((id) => !before.includes(id));
    t.ok(await world.until(() => membership.live().length === 2 && isNew(), 4 * limits.leaseMs));
  });
});

t.test('a renewal in the place of an older one than was acknowledged: the store went back', async (t) => {
  const world = new World();
  const { store, copy } = createMembers();
  const state = { isLost: false, isStale: false };
  let stale: { readonly revision: number; readonly value: string | null } | undefined;
  const shaky: MemberStore = {
    ...store,
    read: async (id) => (state.isStale && stale !== undefined ? Promise.resolve(stale) : store.read(id)),
    replace: async (...args) => {
      const revision = await store.replace(...args);
      if (!state.isLost) return revision;
      state.isLost = false;
      throw new Error('lost');
    },
  };
  await world.run(createFractions(1), async () => {
    const { membership, events } = startMember(world, shaky, 'm');
    const other = startMember(world, store, 'other');
    await pass(world, limits.leaseMs);
    // Read from a leader that is cut off: the next renewals are refused.
    stale = await store.read(membership.id);
    await pass(world, limits.leaseMs);
    Object.assign(state, { isLost: true, isStale: true });
    await pass(world, 2 * limits.leaseRenewMs);
    state.isStale = false;
    await pass(world, 4 * limits.leaseRenewMs);
    t.notOk(events.includes('went back'));
    const goBack = copy();
    await pass(world, limits.leaseMs);
    goBack();
    await pass(world, 4 * limits.leaseRenewMs);
    for (const one of [{ membership, events }, other]) {
      t.equal(one.events.filter((event) => event === 'went back').length, 1);
      t.notOk(one.events.includes('revoked'));
      t.ok(one.membership.lease().isValid());
    }
    t.equal(membership.live().length, 2, 'though what is known of the other was newer');
    void world.spawn(other.process, () => other.membership.stop());
    t.ok(await world.until(() => membership.live().length === 1, limits.leaseMs));
  });
});
