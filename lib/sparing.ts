import type { Clock } from './time/clock.ts';
import type { Fields, Log } from './log.ts';

export type SparingLog = Pick<Log, 'warn' | 'error'>;

/**
 * A log for events that others can cause as fast as they like. It writes one line of each event in
 * `everyMs`; the next line has in `left_out` how many were skipped since. Event names are constants
 * of our code, so there are few to remember.
 */
export function sparing(log: SparingLog, everyMs: number, clock: Pick<Clock, 'monotonicMs'>): SparingLog {
  const written = new Map<string, { readonly atMs: number; leftOut: number }>();
  const spare =
    (level: keyof SparingLog) =>
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
  return { warn: spare('warn'), error: spare('error') };
}
