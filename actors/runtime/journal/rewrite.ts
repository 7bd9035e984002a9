/**
 * Stores all of a partition's memory again, after its bucket went back in time (ADR 48): every
 * record, the events and lines that their streams may lack, and the outcomes of operations. All
 * other keys are deleted: the store may have forgotten a deletion.
 *
 * The first batch makes every load refuse the bucket, by a digest of a commit after the mark; the
 * last one brings the digest of the mark. So the bucket is loaded whole or not at all, wherever the
 * owner dies. Its mark names no journal, because the journals went back, too: all commits are in
 * the records. Each batch is fenced as any other write; another owner wins.
 */
import { backoffMs, sleep } from '../../../lib/time/backoff.ts';
import type { ClockReading } from '../../../lib/time/cautious-clock.ts';
import type { Slices } from '../../../lib/time/slices.ts';
import { StoreError } from '../../../lib/nats/kv-keys.ts';
import { limits } from '../../../schemas/limits.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { RecordFormat } from '../domain.ts';
import type { Fence } from '../store/fence.ts';
import type { Store, StoreWrite } from '../store/store.ts';
import { batchWrites } from './checkpoint.ts';
import { bytesOf, checksumOf, encodeValue } from './codec.ts';
import { RecordsDigest } from './digest.ts';
import type { Journal } from './journal.ts';
import { encodeMark } from './mark.ts';

export interface RewriteOptions<R> {
  readonly store: Store;
  readonly fence: Fence;
  readonly slices: Slices;
  readonly inTurn: Journal['inTurn'];
  readonly signal: AbortSignal;
  readonly format: RecordFormat<R>;
  /** The number of the last commit that memory has. */
  readonly last: number;
  readonly clock: ClockReading;
  /** The digest of the records at this commit, as they were committed. */
  readonly digest: RecordsDigest;
  /** The records in memory, which must not change meanwhile. */
  readonly records: () => Iterable<R>;
  /** Keys whose record is damaged: memory lacks it. */
  readonly quarantined: ReadonlySet<string>;
  /** Called when the records are stored: all other keys that a load needs. */
  readonly others: () => Promise<readonly StoreWrite[]>;
}

/** Stored in place of a damaged record that the store has lost: it stays damaged. */
const lostRecord = 'lost when the store went back in time';

/**
 * @returns lost: another process has the partition
 * @throws where the bucket can't be read now, or memory is not what was committed (our bug)
 */
export async function rewrite<R>(options: RewriteOptions<R>): Promise<'written' | 'lost'> {
  const { store, fence, slices, inTurn, signal, format, last, clock, digest, quarantined, others } = options;
  const stored = new RecordsDigest(format);
  const markAt = (number: number) => ({ number, journals: [] });
  const write = async (batch: readonly StoreWrite[]) =>
    inTurn(async () => fence.write((epoch) => store.putBatch(batch, epoch)));
  const writeAll = async (writes: Iterable<StoreWrite>): Promise<boolean> => {
    const rest = writes[Symbol.iterator]();
    for (;;) {
      const batch = await slices.run('store', taking(rest), signal);
      if (batch.length === 0) return true;
      if ((await write(batch)).kind === 'lost') return false;
    }
  };

  await slices.run('store', comparing(options), signal);
  const begun = await write([
    { key: keys.digest, value: encodeValue(digest.at(last + 1)) },
    { key: keys.checkpoint, value: encodeMark(markAt(last)) },
  ]);
  if (begun.kind === 'lost') return 'lost';
  const there = await keysThere(store, begun.sequence, signal);

  function* records(): Generator<StoreWrite, void, void> {
    for (const record of options.records()) {
      const write = { key: format.keyOf(record), value: encodeValue(record) };
      stored.set(write.key, write.value);
      yield write;
    }
    for (const key of quarantined) {
      const checksum = digest.checksumOf(key);
      if (checksum === undefined || stored.checksumOf(key) !== undefined) continue;
      // The damaged value itself stays, if it is there: it may be repaired.
      if (there.get(key) === checksum) stored.keep(key, checksum);
      else {
        stored.set(key, lostRecord);
        yield { key, value: lostRecord };
      }
    }
    for (const key of there.keys()) {
      if (format.isKey(key) && stored.checksumOf(key) === undefined) yield { key, value: null };
    }
  }

  if (!(await writeAll(records()))) return 'lost';
  const more = await others();
  const kept = new Set(more.map(({ key }) => key));
  const gone = [...there.keys()].filter((key) => /^(?:events|audit)\./.test(key) && !kept.has(key));
  if (!(await writeAll([...more, ...gone.map((key) => ({ key, value: null }))]))) return 'lost';
  const ended = await write(batchWrites([], stored, markAt, { mark: last, clock }));
  return ended.kind === 'lost' ? 'lost' : 'written';
}

/** Memory has the records that were committed, and no others; a record is a step. */
function* comparing<R>({ records, format, digest, quarantined }: RewriteOptions<R>): Generator<void, void, void> {
  const found = new Set<string>();
  for (const record of records()) {
    const key = format.keyOf(record);
    found.add(key);
    if (digest.checksumOf(key) === undefined) throw new Error(`memory has ${key}, which was not committed`);
    yield;
  }
  for (const key of digest.keys()) {
    if (!found.has(key) && !quarantined.has(key)) throw new Error(`memory lacks ${key}, which was committed`);
    yield;
  }
}

/** Takes as many writes as a batch holds; a write is a step. */
function* taking(writes: Iterator<StoreWrite, void, void>): Generator<void, StoreWrite[], void> {
  const batch: StoreWrite[] = [];
  let bytes = 0;
  while (batch.length < limits.checkpointBatchMessages && bytes < limits.checkpointBatchBytes) {
    const next = writes.next();
    if (next.done === true) return batch;
    batch.push(next.value);
    bytes += next.value.key.length + bytesOf(next.value.value ?? '');
    yield;
  }
  return batch;
}

/**
 * The keys of the bucket, and the checksums of their values.
 * @param until the newest sequence: nobody else writes there
 */
async function keysThere(store: Store, until: number, signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
  const there = new Map<string, number>();
  let next = 1;
  for (let attempt = 0; ; attempt++) {
    for await (const page of store.pages(next)) {
      signal.throwIfAborted();
      for (const { key, value, revision } of page) {
        if (value === null) there.delete(key);
        else there.set(key, checksumOf(value));
        next = revision + 1;
      }
    }
    if (next > until) return there;
    if (attempt === limits.loadTailAttempts) throw new StoreError(`no replica has what was written at ${until}`);
    await sleep(backoffMs(attempt, { minMs: limits.loadTailMinMs, maxMs: limits.loadTailMaxMs }), signal);
  }
}
