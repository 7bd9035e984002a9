/**
 * The storage that members need: one key for each member, changed by compare-and-set. It is
 * JetStream, or a model of it in tests.
 */
import type { MemberId } from '../../schemas/ids.ts';

export interface StoredMember {
  readonly id: MemberId;
  readonly value: string;
  readonly revision: number;
}

export interface MemberStore {
  /**
   * Lists every member. The list may be stale: act on an entry only by a compare-and-set at its
   * revision.
   */
  list(): Promise<readonly StoredMember[]>;
  /** The same for these members. The answer may lack some of them, and be stale too. */
  readSome(ids: readonly MemberId[]): Promise<readonly StoredMember[]>;
  /** Revision 0 if there is no such key. The answer may be stale too. */
  read(id: MemberId): Promise<{ readonly revision: number; readonly value: string | null }>;
  /**
   * Compare-and-set; if 0 is expected, the key must not exist.
   * @returns the new revision, or undefined if the key had changed.
   * @throws if no answer comes: the value may be stored already, or later.
   */
  replace(
    id: MemberId,
    value: string,
    expected: number,
    options?: { readonly ttlMs: number },
  ): Promise<number | undefined>;
}
