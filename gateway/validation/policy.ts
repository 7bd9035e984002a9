/** The body of a policy, with its defaults. Pure. */
import { defaultPolicy, healthDefaults, PolicyBody, type HealthCheck, type Policy } from '../../schemas/api/policy.ts';
import type { FieldErrors } from '../../schemas/errors.ts';
import { limits } from '../../schemas/limits.ts';
import type { Validated } from './faults.ts';
import { bodyValidator } from './schema.ts';

const validateSchema = bodyValidator(PolicyBody);

type CheckBody = NonNullable<PolicyBody['health']>;

const kinds = ['command', 'http', 'tcp'] as const;

export function validatePolicy(body: unknown): Validated<Policy> {
  const valid = validateSchema(body);
  if (!valid.ok) return valid;
  const given = valid.value;
  const restart = given.restart ?? defaultPolicy.restart;
  const faults = given.health == null ? {} : checkFaults(given.health, restart);
  if (Object.keys(faults).length > 0) return { ok: false, faults };
  return {
    ok: true,
    value: {
      restart,
      stop_grace_seconds: given.stop_grace_seconds ?? defaultPolicy.stop_grace_seconds,
      stop_signal: given.stop_signal ?? defaultPolicy.stop_signal,
      health: given.health == null ? null : withDefaults(given.health),
    },
  };
}

function checkFaults(check: CheckBody, restart: Policy['restart']): FieldErrors {
  const faults: FieldErrors = {};
  const [kind, other] = kinds.filter((one) => check[one] !== undefined);
  if (kind === undefined || other !== undefined) faults['health'] = ['must have one of command, http and tcp'];
  if (check.command?.[0] === '') faults['health.command.0'] = ["can't be blank"];
  const bytes = (check.command ?? []).reduce((sum, word) => sum + Buffer.byteLength(word), 0);
  if (bytes > limits.healthCommandBytes)
    faults['health.command'] = [`must be at most ${limits.healthCommandBytes} bytes in all`];
  if (restart === 'never' && check.restart_unhealthy === true)
    faults['health.restart_unhealthy'] = ['cannot be true where restart is "never": it would run a second time'];
  return faults;
}

const withDefaults = ({ command, http, tcp, ...timing }: CheckBody): HealthCheck => ({
  ...(command === undefined ? {} : { command }),
  ...(http === undefined ? {} : { http: { port: http.port, path: http.path ?? '/' } }),
  ...(tcp === undefined ? {} : { tcp: { port: tcp.port } }),
  ...healthDefaults,
  ...timing,
});
