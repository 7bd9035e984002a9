/** Loads of partitions and the retries of failed ones, in virtual time. */
import t from 'tap';
import { PartitionManager, loadsRevoked } from '../../../actors/membership/partition-manager.ts';
import { memberFor } from '../../../actors/membership/rendezvous.ts';
import { encodeValue } from '../../../actors/runtime/journal/codec.ts';
import type { Partition } from '../../../actors/partition.ts';
import type { Store } from '../../../actors/runtime/store/store.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { MemberId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { containerId, operation, quietLog, specOf } from '../support.ts';
import { createMemorySink, createMemoryStore, MemoryBucket } from '../support/memory-store.ts';
import { memoryJournals } from '../support/journals.ts';
import { createMembers } from '../support/members.ts';
import { createPartition, writeOf } from '../support/partition.ts';
import { acme } from '../support/records.ts';
import { createFractions } from '../support/random.ts';
import { World } from '../../sim/world/time.ts';
import { memberDoubtedMs } from '../../../actors/membership/others.ts';
import { loadAttempts } from '../../../actors/runtime/ownership.ts';

interface Former {
  readonly members: ReturnType<typeof createMembers>;
  readonly bucket: MemoryBucket;
}

function startManager(world: World, former?: Former) {
  const process = world.process('actors');
  const { members, bucket } = former ?? { members: createMembers(), bucket: new MemoryBucket() };
  const loadsAtMs: number[] = [];
  const givenUp: string[] = [];
  const expected: (readonly (readonly number[])[])[] = [];
  let incarnations = 0;
  const state = { isHanging: true, isDamaged: false, isStuck: false };
  const warnings: string[] = [];
  const journals = memoryJournals();
  const memory = createMemoryStore(bucket);
  const store: Store = {
    ...memory,
    async *pages(from) {
      loadsAtMs.push(world.nowMs);
      if (state.isHanging) await new Promise<never>(() => {});
      yield* memory.pages(from);
      // A mark that can't be read: nobody knows which writes were acknowledged.
      if (state.isDamaged) yield [{ key: keys.checkpoint, value: Buffer.from('rot'), revision: 1000 }];
    },
    putBatch: async (writes, epoch) => {
      while (state.isStuck) await sleep(limits.checkpointPaceMs);
      return memory.putBatch(writes, epoch);
    },
  };
  const manager = world.as(
    process,
    () =>
      new PartitionManager({
        partitions: 1,
        members: members.store,
        clock: process.clock,
        log: { ...quietLog, warn: (event) => void warnings.push(event) },
        newId: () => `${former === undefined ? '' : 'next-'}member-${++incarnations}` as MemberId,
        createPartition: (number, more) =>
          createPartition(
            {
              number,
              store,
              journals,
              events: createMemorySink([]),
              log: { ...quietLog, warn: (event) => void warnings.push(event) },
              ...more,
            },
            process.clock,
          ),
        onExpected: (...numbers) => void expected.push(numbers),
        onTaken: () => {},
        onGone: () => {},
        observer: { moved: () => {}, loadGivenUp: (why) => void givenUp.push(why) },
        announce: () => {},
        onWentBack: () => {},
      }),
  );
  /** Declares this member dead, as another does that has seen no renewal. */
  const revoke = (): void => {
    const { id } = manager.membership;
    members.set(id, encodeValue({ id, state: 'dead', renewal: 0, partitions: [] }));
  };
  return { process, manager, members, bucket, journals, loadsAtMs, givenUp, expected, state, warnings, revoke };
}

t.test('a process that loses its lease in each load pauses before the next, twice as long each time', async (t) => {
  const world = new World();
  const { process, manager, loadsAtMs, givenUp, state, revoke } = startManager(world);
  await world.run(createFractions(1), async () => {
    void world.spawn(process, () => manager.start());
    const loads = async (count: number): Promise<boolean> =>
      world.until(() => loadsAtMs.length === count, limits.loadRestMaxMs);
    const restsMs: number[] = [];
    t.ok(await loads(1));
    for (let revoked = 1; revoked <= 4; revoked++) {
      const before = manager.membership.id;
      revoke();
      t.ok(await world.until(() => manager.membership.id !== before, limits.leaseMs));
      const revokedMs = world.nowMs;
      if (revoked === loadsRevoked) t.match(manager.fault() ?? '', /lease/);
      t.ok(await loads(revoked + 1), `load ${revoked + 1}`);
      restsMs.push(world.nowMs - revokedMs);
    }
    const [first = 0, ...rests] = restsMs;
    t.ok(first <= limits.leaseMs, 'the first may have been the fault of anything');
    for (const [index, restMs] of rests.entries()) {
      const expectedMs = limits.loadRestMinMs * 2 ** index;
      t.ok(restMs >= expectedMs && restMs <= expectedMs + limits.leaseMs, `${restMs} ms, after ${expectedMs} ms`);
    }
    t.same(givenUp, ['revoked', 'revoked', 'revoked']);

    // A load that succeeds resets the count.
    state.isHanging = false;
    const before = manager.membership.id;
    revoke();
    t.ok(await world.until(() => manager.membership.id !== before, limits.leaseMs));
    t.ok(await world.until(() => [...manager.serving()].length === 1, limits.loadRestMaxMs));
    state.isHanging = true;
    const served = loadsAtMs.length;
    revoke();
    t.ok(await loads(served + 1), 'taken again');
    const startedMs = world.nowMs;
    revoke();
    t.ok(await loads(served + 2));
    t.ok(world.nowMs - startedMs <= 2 * limits.leaseMs, 'at once, as the first time');
    manager.drop();
  });
});

t.test('a process gives up a partition that it cannot load after a few attempts, and tries again later', async (t) => {
  const world = new World();
  const { process, manager, loadsAtMs, givenUp, state } = startManager(world);
  Object.assign(state, { isHanging: false, isDamaged: true });
  await world.run(createFractions(1), async () => {
    void world.spawn(process, () => manager.start());
    const givenUpTimes = async (times: number): Promise<boolean> =>
      world.until(() => givenUp.length === times, limits.loadRestMaxMs);
    t.ok(await givenUpTimes(1));
    t.equal(loadsAtMs.length, loadAttempts);
    t.match(manager.fault(), /can't load partition 0: the checkpoint mark is damaged/);
    const restedMs = world.nowMs;
    t.ok(await givenUpTimes(2));
    t.equal(loadsAtMs.length, 2 * loadAttempts);
    t.ok((loadsAtMs[loadAttempts] ?? 0) - restedMs >= limits.loadRestMinMs);
    state.isDamaged = false;
    t.ok(await world.until(() => [...manager.serving()].length === 1, limits.loadRestMaxMs), 'it can be loaded again');
    t.equal(manager.fault(), undefined);
    manager.drop();
  });
});

t.test('a partition is expected while its owner is silent and may still live', async (t) => {
  const world = new World();
  const { process, manager, members, expected, state } = startManager(world);
  state.isHanging = false;
  const other = 'other' as MemberId;
  let renewal = 0;
  const renew = (): void => {
    members.set(other, encodeValue({ id: other, state: 'live', renewal: ++renewal, partitions: [0] }));
  };
  const isExpected = (): boolean => expected.at(-1)?.[0]?.includes(0) === true;
  await world.run(createFractions(1), async () => {
    renew();
    void world.spawn(process, () => manager.start());
    for (let rounds = 0; rounds < 20; rounds++) {
      await world.until(() => false, limits.leaseRenewMs / 2);
      renew();
    }
    t.notOk(
      expected.some(([partitions]) => partitions?.includes(0)),
      'it renews',
    );
    const silentMs = world.nowMs;
    t.ok(await world.until(isExpected, limits.leaseMs));
    t.ok(world.nowMs - silentMs >= memberDoubtedMs);
    renew();
    t.ok(await world.until(() => !isExpected(), limits.leaseMs), 'it was only slow');
    t.ok(await world.until(isExpected, limits.leaseMs));
    t.equal([...manager.serving()].length, 0);
    t.ok(await world.until(() => [...manager.serving()].length === 1, 2 * limits.leaseUnchangedMs), 'taken');
    t.ok(await world.until(() => expected.at(-1)?.every((numbers) => numbers.length === 0) === true, limits.leaseMs));
    manager.drop();
  });
});

t.test('a partition is not taken from the member that its epoch names, while that one lives', async (t) => {
  const world = new World();
  const { process, manager, members, bucket, loadsAtMs, state } = startManager(world);
  state.isHanging = false;
  const owner = 'owner' as MemberId;
  bucket.takeEpoch(encodeValue({ token: 'token', owner, takenAtMs: 0 }), 0);
  // By its own record it does not have the partition, and would not take it: its epoch decides.
  let renewal = 0;
  const renew = (): void => {
    members.set(owner, encodeValue({ id: owner, state: 'live', renewal: ++renewal, partitions: [], refused: [0] }));
  };
  await world.run(createFractions(1), async () => {
    renew();
    void world.spawn(process, () => manager.start());
    for (let rounds = 0; rounds < 40; rounds++) {
      await world.until(() => false, limits.leaseRenewMs);
      renew();
    }
    t.same([loadsAtMs.length, [...manager.serving()].length], [0, 0]);
    const silentMs = world.nowMs;
    t.ok(await world.until(() => [...manager.serving()].length === 1, 3 * limits.leaseUnchangedMs), 'it is dead');
    t.ok(world.nowMs - silentMs >= limits.leaseUnchangedMs);
    manager.drop();
  });
});

t.test('a partition that another refuses is not kept for it', async (t) => {
  const world = new World();
  const { process, manager, members, state } = startManager(world);
  state.isHanging = false;
  const live = (id: MemberId, renewal: number): void => {
    members.set(id, encodeValue({ id, state: 'live', renewal, partitions: [], refused: [0] }));
  };
  await world.run(createFractions(1), async () => {
    const others = Array.from({ length: 16 }, (_, index) => `other-${index}` as MemberId);
    for (const id of others) live(id, 1);
    t.not(memberFor(0, [manager.membership.id, ...others]), manager.membership.id, 'one of the others comes first');
    void world.spawn(process, () => manager.start());
    let renewal = 1;
    const isServing = (): boolean => [...manager.serving()].length === 1;
    for (let rounds = 0; rounds < 40 && !isServing(); rounds++) {
      renewal++;
      for (const id of others) live(id, renewal);
      await world.until(isServing, limits.leaseRenewMs);
    }
    t.ok(isServing(), 'taken');
    for (let rounds = 0; rounds < 40; rounds++) {
      renewal++;
      for (const id of others) live(id, renewal);
      await world.until(() => !isServing(), limits.leaseRenewMs);
    }
    t.ok(isServing(), 'and not given to those who refuse it');
    manager.drop();
  });
});

t.test('a partition that cannot be released is served on, and given away later', async (t) => {
  const world = new World();
  const { process, manager, members, state, warnings } = startManager(world);
  state.isHanging = false;
  const isServing = (): boolean => [...manager.serving()].length === 1;
  const refusals = (): number => warnings.filter((event) => event === 'partition_release_failed').length;
  await world.run(createFractions(1), async () => {
    void world.spawn(process, () => manager.start());
    t.ok(await world.until(isServing, limits.leaseMs));
    const [partition] = [...manager.serving()];
    state.isStuck = true;
    const create = { type: 'container.create', tenant: acme, id: containerId(), spec: specOf('a') } as const;
    const creating = { ...create, op: operation(), idempotency: null };
    let code: string | undefined;
    void world.spawn(process, async () => ({ code } = await writeOf(partition as Partition, creating)));
    t.ok(await world.until(() => code === 'created', limits.leaseMs));
    // Others come, one of which the partition is assigned to.
    const others = Array.from({ length: 16 }, (_, index) => `other-${index}` as MemberId);
    let renewal = 0;
    const renewed = async (until: () => boolean, rounds: number): Promise<boolean> => {
      for (let round = 0; round < rounds && !until(); round++) {
        renewal++;
        for (const id of others) {
          members.set(id, encodeValue({ id, state: 'live', renewal, partitions: [], refused: [] }));
        }
        await world.until(until, limits.leaseRenewMs);
      }
      return until();
    };
    t.ok(await renewed(() => refusals() > 0, 200), 'it is to be given away');
    t.same([...manager.serving()], [partition], 'and served on');
    t.ok(await renewed(() => refusals() > 1, 200), 'this is tried again');
    state.isStuck = false;
    t.ok(await renewed(() => !isServing(), 200), 'until it is given away');
    t.equal(manager.fault(), '1 of 1 partitions have no owner');
    manager.drop();
  });
});

t.test('a process that stops while a partition is stored again waits until it is', async (t) => {
  const world = new World();
  const { process, manager, members, bucket, journals, state, warnings } = startManager(world);
  state.isHanging = false;
  await world.run(createFractions(1), async () => {
    void world.spawn(process, () => manager.start());
    t.ok(await world.until(() => [...manager.serving()].length === 1, limits.leaseMs));
    const [partition] = [...manager.serving()];
    const create = { type: 'container.create', tenant: acme, id: containerId(), spec: specOf('a') } as const;
    let code: string | undefined;
    void world.spawn(process, async () => {
      ({ code } = await writeOf(partition as Partition, { ...create, op: operation(), idempotency: null }));
    });
    t.ok(await world.until(() => code === 'created', limits.leaseMs));
    state.isStuck = true;
    journals.hold();
    t.ok(manager.storeAgain());
    let isStopped = false;
    void world.spawn(process, async () => {
      await manager.stop();
      isStopped = true;
    });
    t.notOk(await world.until(() => isStopped, 10 * limits.leaveMs));
    t.ok(warnings.filter((event) => event === 'stop_awaits_partitions_stored_again').length > 5, 'it says so');
    t.ok(manager.membership.lease().isValid(), 'nobody else takes it meanwhile');
    state.isStuck = false;
    t.ok(await world.until(() => isStopped, limits.leaveMs));
    t.ok(warnings.includes('partition_stored_again'));
    const next = startManager(world, { members, bucket });
    next.state.isHanging = false;
    void world.spawn(next.process, () => next.manager.start());
    t.ok(
      await world.until(() => [...next.manager.serving()].length === 1, 10 * limits.leaseMs),
      'and the next loads it',
    );
    const [loaded] = [...next.manager.serving()];
    t.ok(loaded?.view.tenant(acme).names.has('a'));
  });
});
