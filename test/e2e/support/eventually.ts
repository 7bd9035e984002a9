import { until } from '../../support/until.ts';

/** Longer than the default of `until`: real programs, an engine and images take their time. */
const deadlineMs = 180_000;

/** `until` with a deadline for the whole system. */
export const eventually = <T>(
  what: string,
  look: () => Promise<T>,
  isSo: (value: T) => boolean,
  withinMs = deadlineMs,
): Promise<T> => until(what, look, isSo, withinMs);
