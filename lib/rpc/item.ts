/**
 * One ask on its way to an outcome. Pure of I/O and of clocks: lanes queue items, the client sends
 * them.
 *
 *     queued ──send──▶ sent ──sendAgain──▶ queued        queued, sent ──settle──▶ settled
 */
import type { ResourceHead } from '../../schemas/api/etag.ts';
import type { OutcomeCode } from '../../schemas/errors.ts';
import type { Question } from '../../schemas/wire/asks.ts';

/** Outcome of an ask: the owner's answer, or the client's error that there is none. */
export interface Outcome {
  readonly code: OutcomeCode;
  /** JSON of the response's body, as the owner wrote it; empty in the client's own words. */
  readonly body: string;
  /** The owner's data for headers about the resource, if they were asked for. */
  readonly head?: ResourceHead;
}

/**
 * The reason why an ask is sent again. `no_responders`: nothing was executed. `not_owner`: this
 * responder did not execute it; another may have. `lost`: no answer in time.
 */
export type RetryReason = 'no_responders' | 'not_owner' | 'lost';

/** State that the messages before this one leave. */
interface Past {
  /** The last message that carried the item. */
  readonly message: string | undefined;
  /** Messages that had no answer in time. */
  readonly silences: number;
  /** A message may have been executed, and no outcome came back. */
  readonly mayHaveRun: boolean;
}

type State =
  | { readonly phase: 'queued'; readonly past: Past }
  /** `message` carries it now. */
  | { readonly phase: 'sent'; readonly past: Past; readonly message: string }
  | { readonly phase: 'settled' };

export interface Item {
  readonly question: Question;
  /** On the monotonic clock; it never moves. */
  readonly deadlineMs: number;
  readonly resolve: (outcome: Outcome) => void;
  /** Written by `send`, `sendAgain` and `settle` alone. */
  state: State;
}

const unsent: State = { phase: 'queued', past: { message: undefined, silences: 0, mayHaveRun: false } };
const settled: State = { phase: 'settled' };

export const newItem = (question: Question, deadlineMs: number, resolve: (outcome: Outcome) => void): Item => ({
  question,
  deadlineMs,
  resolve,
  state: unsent,
});

export const isSettled = ({ state }: Item): boolean => state.phase === 'settled';

/** Number of messages with this item that had no answer in time. */
export const silencesOf = ({ state }: Item): number => (state.phase === 'settled' ? 0 : state.past.silences);

const isWrite = ({ question }: Item): boolean => 'op' in question;

/** queued → sent */
export function send(item: Item, message: string): void {
  if (item.state.phase === 'queued') item.state = { phase: 'sent', past: item.state.past, message };
}

/** sent → queued. @returns true if it waits for another message, false if it has an outcome. */
export function sendAgain(item: Item, why: RetryReason): boolean {
  const { state } = item;
  if (state.phase !== 'sent') return false;
  const silences = state.past.silences + (why === 'lost' ? 1 : 0);
  const mayHaveRun = state.past.mayHaveRun || why !== 'no_responders';
  item.state = { phase: 'queued', past: { message: state.message, silences, mayHaveRun } };
  return true;
}

/** queued or sent → settled. The first outcome counts; answers to other messages may follow. */
export function settle(item: Item, outcome: Outcome): void {
  if (item.state.phase === 'settled') return;
  item.state = settled;
  item.resolve(outcome);
}

/**
 * True if an answer to `message` may settle the item. A refusal of a write may only where no later
 * message carries it: the later one may find the name free that was taken.
 */
export function mayDecide(item: Item, message: string, isSuccess: boolean): boolean {
  const { state } = item;
  if (state.phase === 'settled') return false;
  if (isSuccess || !isWrite(item)) return true;
  return message === (state.phase === 'sent' ? state.message : state.past.message);
}

/**
 * The outcome that an answer makes. Owners do not keep `unavailable`: an earlier message with the
 * write, which comes late, may still be executed.
 */
export function outcomeBy(item: Item, answer: Outcome): Outcome {
  const { state } = item;
  const hasOthers = state.phase !== 'settled' && state.past.mayHaveRun;
  return answer.code === 'unavailable' && isWrite(item) && hasOthers ? unanswered(item) : answer;
}

/**
 * The outcome where no answer came: `timeout` for a write that may have been executed, and
 * `unavailable` for everything else (A3, A5).
 */
export function unanswered(item: Item): Outcome {
  const { state } = item;
  const mayHaveRun = state.phase === 'sent' || (state.phase === 'queued' && state.past.mayHaveRun);
  return { code: isWrite(item) && mayHaveRun ? 'timeout' : 'unavailable', body: '' };
}
