/**
 * The number of records under their own keys, and a sum over them. The checkpointer updates it as
 * it writes, and a load compares. So a load notices records that a damaged replica has lost, and
 * does not take them for records that never existed (ADR 11).
 */
import { crc32 } from 'node:zlib';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import type { RecordFormat } from '../domain.ts';
import { checksumOf, type Encoded } from './codec.ts';

/** The stored form. A damaged value changes one of the two sums, a missing record both. */
const sums = { count: Type.Integer(), keys: Type.Number(), values: Type.Number() };
const StoredDigest = Type.Object({
  /** The checkpoint mark that it belongs to. */
  mark: Type.Integer(),
  ...sums,
  /** Sums over the kinds that `RecordFormat.isNewKey` names. */
  added: Type.Object(sums),
  /**
   * Sums over the kinds that `RecordFormat.isNewestKey` names. Absent if there are none, and in
   * digests of before 0.2.0: then they are as the last checkpoint that has them left them.
   */
  newest: Type.Optional(Type.Object(sums)),
});
export type StoredDigest = Readonly<Static<typeof StoredDigest>>;
export const digestShape = Compile(StoredDigest);

/**
 * Spreads a change of one bit over all (the finaliser of MurmurHash3): sums of checksums alone
 * would be linear.
 */
function mix(word: number): number {
  let mixed = Math.imul(word ^ (word >>> 16), 0x85eb_ca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** A number of records, and sums over their keys and values. */
class Sums {
  count = 0;
  #keys = 0;
  #values = 0;

  add(key: string, checksum: number, sign: 1 | -1): void {
    const word = mix(crc32(key));
    this.count += sign;
    this.#keys = (this.#keys + sign * word) >>> 0;
    this.#values = (this.#values + sign * mix(word ^ checksum)) >>> 0;
  }

  get stored() {
    return { count: this.count, keys: this.#keys, values: this.#values };
  }
}

export class RecordsDigest {
  /** The checksum of the record's value, by key. */
  readonly #checksums = new Map<string, number>();
  readonly #format: Pick<RecordFormat<unknown>, 'isKey' | 'isNewKey' | 'isNewestKey'>;
  readonly #known = new Sums();
  readonly #added = new Sums();
  readonly #newest = new Sums();

  constructor(format: Pick<RecordFormat<unknown>, 'isKey' | 'isNewKey' | 'isNewestKey'>) {
    this.#format = format;
  }

  /** Notes the value of a key; `null` if the key is deleted. Keys of other values do not count. */
  set(key: string, value: Encoded | null): void {
    if (!this.#format.isKey(key)) return;
    if (value !== null) {
      this.keep(key, checksumOf(value));
      return;
    }
    this.#forget(key);
    this.#checksums.delete(key);
  }

  /** Notes that the record under this key has a value with this checksum. */
  keep(key: string, checksum: number): void {
    this.#forget(key);
    this.#checksums.set(key, checksum);
    this.#sumsOf(key).add(key, checksum, 1);
  }

  /** The keys of the records. */
  keys(): Iterable<string> {
    return this.#checksums.keys();
  }

  /** `undefined` if there is no such record. */
  checksumOf(key: string): number | undefined {
    return this.#checksums.get(key);
  }

  #sumsOf(key: string): Sums {
    if (this.#format.isNewestKey(key)) return this.#newest;
    return this.#format.isNewKey(key) ? this.#added : this.#known;
  }

  #forget(key: string): void {
    const before = this.#checksums.get(key);
    if (before !== undefined) this.#sumsOf(key).add(key, before, -1);
  }

  at(mark: number): StoredDigest {
    const newest = this.#newest.count === 0 ? {} : { newest: this.#newest.stored };
    return { mark, ...this.#known.stored, added: this.#added.stored, ...newest };
  }
}
