/** Progress of a container, printed during a wait until it is done (done.ts). */
import { sleep, withAbort } from '../../lib/time/backoff.ts';
import { every } from '../../lib/time/every.ts';
import { limits } from '../../schemas/limits.ts';
import { oneLine } from '../../schemas/visible.ts';
import { dataOf } from '../client/api.ts';
import { InterruptedError } from '../client/errors.ts';
import { persist, settled, type Settled, type StatusView } from '../client/wait.ts';
import type { Context } from '../context.ts';
import { Refused } from '../terminal/errors.ts';
import { paintOf } from '../terminal/colours.ts';
import { joined } from '../terminal/output.ts';
import { bytesText } from '../terminal/quantities.ts';
import type { Goal } from './done.ts';

/** Lines of the log of a failed container, and the time to wait for the first of them. */
const cliEndLines = 10;
const cliEndLogMs = 1000;

interface Why {
  readonly reason?: string | null;
  readonly message?: string | null;
}

const whyText = ({ reason, message }: Why): string =>
  typeof reason === 'string' ? `: ${reason}${typeof message === 'string' ? ` (${oneLine(message)})` : ''}` : '';

/** Status, reason and how far a pull is, as one line. */
export function lineOf({ status, reason, message, pull, update }: StatusView): string {
  const why = whyText({ reason, message });
  const current = pull ?? update?.pull;
  const pulled =
    current === undefined
      ? ''
      : `, pulled ${bytesText(current.bytes)}${current.total === null ? '' : ` of ${bytesText(current.total)}`}`;
  const phase = update === undefined || update.phase === 'done' ? '' : `, update ${update.phase}`;
  return `${status}${phase}${pulled}${why}`;
}

/** Message about a failed container: its exit code and the newest lines of its log. */
export async function endText({ api, terminal }: Context, { id, name }: Named, view: StatusView): Promise<string> {
  const code = view.exit_code === null ? '' : `, exit code ${view.exit_code}`;
  const ask = () =>
    dataOf(api.GET('/api/v2/compute/{id}/logs', { params: { path: { id }, query: { limit: cliEndLines } } }));
  // The lines of a short run are on their way; a token may lack the right to read them.
  const lines = async () => ask().catch(() => []);
  let found = await lines();
  if (found.length === 0 && (view.exit_code !== null || view.reason === 'unhealthy')) {
    await sleep(cliEndLogMs, terminal.signal);
    found = await lines();
  }
  const log = found.length === 0 ? [] : ['Its log ends with:', ...found.map(({ line }) => `  ${line}`)];
  const hint = `see "longshore logs ${name}" and "longshore events ${name}"`;
  return [`${name} is ${lineOf(view)}${code}; ${hint}`, ...log].join('\n');
}

interface Named {
  readonly id: string;
  readonly name: string;
}

export interface Waiting {
  readonly goal: Goal;
  /** Generation that this command has made; `undefined` for the newest. */
  readonly generation?: number | undefined;
  readonly seconds: number;
  /** A command that undoes what is waited for, and what it does. */
  readonly undo?: readonly [command: string, does: string];
}

/** Thrown after a roll-back to the version before. */
export class RolledBack extends Refused {}

/**
 * Prints each change until the outcome is known, and resolves to the status then.
 * @throws Refused as soon as it can't succeed any more, or after the time; InterruptedError
 */
export function watchDone(context: Context, container: Named, waiting: Waiting): Promise<StatusView> {
  const { name } = container;
  const undo = waiting.undo === undefined ? '' : `, and "longshore ${waiting.undo.join('" ')}`;
  return telling(context, `${name} goes on: "longshore wait ${name}" waits again${undo}`, () =>
    watched(context, container, waiting),
  );
}

/**
 * Runs work that Ctrl-C ends here, but not at the server.
 * @param goesOn message about what goes on there
 */
export async function telling<T>({ tell }: Context, goesOn: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof InterruptedError) tell(goesOn);
    throw error;
  }
}

async function watched(context: Context, container: Named, waiting: Waiting): Promise<StatusView> {
  const { name } = container;
  const end = await untilSettled(context, container, waiting);
  switch (end.outcome) {
    case 'rolled_back':
      throw new RolledBack(`${name} was rolled back${whyText(end.update ?? {})}`);
    case 'failed':
    case 'stopped':
    case 'removed':
      throw new Refused(await endText(context, container, end));
    default:
      return end;
  }
}

/**
 * Prints each change until the server knows the outcome. A later change of the container counts in
 * place of an earlier one.
 * @throws Refused after the time; InterruptedError
 */
export async function untilSettled(
  context: Context,
  { id, name }: Named,
  { goal, generation: own, seconds }: Waiting,
): Promise<Settled> {
  const { api, tell, terminal } = context;
  const paint = paintOf(context, 'stderr');
  const endMs = performance.now() + seconds * 1000;
  let told = '';
  const show = (view: StatusView): void => {
    const line = lineOf(view);
    if (line !== told) tell(joined([`${name}: `, paint(line)]));
    told = line;
  };
  const look = async (signal = terminal.signal): Promise<StatusView> => {
    const view = await statusOf(context, id, endMs);
    if (!signal.aborted) show(view);
    return view;
  };
  const first = await look();
  let generation = own ?? first.generation;
  for (;;) {
    const leftMs = Math.max(0, endMs - performance.now());
    const end = await withAbort([terminal.signal], ({ signal }) =>
      whileLooking(settled(api, id, { ...goal, generation }, leftMs, signal), look, signal),
    );
    if (end === undefined)
      throw new Refused(`${name} is still ${told} after ${seconds} s; it goes on: "longshore wait ${name}"`);
    show(end);
    if (end.outcome !== 'superseded') return end;
    // The outcome of another change, or of another value of a secret, counts instead.
    tell(`${name}: another change came after this one, and is waited for`);
    generation = end.generation;
  }
}

/**
 * Looks again and again, to print lines of progress, until the request is answered.
 * @param signal ends the wait
 */
async function whileLooking<T>(
  asked: Promise<T>,
  look: (signal: AbortSignal) => Promise<unknown>,
  signal: AbortSignal,
): Promise<T> {
  const looks = every(
    () => limits.cliLookMs,
    () => look(signal),
    signal,
  );
  return Promise.race([asked, looks.then(() => asked)]);
}

export const statusOf = (
  { api }: Pick<Context, 'api'>,
  id: string,
  endMs: number = performance.now(),
): Promise<StatusView> =>
  persist(endMs, () => dataOf(api.GET('/api/v2/compute/{id}/status', { params: { path: { id } } })));
