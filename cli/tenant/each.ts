/** Commands that do the same to each of several things. */
import { InterruptedError } from '../client/errors.ts';
import type { Context } from '../context.ts';
import { wordsOf } from '../terminal/errors.ts';

/**
 * Works on every name. A failure does not stop the others; Ctrl-C does.
 * @throws the last failure, or InterruptedError, after printing the other failures in their order
 */
export async function each(
  context: Context,
  names: readonly string[],
  work: (name: string) => Promise<string>,
): Promise<void> {
  const failures: Error[] = [];
  const done: string[] = [];
  let interrupted: InterruptedError | undefined;
  for (const name of names) {
    try {
      done.push(await work(name));
    } catch (error) {
      interrupted = error instanceof InterruptedError ? error : undefined;
      if (interrupted !== undefined) break;
      failures.push(error instanceof Error ? error : new Error(String(error)));
    }
  }
  if (done.length > 0) context.show(done, done.join('\n'));
  const last = interrupted ?? failures.pop();
  for (const error of failures) context.tell(wordsOf(error));
  if (last !== undefined) throw last;
}
