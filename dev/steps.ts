/** What the tooling does, on the terminal: one line per step, with how long it took. */
import { say, took } from '../lib/terminal.ts';

export { say, took };

/**
 * Runs a step and prints `· name result … 0.4 s`. What it reports meanwhile (a download) is printed
 * at once, since it explains a wait.
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
