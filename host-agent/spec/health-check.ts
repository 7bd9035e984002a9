/**
 * The health check that a container is made with. Every member is sent, and none is zero: the
 * engine takes absent and zero members from the image, and its own bounds are a millisecond. Pure.
 */
import { engineCheckOf, policyOf } from '../../schemas/api/policy.ts';
import { limits } from '../../schemas/limits.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import type { ImageCheck } from '../docker/answers.ts';

const nanosPerSecond = 1_000_000_000;
const nanos = (seconds: number): number => seconds * nanosPerSecond;

/** The engine's form of a check that is switched off, so that the image's does not apply. */
const noCheck = { Test: ['NONE'] } as const;

/**
 * The engine's defaults for members that an image leaves out (Docker Engine API, `HealthConfig`).
 */
const engineDefaults = { interval: 30, timeout: 30, startInterval: 5, retries: 3 } as const;

/** Nanoseconds: less than any check takes, and not zero. */
const leastStartPeriod = 1_000_000;

/**
 * The check of a container's policy; `undefined` to use the check of the image, if there is one.
 */
export function policyCheckOf(container: DesiredContainer) {
  const policy = policyOf(container);
  if (policy.no_check === true) return { Test: ['NONE'] };
  const check = engineCheckOf(policy);
  if (check?.command === undefined) return undefined;
  return {
    Test: ['CMD', ...check.command],
    Interval: nanos(check.interval),
    Timeout: nanos(check.timeout),
    Retries: check.retries,
    StartPeriod: nanos(check.start_period),
  };
}

/** @param ofImage the check that the image declares */
export function sentCheck(container: DesiredContainer, ofImage: ImageCheck | null | undefined) {
  const check = policyCheckOf(container);
  if (check === undefined) return boundedCheck(ofImage);
  if (check.Interval === undefined) return noCheck;
  const StartPeriod = Math.max(leastStartPeriod, check.StartPeriod);
  return { ...check, StartPeriod, StartInterval: nanos(engineDefaults.startInterval) };
}

/** A number of the engine, where 0 means absent. */
const orElse = (given: number | undefined, fallback: number): number =>
  given === undefined || given === 0 ? fallback : given;

/**
 * The image's check within the bounds of a policy's. A check without a command is left out: it
 * makes an engine of 20.10 crash.
 */
function boundedCheck(ofImage: ImageCheck | null | undefined) {
  const { Test, Interval, Timeout, StartPeriod, StartInterval, Retries } = ofImage ?? {};
  const [kind, ...words] = Test ?? [];
  if ((kind !== 'CMD' && kind !== 'CMD-SHELL') || words.length === 0) return noCheck;
  const seconds = (given: number | undefined, fallback: number, most: number): number =>
    Math.min(Math.max(orElse(given, nanos(fallback)), nanos(1)), nanos(most));
  return {
    Test: [kind, ...words],
    Interval: seconds(Interval, engineDefaults.interval, limits.healthSeconds),
    Timeout: seconds(Timeout, engineDefaults.timeout, limits.healthTimeoutSeconds),
    Retries: Math.min(Math.max(orElse(Retries, engineDefaults.retries), 1), limits.healthRetries),
    StartPeriod: Math.min(Math.max(StartPeriod ?? 0, leastStartPeriod), nanos(limits.healthSeconds)),
    StartInterval: seconds(StartInterval, engineDefaults.startInterval, limits.healthSeconds),
  };
}
