import { inspect } from 'node:util';
import { sleep } from '../../lib/time/backoff.ts';

/**
 * Generous, because the machine runs other tests at the same time. A mutant's killer waits for what
 * never comes, so test/mutants sets a shorter one.
 */
const defaultDeadlineMs = Number(process.env['UNTIL_DEADLINE_MS'] ?? 90_000);
/** The first looks come quickly, for waits of milliseconds; later ones are rarer and cost less. */
const firstPollMs = 10;
const longestPollMs = 100;

/** The awaited value; `undefined` and `false` mean that it is not there yet. */
type Found<T> = Exclude<T, undefined | false>;
type Text = string | (() => string);

/**
 * Calls `look` until its value passes `isSo`, and returns that value. A look that throws counts as
 * "not yet". After the deadline it throws an error with `what` and the last value or error.
 */
export function until<T>(
  what: Text,
  look: () => T | Promise<T>,
  isSo?: undefined,
  deadlineMs?: number,
): Promise<Found<T>>;
export function until<T>(
  what: Text,
  look: () => T | Promise<T>,
  isSo: (value: T) => boolean,
  deadlineMs?: number,
): Promise<T>;
export async function until<T>(
  what: Text,
  look: () => T | Promise<T>,
  isSo: (value: T) => boolean = (value) => value !== undefined && value !== false,
  deadlineMs = defaultDeadlineMs,
): Promise<T> {
  const endMs = performance.now() + deadlineMs;
  for (let pollMs = firstPollMs; ; pollMs = Math.min(pollMs * 1.2, longestPollMs)) {
    const seen = await lookOnce(look);
    if (seen.ok && isSo(seen.value)) return seen.value;
    if (performance.now() > endMs) {
      const last = seen.ok ? `saw ${shorten(seen.value)}` : `failed with ${String(seen.error)}`;
      const message = `${typeof what === 'string' ? what : what()}: not within ${deadlineMs} ms; at last ${last}`;
      throw new Error(message, seen.ok ? {} : { cause: seen.error });
    }
    await sleep(pollMs);
  }
}

type Seen<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

async function lookOnce<T>(look: () => T | Promise<T>): Promise<Seen<T>> {
  try {
    return { ok: true, value: await look() };
  } catch (error) {
    return { ok: false, error };
  }
}

const shorten = (value: unknown): string => inspect(value, { depth: 6, breakLength: Infinity }).slice(0, 2000);
