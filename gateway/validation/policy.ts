/** The body of a policy, with its defaults. Pure. */
import {
  defaultPolicy,
  healthDefaults,
  PolicyBody,
  policyStored,
  type HealthView,
  type Policy,
} from '../../schemas/api/policy.ts';
import type { FieldErrors } from '../../schemas/errors.ts';
import { limits } from '../../schemas/limits.ts';
import type { Validated } from './faults.ts';
import { bodyValidator } from './schema.ts';

const validateSchema = bodyValidator(PolicyBody);

type CheckBody = NonNullable<PolicyBody['health']>;

const kinds = ['command', 'http', 'tcp', 'none'] as const;

export function validatePolicy(body: unknown): Validated<Policy> {
  const valid = validateSchema(body);
  if (!valid.ok) return valid;
  const given = valid.value;
  const restart = given.restart ?? defaultPolicy.restart;
  const faults = given.health == null ? {} : checkFaults(given.health, restart);
  const removeAfter = given.remove_after_seconds ?? null;
  if (removeAfter !== null && restart === 'always')
    faults['remove_after_seconds'] = ['is of jobs alone: set restart to "never" or "on_failure"'];
  if (Object.keys(faults).length > 0) return { ok: false, faults };
  return {
    ok: true,
    value: policyStored({
      restart,
      stop_grace_seconds: given.stop_grace_seconds ?? defaultPolicy.stop_grace_seconds,
      stop_signal: given.stop_signal ?? defaultPolicy.stop_signal,
      health: given.health == null ? null : withDefaults(given.health),
      remove_after_seconds: removeAfter,
    }),
  };
}

function checkFaults(check: CheckBody, restart: Policy['restart']): FieldErrors {
  const faults: FieldErrors = {};
  const [kind, other] = kinds.filter((one) => check[one] !== undefined);
  if (kind === undefined || other !== undefined) faults['health'] = ['must have one of command, http, tcp and none'];
  else if (kind === 'none' && Object.keys(check).length > 1) faults['health'] = ['can have nothing beside none'];
  if (check.command?.[0] === '') faults['health.command.0'] = ["can't be blank"];
  const bytes = (check.command ?? []).reduce((sum, word) => sum + Buffer.byteLength(word), 0);
  if (bytes > limits.healthCommandBytes)
    faults['health.command'] = [`must be at most ${limits.healthCommandBytes} bytes in all`];
  if (restart === 'never' && check.restart_unhealthy === true)
    faults['health.restart_unhealthy'] = ['cannot be true where restart is "never": it would run a second time'];
  return faults;
}

const withDefaults = ({ command, http, tcp, none, ...timing }: CheckBody): HealthView =>
  none === true
    ? { none }
    : {
        ...(command === undefined ? {} : { command }),
        ...(http === undefined ? {} : { http: { port: http.port, path: http.path ?? '/' } }),
        ...(tcp === undefined ? {} : { tcp: { port: tcp.port } }),
        ...healthDefaults,
        ...timing,
      };
