/**
 * The other members, as this process sees them: from its reads of their keys, and from notices.
 * Pure; the caller brings the time.
 */
import type { MemberId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { StoredMember } from './member-store.ts';
import { contentOf, recordOf, type MemberRecord } from './record.ts';

/** Members that each one watches, so that each is watched by as many. */
export const membersWatched = 3;
/** A member that was seen unchanged for so long may be dead, and counts for no watch. */
export const memberDoubtedMs = 600;

/**
 * As `memberDoubtedMs`, for a member that was never seen to renew. It counts only for reading
 * ahead.
 */
const unknownDoubtedMs = 200;

export interface Other {
  readonly revision: number;
  /** `undefined` if the record is unreadable. */
  readonly record: MemberRecord | undefined;
  /** The monotonic time at which this process first saw the key at this revision. */
  readonly unchangedSinceMs: number;
  /** The time at which it last saw the key at this revision. */
  readonly seenAtMs: number;
  readonly knownSinceMs: number;
}

/** Of a key; no value: it is not there. */
interface Entry {
  readonly revision: number;
  readonly value: string | null;
}

const isDead = ({ record }: Other): boolean => record?.state === 'dead';

/** `true` if this process saw the member renew its lease. */
export const isRenewing = ({ unchangedSinceMs, knownSinceMs }: Other): boolean => unchangedSinceMs > knownSinceMs;

/**
 * Milliseconds for which it was seen not to renew.
 * @param succeedingSinceMs the time from which on the store takes renewals, as this process knows
 */
const silentMs = ({ seenAtMs, unchangedSinceMs }: Other, succeedingSinceMs: number | undefined): number =>
  seenAtMs - Math.max(unchangedSinceMs, succeedingSinceMs ?? Infinity);

/**
 * `true` if it seems to have stopped renewing its lease. One that was never seen to renew needs
 * less time for it: this process has just started, and perhaps in its place.
 */
export function isSilent(other: Other, succeedingSinceMs: number | undefined): boolean {
  if (isDead(other)) return false;
  return silentMs(other, succeedingSinceMs) >= (isRenewing(other) ? memberDoubtedMs : unknownDoubtedMs);
}

export const claims = (other: Other, partition: number): boolean =>
  !isDead(other) && other.record?.partitions.includes(partition) === true;

export class Others {
  readonly #members = new Map<MemberId, Other>();

  get(id: MemberId): Other | undefined {
    return this.#members.get(id);
  }

  entries(): readonly (readonly [MemberId, Other])[] {
    return [...this.#members];
  }

  values(): readonly Other[] {
    return [...this.#members.values()];
  }

  /** @returns `true` if its content differs from before, apart from the renewal */
  learn({ id, value, revision }: StoredMember, nowMs: number): boolean {
    const before = this.#members.get(id);
    // A replica that lags may answer with an older revision, and a notice may be late.
    if (before !== undefined && revision <= before.revision) {
      if (revision === before.revision) this.#members.set(id, { ...before, seenAtMs: nowMs });
      return false;
    }
    const record = recordOf(value);
    const knownSinceMs = before?.knownSinceMs ?? nowMs;
    this.#members.set(id, { revision, record, unchangedSinceMs: nowMs, seenAtMs: nowMs, knownSinceMs });
    return before === undefined || contentOf(before.record) !== contentOf(record);
  }

  forget(): void {
    this.#members.clear();
  }

  /** The store has it so, though it was seen newer: the store went back in time. */
  replace(id: MemberId, { value, revision }: Entry, nowMs: number): void {
    this.#members.delete(id);
    if (value !== null) this.learn({ id, value, revision }, nowMs);
  }

  /**
   * Forgets the members that a list lacks. A list that is older than what is known of a member,
   * from a replica that lags or from before a notice, says nothing about it.
   */
  forgetAllBut(listed: readonly StoredMember[]): void {
    const ids = new Set(listed.map(({ id }) => id));
    const newest = listed.reduce((max, { revision }) => Math.max(max, revision), 0);
    for (const [id, { revision }] of this.#members) {
      if (!ids.has(id) && revision < newest) this.#members.delete(id);
    }
  }

  /**
   * The members that this one reads at every look: the next on the ring of ids. One that was seen
   * to stop renewing does not count, because it watches no other: so the first that lives before
   * any number of dead members watches all of them, and those behind them. Members that were never
   * seen to renew are read until they are.
   * @param succeedingSinceMs the time from which on the store takes renewals, as this process knows
   * @returns `undefined` if they are so many that a list of all is cheaper
   */
  watchedBy(self: MemberId, succeedingSinceMs: number | undefined): readonly MemberId[] | undefined {
    const others = [...this.#members].filter(([, other]) => !isDead(other));
    const sorted = others.toSorted(([one], [other]) => (one < other ? -1 : 1));
    const ring = [...sorted.filter(([id]) => id > self), ...sorted.filter(([id]) => id < self)];
    const watched = new Set(others.flatMap(([id, other]) => (isRenewing(other) ? [] : [id])));
    let watching = 0;
    for (const [id, other] of ring) {
      if (watching === membersWatched) break;
      watched.add(id);
      if (silentMs(other, succeedingSinceMs) < memberDoubtedMs) watching++;
    }
    const isMost = 2 * watched.size > others.length || watched.size > limits.membersPerRead;
    return isMost ? undefined : [...watched];
  }
}
