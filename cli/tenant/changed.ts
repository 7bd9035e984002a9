/** Waits until a container is what a change declares. */
import type { StatusView } from '../client/wait.ts';
import type { Context } from '../context.ts';
import type { WaitOptions } from '../terminal/arguments.ts';
import { Refused } from '../terminal/errors.ts';
import { goalOf } from './done.ts';
import { RolledBack, watchDone } from './progress.ts';
import { storedPolicy } from './uses.ts';

interface Change {
  /** The status before the change, and after the write. */
  readonly before: StatusView;
  readonly after: StatusView;
  readonly generation: number;
  /** True for a change of the policy, of which a roll-back restores the check alone. */
  readonly hasPolicy: boolean;
}

/** @throws Refused as `watchDone`; InterruptedError */
export async function untilChanged(
  context: Context,
  container: { readonly id: string; readonly name: string },
  { before, after, generation, hasPolicy }: Change,
  { stable, timeout: seconds }: WaitOptions,
): Promise<StatusView> {
  const goal = goalOf(await storedPolicy(context, container.id), stable);
  // A job that runs on under another policy is not waited for to its end.
  const isJob = goal.isJob && after.update?.at !== before.update?.at;
  const undo = [`rollback ${container.name}`, 'takes it back'] as const;
  const waiting = { goal: { ...goal, isJob }, generation, seconds, undo };
  return watchDone(context, container, waiting).catch((error: unknown) => {
    throw !hasPolicy || !(error instanceof RolledBack)
      ? error
      : new Refused(
          `${error.message}; what else it changed of the policy stays: "longshore policy get ${container.name}"`,
        );
  });
}
