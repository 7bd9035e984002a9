/**
 * What the members need of storage: a key for each, moved by compare-and-set. JetStream, or a model
 * of it.
 */
import type { MemberId } from '../../schemas/ids.ts';

export interface StoredMember {
  readonly id: MemberId;
  readonly value: string;
  readonly revision: number;
}

export interface MemberStore {
  /**
   * Every member. May be stale: what rests on it is a compare-and-set at the revision that it gave.
   */
  list(): Promise<readonly StoredMember[]>;
  /** Revision 0 where there is none. May be stale too. */
  read(id: MemberId): Promise<{ readonly revision: number; readonly value: string | null }>;
  /**
   * Compare-and-set; expected 0: there must be none.
   * @returns the new revision, or undefined where the key had moved.
   * @throws where there is no answer: it may have been stored, or may yet be.
   */
  replace(
    id: MemberId,
    value: string,
    expected: number,
    options?: { readonly ttlMs: number },
  ): Promise<number | undefined>;
}
