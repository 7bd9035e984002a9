import type { Clock } from './time/clock.ts';
import type { Fields, Log } from './log.ts';

export type RateLimitedLog = Pick<Log, 'warn' | 'error'>;

/**
 * A log for events that others can cause as fast as they like. It writes one line of each event in
 * `everyMs`; the next line has in `left_out` how many were skipped since. Event names are constants
 * of our code, so there are few to remember.
 */
export function rateLimitedLog(
  log: RateLimitedLog,
  everyMs: number,
  clock: Pick<Clock, 'monotonicMs'>,
): RateLimitedLog {
  const written = new Map<string, { readonly atMs: number; leftOut: number }>();
  const limited =
    (level: keyof RateLimitedLog) =>
    (event: string, fields?: Fields): void => {
      const nowMs = clock.monotonicMs();
      const before = written.get(event);
      if (before !== undefined && nowMs - before.atMs < everyMs) {
        before.leftOut++;
        return;
      }
      written.set(event, { atMs: nowMs, leftOut: 0 });
      const leftOut = before?.leftOut ?? 0;
      log[level](event, leftOut === 0 ? fields : { ...fields, left_out: leftOut });
    };
  return { warn: limited('warn'), error: limited('error') };
}
