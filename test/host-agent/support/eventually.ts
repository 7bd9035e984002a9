import { sleep } from '../../../lib/backoff.ts';

const pollMs = 50;

/**
 * Asks until there is an answer; the deadline is generous, for a machine that is busy with other
 * tests.
 */
export async function eventually<T>(
  ask: () => T | undefined | Promise<T | undefined>,
  what: () => string,
  deadlineMs = 60_000,
): Promise<T> {
  const endMs = performance.now() + deadlineMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > endMs) throw new Error(`not within ${deadlineMs} ms: ${what()}`);
    await sleep(pollMs);
  }
}
