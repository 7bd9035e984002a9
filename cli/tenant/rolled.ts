/** Waits until a container has the new value of a secret, or keeps the one before. */
import { retry } from '../../lib/time/retry.ts';
import { limits } from '../../schemas/limits.ts';
import { dataOf } from '../client/api.ts';
import { InterruptedError } from '../client/errors.ts';
import { persist } from '../client/wait.ts';
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

/** Secrets of which the container keeps an earlier value until it is started again. */
export async function keptBy(
  { api }: Pick<Context, 'api'>,
  id: string,
  secrets: readonly string[],
  endMs: number = performance.now(),
): Promise<string[]> {
  const all = await persist(endMs, () => dataOf(api.GET('/api/v2/compute/secrets')));
  return all.flatMap(({ name, behind = [] }) => (secrets.includes(name) && behind.includes(id) ? [name] : []));
}

/** Message about containers that keep an earlier value, with the command that updates them. */
export const keptText = (names: string, secrets: string): string =>
  `${names}: still with an earlier value of ${secrets}: "longshore restart -d ${names.replaceAll(',', '')}" brings in the current one`;

/**
 * Waits until a container has the new value. Its owner starts the update within seconds, which
 * raises the generation. A run that the policy allows only once is not interrupted: then the
 * container keeps the earlier value, and this returns false.
 * @param secrets names of the changed secrets
 * @returns true if the container has the new value
 * @throws Refused after the time, and as `watchDone`; InterruptedError
 */
export async function untilRolled(
  context: Context,
  { id, name, generation }: User,
  { secrets, goal, seconds }: { readonly secrets: readonly string[]; readonly goal: Goal; readonly seconds: number },
): Promise<boolean> {
  const endMs = performance.now() + seconds * 1000;
  const look = async (): Promise<'rolled' | 'kept' | undefined> => {
    if ((await statusOf(context, id, endMs)).generation !== generation) return 'rolled';
    if ((await keptBy(context, id, secrets, endMs)).length > 0) return 'kept';
    if (performance.now() < endMs) return undefined;
    throw new Refused(`${name} has not got the new value of a secret after ${seconds} s: "longshore events ${name}"`);
  };
  const { signal } = context.terminal;
  const end = await retry(look, { pauseMs: () => limits.cliLookMs, signal });
  if (end === undefined) throw new InterruptedError();
  if (end === 'rolled') await watchDone(context, { id, name }, { goal, seconds });
  return end === 'rolled';
}
