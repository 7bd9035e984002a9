/** The entry that stands for missing log lines: the agent adds it on stderr, for the tenant. */

import type { LossCause } from '../metrics.ts';

const why: Record<LossCause, string> = {
  rate: 'more was logged than its host may send',
  late: 'they were rotated away before they were captured',
};

/**
 * Marks the agent's own entries. A container may write the same text, which misleads its own tenant
 * only.
 */
const mark = '[longshore]';

export const lostBetween = (since: string, until: string, cause: LossCause): string =>
  `${mark} lines written between ${since} and ${until} were lost: ${why[cause]}`;

export const lostLines = (count: number, reason: string): string => `${mark} ${count} lines were lost here: ${reason}`;
