/**
 * Orphans: containers that are ours by their labels and absent from a complete desired set (invariant A4). A few are
 * ordinary: what was placed elsewhere while this host was silent. Many at once look like a control plane that lost its
 * memory, and wait for an operator's word. Pure.
 */
import type { ContainerId } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';

export interface OrphanMemory {
  /** Orphans that may go: few enough, or covered by an operator's word. */
  readonly approved: ReadonlySet<ContainerId>;
  /** When each approval was given, as long as it counts against the next. */
  readonly approvedAtMs: readonly number[];
  /** The highest word that was acted on; null before the first was heard. */
  readonly word: number | null;
}

export const noOrphans: OrphanMemory = { approved: new Set(), approvedAtMs: [], word: null };

export interface OperatorLeave {
  readonly word: number | null;
  readonly isDraining: boolean;
}

export interface OrphanVerdict {
  readonly memory: OrphanMemory;
  readonly held: ReadonlySet<ContainerId>;
}

/**
 * @param orphans all that are there now, approved or not
 * @param present how many containers of ours there are, orphans included
 * @param leave what the operator allows: the latest word (null when it has not been heard), and whether the host is being
 *   emptied
 */
export function judgeOrphans(
  memory: OrphanMemory,
  orphans: ReadonlySet<ContainerId>,
  present: number,
  { word, isDraining }: OperatorLeave,
  nowMs: number,
): OrphanVerdict {
  const approved = new Set([...memory.approved].filter((id) => orphans.has(id)));
  const fresh = [...orphans].filter((id) => !approved.has(id));
  const recent = memory.approvedAtMs.filter((ms) => nowMs - ms < limits.orphanWindowMs);
  // The first word heard is old: a host that lost its disk must not act on what was said to its former self.
  const hasNewWord = memory.word !== null && word !== null && word > memory.word;
  const heard = word === null ? memory.word : Math.max(word, memory.word ?? word);

  const gone = recent.length - approved.size;
  const count = recent.length + fresh.length;
  const isMany = count > limits.orphanCount && count > limits.orphanFraction * (present + Math.max(0, gone));
  if (fresh.length > 0 && isMany && !hasNewWord && !isDraining) {
    return { memory: { approved, approvedAtMs: recent, word: heard }, held: new Set(fresh) };
  }
  const approvedAtMs = hasNewWord || isDraining ? recent : [...recent, ...fresh.map(() => nowMs)];
  return { memory: { approved: new Set([...approved, ...fresh]), approvedAtMs, word: heard }, held: new Set() };
}
