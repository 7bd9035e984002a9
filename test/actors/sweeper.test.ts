/** The schedule of sweeps and their turns; domain/host.test.ts has their decisions. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { directoryEntry } from '../../actors/domain/host/decide.ts';
import { recordKey, type StateRecord } from '../../actors/domain/records.ts';
import { Fleet } from '../../actors/endpoints/fleet.ts';
import type { Partition } from '../../actors/partition.ts';
import { encodeValue } from '../../actors/runtime/journal/codec.ts';
import { Sweeper, sweepsMissed } from '../../actors/sweeper.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createSlices } from '../../lib/time/slices.ts';
import { limits } from '../../schemas/limits.ts';
import { until } from '../support/until.ts';
import { quietLog } from './support.ts';
import { createMemorySink, createMemoryStore, MemoryBucket } from './support/memory-store.ts';
import { createPartition, quietObserver } from './support/partition.ts';
import { container, h1, hostRecord, none, observation, unplaced, waitingIn } from './support/records.ts';

/** A process with partitions that have these records, and a host that is up. */
async function start(t: Test, ...partitionRecords: readonly (readonly StateRecord[])[]) {
  let monotonicMs = 1_000_000;
  let sliceMs = 0;
  const state = { isConnected: true, onSwept: (): void => {} };
  const clock: Clock = { nowMs: () => 1_000_000, monotonicMs: () => monotonicMs };
  const fleet = new Fleet({ clock, partitions: 1, hostUnknownMs: 60_000 });
  const entries = [directoryEntry(hostRecord(h1))];
  fleet.learn({ partition: 0, epoch: 1, revision: 1, changes: 1, full: true, entries, removed: [], unreadable: [] });
  const quiet = { orphans_held: 0, volumes_left: 0, faults: [], room: {} };
  fleet.takeHeartbeat(h1, { v: 1, session: 1, used: none, engine: 'test', ...quiet });

  const turns: number[] = [];
  const createOne = async (records: readonly StateRecord[], number: number): Promise<Partition> => {
    const bucket = new MemoryBucket();
    for (const record of records) bucket.set(recordKey(record), encodeValue(record));
    const observer = { ...quietObserver, turn: () => void turns.push(number) };
    const store = createMemoryStore(bucket);
    const partition = createPartition({ number, store, events: createMemorySink([]), fleet, observer });
    await partition.start();
    t.teardown(() => partition.drop());
    return partition;
  };
  const partitions = await Promise.all(partitionRecords.map(createOne));
  const swept: number[] = [];
  const faults: string[] = [];
  const sweeper = new Sweeper({
    owned: () => partitions,
    fleet,
    isConnected: () => state.isConnected,
    hostLostMs: 1000,
    fenceMarginMs: 0,
    revokedKeysKeptMs: 1000,
    clock,
    // A slice is over at each look at this clock.
    slices: createSlices({ monotonicMs: () => (sliceMs += limits.sliceMs) }),
    log: { ...quietLog, error: (event) => void faults.push(event) },
    onSwept: ({ number }) => {
      swept.push(number);
      state.onSwept();
    },
  });
  return { sweeper, fleet, partitions, state, turns, swept, faults, pass: (ms: number) => void (monotonicMs += ms) };
}

const waiting = (count: number) =>
  Array.from({ length: count }, (_, index) =>
    container({ placement: unplaced, observed: observation('pending') }, `c${index}`),
  );
const leftIn = (partition: Partition | undefined): number => (partition === undefined ? 0 : waitingIn(partition.view));

t.test('a sweep takes a turn for each slice, the partitions in turns, and no second one of a partition', async (t) => {
  const { sweeper, partitions, turns, swept } = await start(t, waiting(8), waiting(8));
  sweeper.sweep();
  sweeper.sweep();
  await until('both are swept', () => swept.length === 2);
  t.same(partitions.map(leftIn), [0, 0]);
  t.ok(turns.length >= 16, 'a container at a time');
  t.same(turns.slice(0, 6), [0, 1, 0, 1, 0, 1]);
  sweeper.sweep();
  await until('the next sweep', () => swept.length === 4);
  t.same([...swept].sort(), [0, 0, 1, 1], 'two sweeps of each, not three');
});

t.test('a process that is cut off decides nothing; it sweeps when it is back', async (t) => {
  const { sweeper, partitions, state, turns, swept } = await start(t, waiting(1));
  state.isConnected = false;
  sweeper.sweep();
  for (let turn = 0; turn < 10; turn++) await nextTurn();
  state.isConnected = true;
  t.same([turns, leftIn(partitions[0])], [[], 1]);
  sweeper.sweep();
  await until('swept', () => swept.length > 0);
  t.equal(leftIn(partitions[0]), 0);
});

t.test('sweeps that were missed say that the process stood: no host was silent then', async (t) => {
  const { sweeper, fleet, state, pass } = await start(t, []);
  const gapMs = sweepsMissed * limits.sweepIntervalMs;
  pass(gapMs);
  sweeper.sweep();
  t.equal(fleet.silentMs(h1), gapMs, 'a few may be late');
  pass(gapMs + 1);
  sweeper.sweep();
  t.equal(fleet.silentMs(h1), gapMs);
  state.isConnected = false;
  pass(60_000);
  sweeper.sweep();
  t.equal(fleet.silentMs(h1), gapMs, 'also before it notices that it is cut off');
  for (let sweeps = 0; sweeps < 10; sweeps++) {
    pass(limits.sweepIntervalMs);
    sweeper.sweep();
  }
  t.equal(fleet.silentMs(h1), gapMs + 10 * limits.sweepIntervalMs, 'a process that is cut off does not stand');
});

t.test('a partition that goes away in the middle of its sweep ends that one alone', async (t) => {
  const { sweeper, partitions, swept, faults } = await start(t, waiting(50), waiting(4));
  sweeper.sweep();
  while (leftIn(partitions[0]) === 50) await nextTurn();
  partitions[0]?.drop();
  await until('the other is swept', () => swept.includes(1));
  await until('the first has ended', () => swept.includes(0));
  t.equal(leftIn(partitions[1]), 0);
  t.ok(leftIn(partitions[0]) > 40, 'the rest is for the next owner');
  t.same(faults, []);
});

t.test('a sweep that fails is logged, and its partition is swept again', async (t) => {
  const { sweeper, state, swept, faults } = await start(t, []);
  state.onSwept = () => {
    state.onSwept = () => {};
    throw new Error('a bug');
  };
  sweeper.sweep();
  await until('the fault', () => faults.length > 0);
  t.same(faults, ['sweep_failed']);
  sweeper.sweep();
  await until('the next', () => swept.length === 2);
  t.equal(faults.length, 1);
});
