/** What becomes of a container, told while somebody waits until it is done (done.ts). */
import { sleep } from '../../lib/time/backoff.ts';
import { limits } from '../../schemas/limits.ts';
import { dataOf } from '../client/api.ts';
import { InterruptedError } from '../client/errors.ts';
import { persist } from '../client/wait.ts';
import type { Context } from '../context.ts';
import { Refused } from '../terminal/errors.ts';
import { paintOf } from '../terminal/colours.ts';
import { bytesText } from '../terminal/table.ts';
import { isUnderWay, verdictOf, type Goal, type StatusView } from './done.ts';

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

/** With the exit code, and the newest lines of its log: what a person looks for first. */
export async function endText({ api, terminal }: Context, { id, name }: Named, view: StatusView): Promise<string> {
  const code = view.exit_code === null ? '' : `, exit code ${view.exit_code}`;
  const ask = () =>
    dataOf(api.GET('/api/v2/compute/{id}/logs', { params: { path: { id }, query: { limit: limits.cliEndLines } } }));
  // The lines of a short run are on their way; a token may lack the right to read them.
  const lines = async () => ask().catch(() => []);
  let found = await lines();
  if (found.length === 0 && (view.exit_code !== null || view.reason === 'unhealthy')) {
    await sleep(limits.cliEndLogMs, terminal.signal);
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
  readonly seconds: number;
  /** The status before a change: what is still the same may be of before it. */
  readonly before?: StatusView | undefined;
}

/** The version of before is back. */
export class RolledBack extends Refused {}

/** The host has not been heard of since the change. */
const isStale = (view: StatusView, before: StatusView, watchedMs: number): boolean =>
  view.generation !== before.generation &&
  view.observed_at === before.observed_at &&
  view.status === before.status &&
  watchedMs < limits.cliStaleMs;

/** An update that was under way, or has begun since, was taken back. */
const isRolledBack = ({ update }: StatusView, before: StatusView | undefined): boolean =>
  update?.phase === 'rolled_back' &&
  before !== undefined &&
  (update.at !== before.update?.at || before.update.phase !== 'rolled_back');

/**
 * Tells each change until the container is done, and resolves to the status then.
 * @throws Refused as soon as that can't come any more, or after the time; InterruptedError
 */
export async function watchDone(
  context: Context,
  container: Named,
  { goal, seconds, before }: Waiting,
): Promise<StatusView> {
  const { tell, terminal } = context;
  const { name } = container;
  const paint = paintOf(context, 'stderr');
  const startMs = performance.now();
  const endMs = startMs + seconds * 1000;
  let [told, held, sinceMs, isVerified] = ['', '', startMs, false];
  for (;;) {
    const view = await statusOf(context, container.id, endMs);
    const line = lineOf(view);
    if (line !== told) tell(`${name}: ${paint(line)}`);
    told = line;
    const nowMs = performance.now();
    const state = JSON.stringify([view.status, view.reason, view.started_at, view.restart_count]);
    if (state !== held) sinceMs = nowMs;
    held = state;
    isVerified ||= isUnderWay(view);
    if (isRolledBack(view, before)) throw new RolledBack(`${name} was rolled back${whyText(view.update ?? {})}`);
    const look = { heldMs: nowMs - sinceMs, nowMs: terminal.nowMs(), isVerified };
    const isOfBefore = before !== undefined && isStale(view, before, nowMs - startMs);
    const verdict = isOfBefore ? 'waiting' : verdictOf(view, goal, look);
    if (verdict === 'done') return view;
    if (verdict === 'over') throw new Refused(await endText(context, container, view));
    if (nowMs >= endMs)
      throw new Refused(`${name} is still ${line} after ${seconds} s; it goes on: "longshore wait ${name}"`);
    await sleep(limits.cliLookMs, terminal.signal);
    if (terminal.signal.aborted) throw new InterruptedError();
  }
}

export const statusOf = (
  { api }: Pick<Context, 'api'>,
  id: string,
  endMs: number = performance.now(),
): Promise<StatusView> =>
  persist(endMs, () => dataOf(api.GET('/api/v2/compute/{id}/status', { params: { path: { id } } })));
