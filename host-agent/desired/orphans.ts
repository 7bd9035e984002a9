/**
 * Orphans: containers of this host by their labels that a complete desired set does not name
 * (invariant A4). Those that their owner gave away go at once. A container that the control plane
 * does not know may be all that is left of a tenant's work, and stays until an operator approves
 * its removal, even if it is the only one. Pure.
 */
import type { ContainerId } from '../../schemas/ids.ts';

export interface OrphanState {
  /** Held orphans that an operator has approved for removal. */
  readonly approved: ReadonlySet<ContainerId>;
  /** The number of the last approval that took effect; `null` before the first. */
  readonly word: number | null;
}

export const noOrphans: OrphanState = { approved: new Set(), word: null };

/** The owner's verdict on an orphan: it gave the container away, or does not know it. */
export type OwnersVerdict = 'gone' | 'unknown';

export interface OrphanJudgement {
  readonly state: OrphanState;
  readonly held: ReadonlySet<ContainerId>;
}

/**
 * @param orphans all orphans on the engine now
 * @param verdicts of the owners that have answered
 * @param word the number of the operator's latest approval, which only rises; `null` if unknown
 */
export function judgeOrphans(
  state: OrphanState,
  orphans: ReadonlySet<ContainerId>,
  verdicts: ReadonlyMap<ContainerId, OwnersVerdict>,
  word: number | null,
): OrphanJudgement {
  const approved = new Set([...state.approved].filter((id) => orphans.has(id)));
  const isUnknown = (id: ContainerId): boolean => verdicts.get(id) === 'unknown' && !approved.has(id);
  const held = new Set([...orphans].filter(isUnknown));
  // The approval covers the orphans that the operator saw held: it waits until each has a verdict.
  if (word === null || [...orphans].some((id) => !verdicts.has(id))) return { state: { ...state, approved }, held };
  // The first approval that is seen after a start is old: a host that lost its disk must not act on
  // approvals from before.
  const isNew = state.word !== null && word > state.word;
  const heard = Math.max(word, state.word ?? word);
  return isNew
    ? { state: { approved: new Set([...approved, ...held]), word: heard }, held: new Set() }
    : { state: { approved, word: heard }, held };
}
