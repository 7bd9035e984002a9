import type { Commit } from './codec.ts';
import { LoadError } from './load-error.ts';

/** The commits of a partition that were read. */
export interface JournalledCommits {
  /** Above the mark, oldest first. */
  readonly pending: readonly Commit[];
  /** Commits at or below the mark, as far as they were read too; oldest first. */
  readonly checkpointed: readonly Commit[];
}

/**
 * @param commits some may have been read more than once
 * @throws LoadError where a commit above the mark is missing
 */
export function inOrder(commits: readonly Commit[], mark: number): JournalledCommits {
  const sorted = [...new Map(commits.map((commit) => [commit.number, commit])).values()];
  sorted.sort((a, b) => a.number - b.number);
  const pending = sorted.filter(({ number }) => number > mark);
  for (const [index, { number }] of pending.entries()) {
    if (number !== mark + 1 + index) throw new LoadError(`commit ${mark + 1 + index} is missing or damaged`);
  }
  return { pending, checkpointed: sorted.filter(({ number }) => number <= mark) };
}
