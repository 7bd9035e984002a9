/**
 * What a tenant reads in its log where lines are missing: an entry of the agent's own on stderr.
 */

/**
 * `rate`: the container wrote more than its host sends. `late`: its lines were not captured while
 * the engine had them.
 */
export type LossCause = 'rate' | 'late';

const why: Record<LossCause, string> = {
  rate: 'more was logged than its host may send',
  late: 'they were rotated away before they were captured',
};

/**
 * By which the agent's own entries are known. A container may write the same; that fools its own
 * tenant alone.
 */
const mark = '[longshore]';

export const lostBetween = (since: string, until: string, cause: LossCause): string =>
  `${mark} lines written between ${since} and ${until} were lost: ${why[cause]}`;

export const lostLines = (count: number, reason: string): string => `${mark} ${count} lines were lost here: ${reason}`;
