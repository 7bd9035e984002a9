/** Values of options, as a person types them. */
import { InvalidArgumentError, type Command } from 'commander';
import { limits } from '../../schemas/limits.ts';

const cliWaitSeconds = 300;

/** A reader of whole numbers, which throws InvalidArgumentError. */
export const wholeNumber =
  (least: number, most: number) =>
  (text: string): number => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };

export const portNumber = wholeNumber(1, 65_535);
export const generationNumber = wholeNumber(1, Number.MAX_SAFE_INTEGER);
export const versionNumber = wholeNumber(1, Number.MAX_SAFE_INTEGER);
const waitSeconds = wholeNumber(1, limits.cliWaitSecondsMax);
const stableSeconds = wholeNumber(0, limits.cliStableSecondsMax);

/** `--timeout` of the commands that wait. */
export const timeout = (command: Command, text: string): Command =>
  command.option('--timeout <seconds>', text, waitSeconds, cliWaitSeconds);

/** `--timeout` and `--stable` of the commands that wait until containers are done. */
export const waiting = (command: Command, text = 'Longest wait'): Command =>
  timeout(command, text).option(
    '--stable <seconds>',
    'Time that a container without a health check must stay up',
    stableSeconds,
    limits.cliStableSeconds,
  );

export interface WaitOptions {
  readonly timeout: number;
  readonly stable: number;
}

const spanMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `Date` takes 30 February for 2 March. */
function isDay(text: string): boolean {
  const atMs = Date.parse(text);
  return !Number.isNaN(atMs) && new Date(atMs).toISOString().startsWith(text);
}

/** A time, or a span such as `12h` or `30d` before now (-1) or after it (1). RFC 3339. */
const timeIn =
  (direction: -1 | 1) =>
  (nowMs: () => number) =>
  (text: string): string => {
    const [, count, unit] = /^([1-9]\d{0,5})([smhd])$/.exec(text) ?? [];
    if (count !== undefined)
      return new Date(nowMs() + direction * Number(count) * spanMs[unit as keyof typeof spanMs]).toISOString();
    const [day] = /^\d{4}-\d\d-\d\d/.exec(text) ?? [];
    if (day !== undefined && isDay(day) && !Number.isNaN(Date.parse(text))) return new Date(text).toISOString();
    throw new InvalidArgumentError('It must be a time such as 2027-01-01T00:00:00Z, or a span such as 12h or 30d.');
  };

/** Parser of an end: a span counts from now on. */
export const endTime = timeIn(1);

/** Parser of a past time: a span counts back from now. */
export const pastTime = timeIn(-1);

export const endText = 'Expiry, such as 30d, 12h or 2027-01-01T00:00:00Z';
export const pastText = 'such as 12h, 30d or 2026-11-01T00:00:00Z';

/** An option that may be given several times. */
export const collect = (value: string, before: readonly string[] = []): string[] => [...before, value];
