/** Prints what the tooling does: one line per step, with its duration. */
import { say, took } from '../lib/terminal.ts';

export { say, took };

/**
 * Runs a step and prints `· name result … 0.4 s`. What the step reports meanwhile (such as a
 * download) is printed at once, because it explains the wait.
 */
export async function step<T>(
  name: string,
  work: (report: (what: string) => void) => Promise<T>,
  describe: (result: T) => string = () => '',
): Promise<T> {
  const startMs = performance.now();
  try {
    const result = await work((what) => say(`· ${what} …`));
    const detail = describe(result);
    say(`· ${name}${detail === '' ? '' : ` ${detail}`} … ${took(performance.now() - startMs)}`);
    return result;
  } catch (error) {
    say(`✗ ${name} failed after ${took(performance.now() - startMs)}`);
    throw error;
  }
}
