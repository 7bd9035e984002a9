/**
 * Reads the journal of a member that is dead. Sealing comes first: it moves the journal's fence, so
 * that no put of that member can land after it was read. A process reads a journal once, and takes
 * from it the commits of each partition that it loads.
 *
 * A read fails closed: where an entry is missing or damaged, a partition is refused unless it has a
 * commit in a later entry, which shows by its number that none is missing in between. A commit that
 * was put again shows nothing.
 */
import { retry } from '../../../lib/time/retry.ts';
import { limits } from '../../../schemas/limits.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { MemberId } from '../../../schemas/ids.ts';
import type { Slices } from '../../../lib/time/slices.ts';
import {
  type Commit,
  decodeEntry,
  decodeSection,
  decodeValue,
  encodeValue,
  type StoredEntry,
  type StoredSection,
} from './codec.ts';
import { LoadError } from './load-error.ts';
import { epochPauseMs, epochShape, type EpochRecord } from '../store/epoch.ts';
import type { Store, StoredValue } from '../store/store.ts';

export interface SealOptions {
  readonly store: Store;
  readonly member: MemberId;
  readonly newToken: () => string;
  readonly nowMs: () => number;
  readonly signal: AbortSignal;
  readonly onFailure: (error: unknown) => void;
}

/**
 * `gone`: there is no such journal. `given up`: an operator has deleted its fence, so that its
 * partitions are served without it (docs/runbook.md).
 */
export type Sealing = { readonly kind: 'sealed'; readonly revision: number } | { readonly kind: 'gone' | 'given up' };

/**
 * Moves the fence of a dead member's journal, unless that was done. Retries while the store does
 * not answer. @throws the signal's reason
 */
export async function sealJournal(options: SealOptions): Promise<Sealing> {
  const { store, member, newToken, nowMs, signal, onFailure } = options;
  const record: EpochRecord = { token: newToken(), owner: member, takenAtMs: nowMs(), sealed: true };
  const attempt = async (): Promise<Sealing | undefined> => {
    const { revision, value } = await store.readEpoch();
    if (value === null) return { kind: 'gone' };
    if (value === '') return { kind: 'given up' };
    const decoded = decodeValue(value, epochShape);
    if (decoded.ok && decoded.value.sealed === true) return { kind: 'sealed', revision };
    const sealed = await store.takeEpoch(encodeValue(record), revision);
    return sealed === undefined ? undefined : { kind: 'sealed', revision: sealed };
  };
  return (await retry(attempt, { pauseMs: epochPauseMs, signal, onFailure })) ?? Promise.reject(signal.reason as Error);
}

/** A sealed journal, as one process has read it. */
export class SealedJournal {
  readonly #member: MemberId;
  readonly #sections = new Map<number, { readonly entry: number; readonly section: StoredSection }[]>();
  /** The newest entry that is missing or damaged; 0 if there is none. */
  readonly #lastMissing: number;

  constructor(member: MemberId, entries: readonly StoredEntry[], lastMissing: number) {
    this.#member = member;
    this.#lastMissing = lastMissing;
    for (const { number, sections } of entries) {
      for (const section of sections) {
        const sectionsOf = this.#sections.get(section.partition);
        if (sectionsOf === undefined) this.#sections.set(section.partition, [{ entry: number, section }]);
        else sectionsOf.push({ entry: number, section });
      }
    }
  }

  /** `true` if no entry is missing or damaged. */
  get isWhole(): boolean {
    return this.#lastMissing === 0;
  }

  /**
   * The commits of a partition; a commit is a step (lib/time/slices.ts).
   * @throws LoadError where one may be missing
   */
  *commitsOf(partition: number): Generator<void, Commit[], void> {
    const commits: Commit[] = [];
    let newest = 0;
    for (const { entry, section } of this.#sections.get(partition) ?? []) {
      yield;
      const decoded = decodeSection(section);
      if (!decoded.ok) throw this.#refusal(`its section in entry ${entry} is damaged (${decoded.fault})`);
      commits.push(decoded.value);
      if (section.carried !== true) newest = entry;
    }
    if (newest < this.#lastMissing) throw this.#refusal(`entry ${this.#lastMissing} is missing or damaged`);
    return commits;
  }

  #refusal(what: string): LoadError {
    return new LoadError(`the journal of member ${this.#member}: ${what}`);
  }
}

/**
 * Reads the entries of a sealed journal that are needed: its newest messages, and then those before
 * them, from the oldest on that the last entry says is needed. @param seal the revision of the seal
 */
export async function readSealed(
  { store, member }: Pick<SealOptions, 'store' | 'member'>,
  seal: number,
  slices: Slices,
  signal: AbortSignal,
): Promise<SealedJournal> {
  let from = Math.max(1, seal - limits.journalReadWindow);
  let found = await slices.run('load', decoding(await store.load(seal, from)), signal);
  for (let growth = limits.journalReadGrowth; from > 1; growth *= limits.journalReadGrowth) {
    // Before the first entry that is needed there is nothing to read.
    const low = found.entries.at(-1)?.low.sequence ?? seal - limits.journalReadWindow * growth;
    if (low >= from) break;
    const until = from;
    from = Math.max(1, low);
    const before = await slices.run('load', decoding(await store.load(seal, from, until)), signal);
    found = {
      entries: [...before.entries, ...found.entries].sort((a, b) => a.number - b.number),
      damagedSlots: new Set([...before.damagedSlots, ...found.damagedSlots]),
    };
  }
  return wholeOf({ store, member }, found);
}

interface Found {
  readonly entries: readonly StoredEntry[];
  readonly damagedSlots: ReadonlySet<number>;
}

/** A value is a step. */
function* decoding(values: readonly StoredValue[]): Generator<void, Found, void> {
  const entries: StoredEntry[] = [];
  const damagedSlots = new Set<number>();
  for (const { key, value } of values) {
    if (value === null || !key.startsWith('entry.')) continue;
    yield;
    const decoded = decodeEntry(value);
    if (decoded.ok) entries.push(decoded.value);
    else damagedSlots.add(Number(key.slice('entry.'.length)));
  }
  return { entries: entries.sort((a, b) => a.number - b.number), damagedSlots };
}

/** The entries from the oldest that is needed on, and whether all are there. */
async function wholeOf(
  { store, member }: Pick<SealOptions, 'store' | 'member'>,
  { entries, damagedSlots }: Found,
): Promise<SealedJournal> {
  const last = entries.at(-1);
  const next = (last?.number ?? 0) + 1;
  const first = last?.low.number ?? 1;
  const numbers = new Set(entries.map(({ number }) => number));
  let lastMissing = 0;
  for (let number = first; number < next; number++) if (!numbers.has(number)) lastMissing = number;
  // If the slot of the next entry cannot be read, it may have held an acknowledged one. From the
  // second round on it holds the entry of the round before, unless a later one is lost.
  const replaced = next - limits.journalSlots;
  const isReplacedThere = replaced <= 0 || numbers.has(replaced) || (await holds(store, replaced));
  if (damagedSlots.has(next % limits.journalSlots) || !isReplacedThere) lastMissing = next;
  return new SealedJournal(
    member,
    entries.filter(({ number }) => number >= first),
    lastMissing,
  );
}

async function holds(store: Store, number: number): Promise<boolean> {
  const value = await store.read(keys.entry(number % limits.journalSlots));
  const decoded = value === null ? undefined : decodeEntry(value);
  return decoded?.ok === true && decoded.value.number === number;
}
