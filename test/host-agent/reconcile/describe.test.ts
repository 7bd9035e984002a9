import t from 'tap';
import { describe, describeAway } from '../../../host-agent/reconcile/describe.ts';
import type { RestartState } from '../../../host-agent/reconcile/restart/restart-state.ts';
import { absent, type Found, type Observed } from '../../../host-agent/docker/observed.ts';
import type { Wanted } from '../../../host-agent/desired/wanted.ts';
import { timestamp } from '../../../lib/time/timestamp.ts';
import { created, down, found, image, nowMs, reference, restartState, seen, up, wanted } from '../support/decisions.ts';
import type { Why } from '../../../host-agent/reconcile/step.ts';

const running = wanted('running');
const why: Why = { reason: 'image_pull', message: 'connection refused', exitCode: null };
const crashed: Why = { reason: 'crash_loop', message: 'exited with code 3, 3 times in a row', exitCode: 3 };
const full: Why = { reason: 'disk_limit', message: 'it wrote too much', exitCode: null };
const rejected: Why = { reason: 'rejected', message: 'does not fit', exitCode: null };
const pulling = { kind: 'pull', generation: 3, reference } as const;
const stopping = { kind: 'stop', generation: 3, dockerId: 'd1' } as const;
const waiting = { phase: 'waiting', untilMs: nowMs + 1000 } as const;

const table: readonly [string, Wanted, Observed, Partial<RestartState>, object][] = [
  ['taken up → pending', running, absent, {}, { status: 'pending', reason: null }],
  ['pull under way → pulling', running, absent, { operation: pulling }, { status: 'pulling', reason: null }],
  [
    'pull after a failure → pulling, with the reason',
    running,
    absent,
    { operation: pulling, why },
    { status: 'pulling', reason: 'image_pull' },
  ],
  [
    'pull failed → backoff, with the reason',
    running,
    absent,
    { attempt: waiting, why },
    { status: 'backoff', reason: 'image_pull', message: 'connection refused', next_retry_at: timestamp(nowMs + 1000) },
  ],
  ['image present → starting', running, absent, { image }, { status: 'starting' }],
  ['created → starting', running, seen(created), {}, { status: 'starting' }],
  [
    'up → running',
    running,
    seen(up),
    { restarts: 2 },
    { status: 'running', reason: null, restart_count: 2, started_at: timestamp(nowMs - 60_000) },
  ],
  ['up, health check not done → starting', running, seen({ ...up, health: 'starting' }), {}, { status: 'starting' }],
  [
    'up, health check fails → running, unhealthy',
    running,
    seen({ ...up, health: 'unhealthy' }),
    {},
    { status: 'running', reason: 'unhealthy' },
  ],
  [
    'crashed → backoff with its exit code',
    running,
    seen(down()),
    { attempt: waiting, why: crashed },
    { status: 'backoff', reason: 'crash_loop', exit_code: 3 },
  ],
  [
    'in back-off → how often it failed in a row',
    running,
    seen(down()),
    { attempt: waiting, why: { reason: 'oom_killed', message: 'out of memory', exitCode: 137 }, failures: 3 },
    { status: 'backoff', reason: 'oom_killed', failures: 3 },
  ],
  [
    'failed → failed, with the reason',
    running,
    absent,
    { attempt: { phase: 'failed' }, why },
    { status: 'failed', reason: 'image_pull' },
  ],
  [
    'login refused → failed, with its version',
    running,
    absent,
    { attempt: { phase: 'failed' }, why: { ...why, reason: 'image_auth', login: 3 } },
    { status: 'failed', reason: 'image_auth', refused_login: 3 },
  ],
  ['replaced → stopping', running, seen(up), { operation: stopping }, { status: 'stopping' }],
  ['prepare, absent → pending', wanted('prepared'), absent, {}, { status: 'pending' }],
  ['prepare, pull under way → pulling', wanted('prepared'), absent, { operation: pulling }, { status: 'pulling' }],
  ['prepare failed → failed', wanted('prepared'), absent, { attempt: { phase: 'failed' }, why }, { status: 'failed' }],
  ['prepared → stopped', wanted('prepared'), seen(created), {}, { status: 'stopped', reason: null }],
  [
    'prepare, there for another version → starting',
    wanted('prepared', { tag: '2' }),
    seen(created),
    {},
    { status: 'starting' },
  ],
  [
    'prepare, there for another placement',
    wanted('prepared', { placement: 2 }),
    seen(down()),
    {},
    { status: 'starting' },
  ],
  ['prepare, up → stopping', wanted('prepared'), seen(up), {}, { status: 'stopping' }],
  ['desired stopped, still up → stopping', wanted('stopped'), seen(up), {}, { status: 'stopping' }],
  [
    'stopped → stopped with its exit code',
    wanted('stopped'),
    seen(down({ exitCode: 143 })),
    {},
    { status: 'stopped', exit_code: 143, reason: null },
  ],
  ['stopped before it ever ran → stopped', wanted('stopped'), absent, {}, { status: 'stopped', exit_code: null }],
  [
    'over its disk limit → failed, with the reason',
    running,
    seen(down()),
    { attempt: { phase: 'failed' }, why: full },
    { status: 'failed', reason: 'disk_limit', message: 'it wrote too much' },
  ],
  ['stopped after a failure → stopped', wanted('stopped'), absent, { why }, { status: 'stopped', reason: null }],
  ['desired removed → removing', wanted('removed'), seen(down()), {}, { status: 'removing' }],
];

for (const [name, want, observed, changes, observation] of table) {
  t.test(name, (t) => {
    t.match(describe(want, observed, restartState(changes)), { gone: false, observation });
    t.end();
  });
}

t.test('a container is down when all of its copies are', (t) => {
  const other = found(up, { dockerId: 'other', spec: 'other' });
  for (const want of ['stopped', 'prepared'] as const) {
    const status = (...extra: Found[]) =>
      describe(wanted(want), seen(created, {}, extra), restartState())?.observation.status;
    t.equal(status(other), 'stopping', `${want}: an update has left another one up`);
    t.equal(status({ ...other, state: down() }), 'stopped', want);
  }
  t.end();
});

t.test('a removed or refused container is gone', (t) => {
  t.match(describe(wanted('removed'), absent, restartState()), { gone: true });
  t.match(describe(running, absent, restartState({ attempt: { phase: 'failed' }, why: rejected })), {
    gone: true,
    observation: { status: 'failed', reason: 'rejected' },
  });
  t.end();
});

t.test('orphans and ignored containers have no report', (t) => {
  t.equal(describe({ want: 'nothing' }, seen(up), restartState()), undefined);
  t.equal(describe({ want: 'ignored' }, seen(up), restartState()), undefined);
  t.end();
});

t.test('while the engine is away, the last status and reason stand', (t) => {
  const wasUp = describe(running, seen(up), restartState());
  const wasBackoff = describe(running, seen(down()), restartState({ attempt: waiting, why: crashed }));
  t.match(describeAway(wasUp, nowMs), { observation: { status: 'running', reason: 'engine_unavailable' } });
  t.match(describeAway(wasBackoff, nowMs), { observation: { status: 'backoff', reason: 'crash_loop' } });
  t.match(describeAway(undefined, nowMs), { observation: { status: 'pending', reason: 'engine_unavailable' } });
  t.end();
});

t.test('a long message is cut to the limit of a report', (t) => {
  const long = { reason: 'start_failed', message: 'x'.repeat(5000), exitCode: null } as const;
  const description = describe(running, absent, restartState({ attempt: { phase: 'failed' }, why: long }));
  t.equal(description?.observation.message?.length, 1024);
  t.end();
});
