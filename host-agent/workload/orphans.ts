/**
 * Orphans: containers that are ours by their labels and absent from a complete desired set
 * (invariant A4). Those that their owner has given away go at once. What the control plane does not
 * know may be all that is left of somebody's work, and waits for an operator's approval, however
 * few they are. Pure.
 */
import type { ContainerId } from '../../schemas/ids.ts';

export interface OrphanState {
  /** Held orphans that an operator has approved for removal. */
  readonly approved: ReadonlySet<ContainerId>;
  /** The highest word that was acted on; null before the first was heard. */
  readonly word: number | null;
}

export const noOrphans: OrphanState = { approved: new Set(), word: null };

/** What the owner said of an orphan: it gave the container away, or does not know it. */
export type OwnersVerdict = 'gone' | 'unknown';

export interface OrphanJudgement {
  readonly state: OrphanState;
  readonly held: ReadonlySet<ContainerId>;
}

/**
 * @param orphans all that are there now
 * @param verdicts of those that their owner has been asked about
 * @param word the operator's latest approval, as a number that rises; null when it has not been
 * heard
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
  // The word is for what the operator saw held: it waits until every orphan has a verdict.
  if (word === null || [...orphans].some((id) => !verdicts.has(id))) return { state: { ...state, approved }, held };
  // The first word heard is old: a host that lost its disk must not act on what was said to its
  // former self.
  const isNew = state.word !== null && word > state.word;
  const heard = Math.max(word, state.word ?? word);
  return isNew
    ? { state: { approved: new Set([...approved, ...held]), word: heard }, held: new Set() }
    : { state: { approved, word: heard }, held };
}
