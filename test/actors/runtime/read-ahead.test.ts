/** Reading partitions ahead: the choice of partitions, its bounds, and its expiry. */
import t from 'tap';
import { records as format } from '../../../actors/domain/domain.ts';
import { recordKey } from '../../../actors/domain/records.ts';
import { encodeValue } from '../../../actors/runtime/journal/codec.ts';
import { ReadAhead, readAheadKeptMs, readAheadPartitions, readAheadBytes } from '../../../actors/runtime/read-ahead.ts';
import type { Store, StoredValue } from '../../../actors/runtime/store/store.ts';
import { createSlices } from '../../../lib/time/slices.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { MiB } from '../../../schemas/limits/units.ts';
import { until } from '../../support/until.ts';
import { quietLog } from '../support.ts';
import { container } from '../support/records.ts';
import { deleteMarkerTtlMs } from '../../../actors/runtime/store/jetstream-store.ts';

const slices = createSlices(systemClock);
const { signal } = new AbortController();
const page = (...revisions: readonly number[]): StoredValue[] =>
  revisions.map((revision) => {
    const record = container();
    return { key: recordKey(record), value: Buffer.from(encodeValue(record)), revision };
  });

function start(pages: Store['pages']) {
  const clock = { atMs: 1_000_000, ms: 0, nowMs: () => clock.atMs, monotonicMs: () => clock.ms };
  const failed: unknown[] = [];
  const readAhead = new ReadAhead({
    storeOf: () => ({ pages }),
    format,
    clock,
    slices,
    log: { ...quietLog, warn: (event) => void failed.push(event) },
  });
  return { readAhead, clock, failed };
}

async function* twoPages(from: number) {
  if (from <= 1) yield Promise.resolve(page(1));
  if (from <= 2) yield page(2);
}

t.test('a partition that was read ahead is given out once', async (t) => {
  const { readAhead } = start(twoPages);
  t.equal(await readAhead.take(0), undefined);
  readAhead.look([0], []);
  readAhead.look([], [0]);
  t.equal((await readAhead.take(0))?.records.size, 1, 'the page that was under way');
  t.equal(await readAhead.take(0), undefined);
});

t.test('a load continues where the reading ahead was stopped', async (t) => {
  const asked: number[] = [];
  const { readAhead } = start(async function* (from) {
    asked.push(from);
    yield* twoPages(from);
  });
  readAhead.look([0], []);
  const reading = await readAhead.take(0);
  await reading?.readOn({ store: { pages: twoPages }, slices }, signal);
  t.equal(reading?.records.size, 2);
  t.same(asked, [1]);
});

t.test('a read that is too old on either clock is not used', async (t) => {
  for (const what of ['ms', 'atMs'] as const) {
    const { readAhead, clock } = start(twoPages);
    readAhead.look([0, 1], []);
    clock[what] += readAheadKeptMs - 1;
    t.ok(await readAhead.take(0));
    clock[what] += 1;
    t.equal(await readAhead.take(1), undefined);
  }
  t.ok(readAheadKeptMs * 100 <= deleteMarkerTtlMs, 'a delete marker outlives it by far');
});

t.test('a partition that another process takes, or its member has kept, is dropped', async (t) => {
  const { readAhead } = start(twoPages);
  readAhead.look([0, 1], []);
  readAhead.look([1], []);
  t.equal(await readAhead.take(0), undefined);
  t.ok(await readAhead.take(1));
  readAhead.look([], [0, 1]);
  t.equal(await readAhead.take(0), undefined, 'nothing begins when it is being taken already');
});

t.test('a failed read is not used', async (t) => {
  const { readAhead, failed } = start(async function* () {
    yield Promise.resolve(page(1));
    throw new Error('a page has a gap');
  });
  readAhead.look([0], []);
  await until('it failed', () => failed.length > 0);
  t.equal(await readAhead.take(0), undefined);
  t.same(failed, ['read_ahead_failed']);
});

t.test('partitions and bytes are bounded', async (t) => {
  const value = new Uint8Array(64 * MiB);
  let read = 0;
  const { readAhead } = start(async function* (from) {
    for (let revision = from; ; revision++) {
      read++;
      yield Promise.resolve([{ key: `ops.${revision}`, value, revision }]);
    }
  });
  readAhead.look([0], []);
  await until('enough was read', () => read * value.length >= readAheadBytes);
  const reading = await readAhead.take(0);
  t.equal(reading?.bytes, readAheadBytes);

  const begun = new Set<number>();
  const many = new ReadAhead({
    storeOf: (partition) => {
      begun.add(partition);
      return { pages: twoPages };
    },
    format,
    clock: systemClock,
    slices,
    log: quietLog,
  });
  many.look(
    Array.from({ length: 2 * readAheadPartitions }, (_, partition) => partition),
    [],
  );
  t.equal(begun.size, readAheadPartitions);
});
