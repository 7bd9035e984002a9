/**
 * A reading of a partition's bucket, from its first sequence on. Records are decoded page by page,
 * so that the bytes of a page are free again when the next one arrives.
 *
 * A reading may begin before its process takes the partition (read-ahead.ts). A key has one value,
 * the newest, and sequences only grow: so a value that is written after its place was passed is
 * found later, behind it, and replaces what was read. The same holds for a delete marker, for as
 * long as it is kept. A reading is the partition's state once it has come to the own epoch's record
 * (ADR 4), because nobody else writes after that.
 */
import { backoffMs, sleep } from '../../lib/time/backoff.ts';
import type { Slices } from '../../lib/time/slices.ts';
import { StoreError } from '../../lib/nats/kv-keys.ts';
import { keys } from '../../schemas/records/buckets.ts';
import { limits } from '../../schemas/limits.ts';
import type { RecordFormat } from './domain.ts';
import { decodeValue, type Encoded, type Shape } from './journal/codec.ts';
import { RecordsDigest } from './journal/digest.ts';
import type { Store, StoredValue } from './store/store.ts';

export interface ReadingFrom {
  readonly store: Pick<Store, 'pages'>;
  readonly slices: Slices;
}

export class Reading<R> {
  readonly #format: RecordFormat<R>;
  readonly #shape: Shape<R>;
  #next = 1;
  #bytes = 0;
  readonly #records = new Map<string, R>();
  readonly #unreadable = new Map<string, Encoded>();
  readonly #others = new Map<string, StoredValue>();
  readonly digest: RecordsDigest;

  constructor(format: RecordFormat<R>) {
    this.#format = format;
    this.#shape = { Check: (value) => format.isRecord(value) };
    this.digest = new RecordsDigest(format);
  }

  /** By key. */
  get records(): ReadonlyMap<string, R> {
    return this.#records;
  }
  /** Values under keys of records that are damaged, or not that record. */
  get unreadable(): ReadonlyMap<string, Encoded> {
    return this.#unreadable;
  }
  /** Bytes of the values, those included that were replaced meanwhile. */
  get bytes(): number {
    return this.#bytes;
  }
  /** All but the records: the runtime's own. */
  others(): StoredValue[] {
    return [...this.#others.values()];
  }

  /** `undefined` if the value is no record with this key. */
  decode(key: string, value: Encoded): R | undefined {
    const decoded = decodeValue(value, this.#shape);
    return decoded.ok && this.#format.keyOf(decoded.value) === key ? decoded.value : undefined;
  }

  /** A value is a step. */
  *taking(page: Iterable<StoredValue>): Generator<void, void, void> {
    for (const stored of page) {
      this.#take(stored);
      this.#next = stored.revision + 1;
      yield;
    }
  }

  /** Reads to the end, as the replicas have it that answer, or until `isOver`. */
  async readOn({ store, slices }: ReadingFrom, signal: AbortSignal, isOver?: () => boolean): Promise<void> {
    for await (const page of store.pages(this.#next)) {
      await slices.run('load', this.taking(page), signal);
      if (isOver?.() === true) return;
    }
  }

  /** @throws StoreError where no replica has it, or the epoch has moved. */
  async readTo(epoch: number, from: ReadingFrom, signal: AbortSignal): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      await this.readOn(from, signal);
      const seen = this.#others.get(keys.epoch)?.revision ?? 0;
      if (seen === epoch) return;
      if (seen > epoch || attempt === limits.loadTailAttempts) {
        throw new StoreError(`a load did not see epoch ${epoch}: stale replica, or the epoch has moved`);
      }
      // A replica that lags catches up soon; the rest need not be read again.
      await sleep(backoffMs(attempt, { minMs: limits.loadTailMinMs, maxMs: limits.loadTailMaxMs }), signal);
      signal.throwIfAborted();
    }
  }

  #take(stored: StoredValue): void {
    const { key, value } = stored;
    this.#bytes += value?.length ?? 0;
    if (!this.#format.isKey(key)) {
      this.#others.set(key, stored);
      return;
    }
    this.digest.set(key, value);
    this.#records.delete(key);
    this.#unreadable.delete(key);
    if (value === null) return;
    const record = this.decode(key, value);
    if (record === undefined) this.#unreadable.set(key, value);
    else this.#records.set(key, record);
  }
}
