/** What becomes of a container, told while somebody waits. */
import { sleep } from '../../lib/time/backoff.ts';
import { limits } from '../../schemas/limits.ts';
import { dataOf, type Schemas } from '../client/api.ts';
import { InterruptedError } from '../client/errors.ts';
import { persist } from '../client/wait.ts';
import type { Context } from '../context.ts';
import { Refused } from '../terminal/errors.ts';
import { paintOf } from '../terminal/colours.ts';
import { bytesText } from '../terminal/table.ts';

export type StatusView = Schemas['ContainerStatusView'];

interface Why {
  readonly reason?: string | null;
  readonly message?: string | null;
}

const whyText = ({ reason, message }: Why): string =>
  typeof reason === 'string' ? `: ${reason}${typeof message === 'string' ? ` (${message})` : ''}` : '';

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

/** Ends with a status that does not change by itself. */
const isOver = (view: StatusView): boolean =>
  view.status === 'failed' || (view.status === 'stopped' && view.desired === 'stopped');

/**
 * Tells each change until `isReached`, and resolves to the status then.
 * @throws Refused if it comes to another end, or not within `seconds`; InterruptedError
 */
export async function watchUntil(
  context: Context,
  { id, name }: { readonly id: string; readonly name: string },
  isReached: (view: StatusView) => boolean,
  seconds: number,
): Promise<StatusView> {
  const { api, tell, terminal } = context;
  const paint = paintOf(context, 'stderr');
  const endMs = performance.now() + seconds * 1000;
  let told = '';
  for (;;) {
    const view = await persist(endMs, () =>
      dataOf(api.GET('/api/v2/compute/{id}/status', { params: { path: { id } } })),
    );
    const line = lineOf(view);
    if (line !== told) tell(`${name}: ${paint(line)}`);
    told = line;
    if (isReached(view)) return view;
    if (isOver(view))
      throw new Refused(`${name} is ${line}; see "longshore logs ${name}" and "longshore events ${name}"`);
    if (performance.now() >= endMs) {
      throw new Refused(`${name} is still ${view.status} after ${seconds} s; it goes on: "longshore wait ${name}"`);
    }
    await sleep(limits.cliLookMs, terminal.signal);
    if (terminal.signal.aborted) throw new InterruptedError();
  }
}

export const runs = ({ status, reason }: StatusView): boolean =>
  status === 'running' || (status === 'stopped' && reason === 'completed');

const isOverOrNone = ({ update }: StatusView): boolean =>
  update === undefined || (update.phase !== 'preparing' && update.phase !== 'verifying');

/** As `watchUntil`, until its newest update is over. @throws Refused, too, if it was rolled back */
export async function watchUpdate(
  context: Context,
  container: { readonly id: string; readonly name: string },
  seconds: number,
): Promise<StatusView> {
  const view = await watchUntil(context, container, isOverOrNone, seconds);
  const { update } = view;
  if (update?.phase !== 'rolled_back') return view;
  throw new Refused(`${container.name} was rolled back${whyText(update)}`);
}
