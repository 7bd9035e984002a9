import { until } from '../../support/until.ts';

/** The programs, an engine and its images take longer than one program's own parts. */
const deadlineMs = 180_000;

/** `until`, with the time that the whole takes. */
export const eventually = <T>(
  what: string,
  look: () => Promise<T>,
  isSo: (value: T) => boolean,
  withinMs = deadlineMs,
): Promise<T> => until(what, look, isSo, withinMs);
