/**
 * The policy of a container: what happens when it ends, how it is stopped, and how its health is
 * checked. A sub-resource beside the sixteen fields of a container (ADR 36).
 */
import Type, { type Static } from 'typebox';
import { limits } from '../limits.ts';
import { restartPolicies, stopSignals } from '../words.ts';
import { nullable } from './nullable.ts';

export type RestartPolicy = (typeof restartPolicies)[number];
export type StopSignal = (typeof stopSignals)[number];

const Seconds = (minimum: number, maximum: number, fallback: number, description: string) =>
  Type.Integer({ minimum, maximum, default: fallback, description });

const PortNumber = Type.Integer({ minimum: 1, maximum: 65535 });

export const healthDefaults = {
  interval: 10,
  timeout: 5,
  retries: 3,
  start_period: 10,
  restart_unhealthy: false,
} as const;

const timing = {
  interval: Seconds(1, limits.healthSeconds, healthDefaults.interval, 'Seconds between two checks.'),
  timeout: Seconds(1, limits.healthTimeoutSeconds, healthDefaults.timeout, 'Time-out of one check, in seconds.'),
  retries: Seconds(
    1,
    limits.healthRetries,
    healthDefaults.retries,
    'Consecutive failures before the container is unhealthy.',
  ),
  start_period: Seconds(
    0,
    limits.healthSeconds,
    healthDefaults.start_period,
    'Grace period after a start, in seconds: failed checks in it do not count.',
  ),
  restart_unhealthy: Type.Boolean({
    default: healthDefaults.restart_unhealthy,
    description: 'If true, an unhealthy container is restarted.',
  }),
};

const Command = Type.Array(Type.String({ maxLength: limits.healthCommandBytes, pattern: '^[^\\u0000]*$' }), {
  minItems: 1,
  maxItems: limits.healthCommandWords,
  description: 'Program in the container, with its arguments; exit code 0 means healthy.',
});
const HttpPath = Type.String({ pattern: '^/[!-~]*$', maxLength: limits.healthPathChars, default: '/' });
const httpText = 'A GET to that port of the container; an answer of 200 to 399 says healthy.';
const tcpText = 'A connection to that port of the container; that it opens says healthy.';
const checkText = 'One of `command`, `http` and `tcp`.';
const None = Type.Literal(true, { description: 'Disables health checks, also that of the image.' });

/** A health check, with all of its fields. Open, as `Policy` is: later releases may add some. */
export const HealthCheck = Type.Object(
  {
    command: Type.Optional(Command),
    http: Type.Optional(Type.Object({ port: PortNumber, path: HttpPath }, { description: httpText })),
    tcp: Type.Optional(Type.Object({ port: PortNumber }, { description: tcpText })),
    ...timing,
  },
  { description: checkText },
);
export type HealthCheck = Static<typeof HealthCheck>;

/** No check: the one that the image declares is switched off. */
export const NoCheck = Type.Object({ none: None });
export type NoCheck = Static<typeof NoCheck>;

/** As `GET /:id/policy` shows it; `null` is the check of the image, if it declares one. */
export const HealthView = nullable(Type.Union([HealthCheck, NoCheck]));
export type HealthView = Static<typeof HealthView>;

const stopGrace = Type.Integer({
  minimum: 0,
  maximum: limits.policyStopGraceSeconds,
  description: 'Seconds between the stop signal and SIGKILL.',
});
const stopSignalText =
  'Signal sent to stop the container. With SIGTERM, the stop signal that its image names, if it names one.';

const removeAfter = Type.Integer({
  minimum: 0,
  maximum: limits.policyRemoveAfterSeconds,
  description: 'Seconds after its end in which a job stays; then it is removed by itself.',
});

const policyFields = {
  restart: Type.Enum([...restartPolicies]),
  stop_grace_seconds: stopGrace,
  stop_signal: Type.Enum([...stopSignals], { description: stopSignalText }),
};

/** `GET /:id/policy` */
export const PolicyView = Type.Object({
  ...policyFields,
  health: HealthView,
  remove_after_seconds: nullable(removeAfter),
});
export type PolicyView = Static<typeof PolicyView>;

/**
 * As it is stored, and as hosts get it. That the image's check is switched off stands beside
 * `health`, where every release reads it.
 */
export const Policy = Type.Object({
  ...policyFields,
  health: nullable(HealthCheck),
  no_check: Type.Optional(Type.Literal(true)),
  remove_after_seconds: Type.Optional(removeAfter),
});
export type Policy = Static<typeof Policy>;

export const policyShown = ({
  no_check,
  health,
  remove_after_seconds: removeAfterSeconds,
  ...rest
}: Policy): PolicyView => ({
  ...rest,
  health: no_check === true ? { none: true } : health,
  remove_after_seconds: removeAfterSeconds ?? null,
});

/** A stored policy as the API shows it. */
export const policyStored = ({ health, remove_after_seconds: removeAfterSeconds, ...rest }: PolicyView): Policy => ({
  ...rest,
  ...(health !== null && 'none' in health ? { health: null, no_check: true } : { health }),
  ...(removeAfterSeconds === null ? {} : { remove_after_seconds: removeAfterSeconds }),
});

/** Policy of a container without one of its own, and default of absent fields. */
export const defaultPolicy: Policy = {
  restart: 'always',
  stop_grace_seconds: 10,
  stop_signal: 'SIGTERM',
  health: null,
};

/** Of a container as it is stored, or as its host gets it. */
export const policyOf = ({ policy }: { readonly policy?: Policy }): Policy => policy ?? defaultPolicy;

/** `PUT /:id/policy`: the whole policy; absent fields have their defaults. */
export const PolicyBody = Type.Object(
  {
    restart: Type.Optional(Type.Enum([...restartPolicies], { default: defaultPolicy.restart })),
    stop_grace_seconds: Type.Optional({ ...stopGrace, default: defaultPolicy.stop_grace_seconds }),
    stop_signal: Type.Optional(
      Type.Enum([...stopSignals], { default: defaultPolicy.stop_signal, description: stopSignalText }),
    ),
    health: Type.Optional(
      nullable(
        Type.Object(
          {
            command: Type.Optional(Command),
            http: Type.Optional(
              Type.Object(
                { port: PortNumber, path: Type.Optional(HttpPath) },
                { additionalProperties: false, description: httpText },
              ),
            ),
            tcp: Type.Optional(
              Type.Object({ port: PortNumber }, { additionalProperties: false, description: tcpText }),
            ),
            interval: Type.Optional(timing.interval),
            timeout: Type.Optional(timing.timeout),
            retries: Type.Optional(timing.retries),
            start_period: Type.Optional(timing.start_period),
            restart_unhealthy: Type.Optional(timing.restart_unhealthy),
            none: Type.Optional(None),
          },
          { additionalProperties: false, description: `${checkText.slice(0, -1)}; or \`none\` alone.` },
        ),
      ),
    ),
    remove_after_seconds: Type.Optional(nullable(removeAfter)),
  },
  { additionalProperties: false },
);
export type PolicyBody = Static<typeof PolicyBody>;

/**
 * A check that the engine carries out, because it is part of the container that it makes; undefined
 * if there is none.
 */
export const engineCheckOf = ({ health }: Policy): HealthCheck | undefined =>
  health?.command === undefined ? undefined : health;

const engineTimingOf = (policy: Policy): string => {
  const check = engineCheckOf(policy);
  if (policy.no_check === true) return 'none';
  return JSON.stringify(check && [check.command, check.interval, check.timeout, check.retries, check.start_period]);
};

/** True if the engine's container would be the same under both. */
export const isSameForEngine = (one: Policy, other: Policy): boolean => engineTimingOf(one) === engineTimingOf(other);

/** In the order of the fields of `Policy`, whatever the order in a message. */
export function textOfPolicy(policy: Policy): string {
  const {
    restart,
    stop_grace_seconds,
    stop_signal,
    health,
    no_check,
    remove_after_seconds: removeAfterSeconds,
  } = policy;
  const shared = [restart, stop_grace_seconds, stop_signal, health && textOfCheck(health), no_check === true];
  // Without it, the text is as releases that do not know it write it.
  return JSON.stringify(removeAfterSeconds === undefined ? shared : [...shared, removeAfterSeconds]);
}

export const textOfCheck = (check: HealthCheck): string => {
  const { command, http, tcp, interval, timeout, retries, start_period, restart_unhealthy } = check;
  return JSON.stringify([
    command ?? null,
    http === undefined ? null : [http.port, http.path],
    tcp?.port ?? null,
    [interval, timeout, retries, start_period, restart_unhealthy],
  ]);
};

export const isDefaultPolicy = (policy: Policy): boolean => textOfPolicy(policy) === defaultText;
const defaultText = textOfPolicy(defaultPolicy);
