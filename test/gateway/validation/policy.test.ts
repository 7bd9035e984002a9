/** The body of a policy: its defaults, and what it may not say. */
import t from 'tap';
import { validatePolicy } from '../../../gateway/validation/policy.ts';
import { defaultPolicy } from '../../../schemas/api/policy.ts';

const valueOf = (body: unknown) => {
  const valid = validatePolicy(body);
  return valid.ok ? valid.value : valid.faults;
};

t.test('absent fields have their defaults', (t) => {
  t.same(valueOf({}), defaultPolicy);
  t.same(valueOf({ health: null }), defaultPolicy);
  t.same(valueOf({ restart: 'never', stop_grace_seconds: 0, stop_signal: 'SIGQUIT' }), {
    restart: 'never',
    stop_grace_seconds: 0,
    stop_signal: 'SIGQUIT',
    health: null,
  });
  const timing = { interval: 10, timeout: 5, retries: 3, start_period: 10, restart_unhealthy: false };
  t.match(valueOf({ health: { http: { port: 8080 } } }), { health: { http: { port: 8080, path: '/' }, ...timing } });
  t.match(valueOf({ health: { tcp: { port: 1 }, retries: 1 } }), {
    health: { ...timing, tcp: { port: 1 }, retries: 1 },
  });
  t.match(valueOf({ health: { command: ['true'] } }), { health: { command: ['true'], ...timing } });
  t.same(valueOf({ health: { none: true } }), { ...defaultPolicy, no_check: true }, 'beside `health`');
  t.end();
});

t.test('policies that are refused', (t) => {
  const health = (check: object) => ({ health: { tcp: { port: 80 }, ...check } });
  const one = 'must have one of command, http, tcp and none';
  for (const [body, field, message] of [
    [{ restart: 'sometimes' }, 'restart', 'must be one of always, on_failure, never'],
    [{ stop_grace_seconds: 301 }, 'stop_grace_seconds', 'must be at most 300'],
    [{ stop_grace_seconds: -1 }, 'stop_grace_seconds', 'must be at least 0'],
    [{ stop_grace_seconds: 1.5 }, 'stop_grace_seconds', 'must be an integer'],
    [{ stop_signal: 'TERM' }, 'stop_signal', /^must be one of SIGTERM, /],
    [{ health: {} }, 'health', one],
    [{ health: { command: ['true'], tcp: { port: 1 } } }, 'health', one],
    [{ health: { none: true, tcp: { port: 1 } } }, 'health', one],
    [{ health: { none: true, retries: 2 } }, 'health', 'can have nothing beside none'],
    [{ health: { none: false, tcp: { port: 1 } } }, 'health.none', 'must be true'],
    [{ health: { command: [] } }, 'health.command', "can't be blank"],
    [{ health: { command: [''] } }, 'health.command.0', "can't be blank"],
    [{ health: { command: ['a\0b'] } }, 'health.command.0', /must match/],
    [{ health: { command: ['x'.repeat(9_000), 'y'.repeat(9_000)] } }, 'health.command', /at most 16384 bytes/],
    [{ health: { http: { port: 0 } } }, 'health.http.port', 'must be at least 1'],
    [{ health: { http: { port: 80, path: 'x' } } }, 'health.http.path', /must match/],
    [{ health: { http: { port: 80, host: 'x' } } }, 'health.http.host', 'is not known'],
    [health({ interval: 0 }), 'health.interval', 'must be at least 1'],
    [health({ timeout: 301 }), 'health.timeout', 'must be at most 300'],
    [health({ retries: 0 }), 'health.retries', 'must be at least 1'],
    [health({ start_period: -1 }), 'health.start_period', 'must be at least 0'],
    [health({ grace: 1 }), 'health.grace', 'is not known'],
    [{ restart: 'never', ...health({ restart_unhealthy: true }) }, 'health.restart_unhealthy', /a second time/],
    [{ restarts: 'always' }, 'restarts', 'is not known'],
    [{ remove_after_seconds: 0 }, 'remove_after_seconds', /of jobs alone/],
    [{ restart: 'never', remove_after_seconds: -1 }, 'remove_after_seconds', /0/],
    [[], '_', 'must be an object'],
  ] as const) {
    t.match(valueOf(body), { [field]: [message] }, JSON.stringify(body).slice(0, 80));
  }
  t.end();
});
