/** Restart, stop and health settings of a Compose service, as a policy. Pure. */
import type { Values } from '../../../lib/values.ts';
import { limits } from '../../../schemas/limits.ts';
import { keysOf } from './keys.ts';
import type { Reader } from './reader.ts';
import { booleanOf, commandOf, countOf, mapOf, secondsOf, signalOf } from './values.ts';
import type { Path } from '../file/tree.ts';

/** Compose restarts nothing by default. */
const restartOf = (value: unknown): string | undefined => {
  const [kind] = String(value).split(':');
  if (kind === 'no' || kind === 'false') return 'never';
  if (kind === 'always' || kind === 'unless-stopped') return 'always';
  return kind === 'on-failure' ? 'on_failure' : undefined;
};

const conditions: Readonly<Record<string, string>> = {
  any: 'always',
  always: 'always',
  'unless-stopped': 'always',
  'on-failure': 'on_failure',
  none: 'never',
  no: 'never',
};

/** An empty text, as from an empty variable, counts as absent. */
const orAbsent = (value: unknown): unknown => (value === '' ? undefined : value);

export interface ReadPolicy {
  readonly policy: Values;
  /** The file itself says that it runs once. */
  readonly isJob: boolean;
}

export function policyOf(reader: Reader, path: Path, service: Values): ReadPolicy {
  const restart = restartIn(reader, path, service);
  const signal = reader.take(
    [...path, 'stop_signal'],
    orAbsent(service['stop_signal']),
    signalOf,
    'a signal, like SIGINT',
  );
  const grace = [...path, 'stop_grace_period'];
  const seconds = reader.take(grace, service['stop_grace_period'], secondsOf, 'a time, like 1m30s');
  const policy = {
    restart: restart ?? 'never',
    stop_signal: signal,
    stop_grace_seconds: reader.atMost(grace, seconds, limits.policyStopGraceSeconds, 's'),
    health: healthOf(reader, [...path, 'healthcheck'], service['healthcheck']),
  };
  return { policy, isJob: restart === 'never' };
}

/** `deploy.restart_policy` wins over `restart`, as in Compose. */
function restartIn(reader: Reader, path: Path, service: Values): string | undefined {
  const form = '"no" in quotes, always, on-failure or unless-stopped';
  const restart = reader.take([...path, 'restart'], orAbsent(service['restart']), restartOf, form);
  if (/^on-failure:/.test(String(service['restart']))) reader.warn([...path, 'restart'], attemptsText);
  const at = [...path, 'deploy', 'restart_policy'];
  const given = mapOf(service['deploy'])?.['restart_policy'];
  const policy = reader.take(at, given, mapOf, 'a map');
  if (policy === undefined) return restart;
  reader.others(at, policy, keysOf.restartPolicy);
  if (policy['max_attempts'] !== undefined) reader.warn([...at, 'max_attempts'], attemptsText);
  const condition = policy['condition'] ?? 'any';
  return reader.take([...at, 'condition'], condition, (one) => conditions[String(one)], 'any, on-failure or none');
}

const attemptsText = 'its number of attempts is ignored: it is started again as often as it fails';

/** Docker's values for times that are absent or zero. */
const dockerTimes = { interval: 30, timeout: 30, start_period: 0 } as const;
const mostSeconds = {
  interval: limits.healthSeconds,
  timeout: limits.healthTimeoutSeconds,
  start_period: limits.healthSeconds,
} as const;

function healthOf(reader: Reader, path: Path, value: unknown): Values | undefined {
  const check = reader.take(path, value, mapOf, 'a map');
  if (check === undefined) return undefined;
  reader.others(path, check, keysOf.healthcheck);
  const test = check['test'];
  const isNone = Array.isArray(test) ? test[0] === 'NONE' : test === 'NONE';
  if (reader.take([...path, 'disable'], check['disable'], booleanOf, 'true or false') === true || isNone)
    return { none: true };
  if (test === undefined || test === null || (Array.isArray(test) && test.length === 0)) {
    const isAlone = Object.keys(check).every((key) => key === 'disable' || key === 'test');
    if (!isAlone) reader.warn(path, 'has no test, and is ignored: that of the image is not known');
    return undefined;
  }
  const time = (key: keyof typeof dockerTimes): number | undefined => {
    const at = [...path, key];
    const seconds = reader.take(at, check[key], secondsOf, 'a time, like 30s');
    return reader.atMost(at, seconds === 0 ? undefined : seconds, mostSeconds[key], 's') ?? dockerTimes[key];
  };
  const retries = reader.take([...path, 'retries'], check['retries'], countOf, 'an integer');
  return {
    command: reader.take([...path, 'test'], test, commandOf, 'a command, or a list that begins with CMD or CMD-SHELL'),
    interval: time('interval'),
    timeout: time('timeout'),
    start_period: time('start_period'),
    retries: reader.atMost([...path, 'retries'], retries === 0 ? undefined : retries, limits.healthRetries, ''),
  };
}
