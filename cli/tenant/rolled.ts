/** Waits until a container has the new value of a secret. */
import { retry } from '../../lib/time/retry.ts';
import { limits } from '../../schemas/limits.ts';
import { InterruptedError } from '../client/errors.ts';
import type { Context } from '../context.ts';
import { Refused } from '../terminal/errors.ts';
import type { Goal } from './done.ts';
import { statusOf, watchDone } from './progress.ts';

/** A container, as it was before the secret changed. */
export interface User {
  readonly id: string;
  readonly name: string;
  readonly generation: number;
}

/**
 * The owner updates what uses a secret within seconds: its generation rises then.
 * @throws Refused after the time, and as `watchDone`; InterruptedError
 */
export async function untilRolled(
  context: Context,
  { id, name, generation }: User,
  { goal, seconds }: { readonly goal: Goal; readonly seconds: number },
): Promise<void> {
  const endMs = performance.now() + seconds * 1000;
  const look = async (): Promise<true | undefined> => {
    if ((await statusOf(context, id, endMs)).generation !== generation) return true;
    if (performance.now() < endMs) return undefined;
    throw new Refused(`${name} has not got the new value of a secret after ${seconds} s: "longshore events ${name}"`);
  };
  const { signal } = context.terminal;
  if ((await retry(look, { pauseMs: () => limits.cliLookMs, signal })) !== true) throw new InterruptedError();
  await watchDone(context, { id, name }, { goal, seconds });
}
