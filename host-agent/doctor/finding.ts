/** The results of the doctor's checks, and how checks run: each to its end, or to its deadline. */
import { within } from '../../lib/time/backoff.ts';
import { limits } from '../../schemas/limits.ts';
import { reasonOf } from '../commands/reason.ts';

export type Verdict = 'ok' | 'warn' | 'fail';

export interface Finding {
  readonly check: string;
  readonly verdict: Verdict;
  /** The state that the check found. */
  readonly says: string;
  /** The fix; absent if the finding is `ok`. */
  readonly remedy?: string;
}

export const ok = (check: string, says: string): Finding => ({ check, verdict: 'ok', says });
export const warn = (check: string, says: string, remedy: string): Finding => ({
  check,
  verdict: 'warn',
  says,
  remedy,
});
export const fail = (check: string, says: string, remedy: string): Finding => ({
  check,
  verdict: 'fail',
  says,
  remedy,
});

/** Never rejects. Work that outlives its deadline is left behind. */
export async function examine(
  check: string,
  work: () => Promise<readonly Finding[]>,
  ms: number = limits.doctorCheckMs,
): Promise<readonly Finding[]> {
  try {
    return await within(work(), ms, check);
  } catch (error) {
    return [fail(check, `the check did not come to an end: ${reasonOf(error)}`, 'run the doctor again')];
  }
}

export const isWell = (findings: readonly Finding[]): boolean => findings.every(({ verdict }) => verdict !== 'fail');

/** One line for each finding, and one below it for what to do. */
export function lines(findings: readonly Finding[]): string[] {
  const width = Math.max(0, ...findings.map(({ check }) => check.length));
  const count = (verdict: Verdict): number => findings.filter((each) => each.verdict === verdict).length;
  return [
    ...findings.flatMap(({ check, verdict, says, remedy }) => [
      `${verdict.padEnd(4)}  ${check.padEnd(width)}  ${says}`,
      ...(remedy === undefined ? [] : [`      ${' '.repeat(width)}  → ${remedy}`]),
    ]),
    `${count('ok')} ok, ${count('warn')} to look at, ${count('fail')} failed`,
  ];
}
