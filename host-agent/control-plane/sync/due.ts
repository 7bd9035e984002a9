/** Which partitions the next sync asks. Pure. */
import type { SyncResult } from './sync.ts';

export type Due = 'all' | ReadonlySet<number>;

export const nothingDue: Due = new Set();

export const isDue = (due: Due): boolean => due === 'all' || due.size > 0;

export const alsoDue = (due: Due, more: 'all' | Iterable<number>): Due =>
  due === 'all' || more === 'all' ? 'all' : new Set([...due, ...more]);

/**
 * @param due what became due during the sync
 * @param asked the partitions in the ask
 */
export function dueAfter(due: Due, asked: Due, result: SyncResult): Due {
  switch (result.kind) {
    case 'complete':
      return alsoDue(due, result.due);
    case 'partial':
      return alsoDue(due, result.missing);
    case 'silent':
      // Only what was asked: sixteen questions would not help an owner that is slow to answer one.
      return alsoDue(due, asked);
    case 'refused':
      return 'all';
  }
}
