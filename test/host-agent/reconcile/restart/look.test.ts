import t from 'tap';
import { afterLook, restartBackoffForgetMs } from '../../../../host-agent/reconcile/restart/look.ts';
import { absent, type Observed } from '../../../../host-agent/docker/observed.ts';
import {
  blank,
  overDisk,
  settle,
  withinDisk,
  type RestartState,
} from '../../../../host-agent/reconcile/restart/restart-state.ts';
import type { Why } from '../../../../host-agent/reconcile/step.ts';
import { created, down, nowMs, restartState, seen, up, wanted } from '../../support/decisions.ts';

const bounds = { minMs: 1000, maxMs: 60_000 };
const watchedSinceMs = nowMs - 3_600_000;
const running = wanted('running');
const look = (before: RestartState, observed: Observed, want = running, atMs = nowMs): RestartState =>
  afterLook(before, { wanted: want, observed, nowMs: atMs, watchedSinceMs, backoff: bounds });
const crash = (run: string, exit = {}): Observed => {
  const state = down(exit);
  return seen(state.phase === 'exited' ? { ...state, run } : state);
};
const why: Why = { reason: 'image_pull', message: 'connection refused', exitCode: null };

t.test('an exit counts once, however many looks see it', (t) => {
  const once = look(restartState(), crash('r1'));
  t.match(once, { failures: 1, attempt: { phase: 'waiting', untilMs: nowMs + 1000 }, why: { reason: 'exited' } });
  t.same(look(once, crash('r1')), once);
  t.end();
});

t.test('an exit while the agent was away is no failure, and the container starts at once', (t) => {
  const away = { seenUpAtMs: watchedSinceMs - 1, startedAtMs: watchedSinceMs - 1 };
  const unwatched = look(restartState({ ...away, failures: 3 }), crash('r1'));
  t.match(unwatched, { failures: 3, attempt: { phase: 'clear' }, why: null, countedRun: 'r1' });
  t.match(look(restartState(away), crash('r1')), { failures: 0, restarts: 1 });
  const never = crash('r1', { endedAtMs: -62_135_596_800_000, error: 'no such file' });
  t.match(
    look(restartState(away), never),
    { failures: 1, why: { reason: 'start_failed' } },
    'a start that failed never ran',
  );
  const started = { ...unwatched, startedAtMs: nowMs };
  t.match(
    look(started, crash('r2')),
    { failures: 4, attempt: { phase: 'waiting' } },
    'a container that the agent started is watched',
  );
  const seenUp = look(unwatched, seen({ ...up, run: 'r2' }));
  t.match(look(seenUp, crash('r2')), { failures: 4, attempt: { phase: 'waiting' } }, 'and one that was seen running');
  t.end();
});

t.test('setting the wall clock does not change the back-off', (t) => {
  const hourMs = 3_600_000;
  const start = { kind: 'start', dockerId: 'd1', prepare: false, again: true } as const;
  for (const [name, setMs] of [
    ['set back', -hourMs],
    ['set forward', hourMs],
  ] as const) {
    // Only the engine's times follow the wall clock.
    let state = look(restartState(), crash('r0'));
    const pauses: number[] = [];
    for (let each = 1; each <= 6; each++) {
      state = settle(state, start, { kind: 'done' }, nowMs, bounds);
      const startedAtMs = nowMs + setMs;
      state = look(state, seen({ ...up, run: `r${each}`, startedAtMs: Math.min(startedAtMs, nowMs - hourMs) }));
      state = look(state, crash(`r${each}`, { endedAtMs: startedAtMs, upMs: setMs > 0 ? hourMs : 0 }));
      pauses.push(state.attempt.phase === 'waiting' ? state.attempt.untilMs - nowMs : 0);
    }
    t.same(pauses, [2000, 4000, 8000, 16_000, 32_000, 60_000], name);
  }
  t.end();
});

t.test('back-off doubles from 1 s to 60 s', (t) => {
  let state = restartState();
  const pauses = [1, 2, 3, 4, 5, 6, 7, 8].map((each) => {
    state = look(state, crash(`r${each}`));
    return state.attempt.phase === 'waiting' ? state.attempt.untilMs - nowMs : -1;
  });
  t.same(pauses, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  t.end();
});

t.test('ten minutes of running clear earlier failures', (t) => {
  const upMs = restartBackoffForgetMs;
  t.match(look(restartState({ failures: 5 }), crash('r1', { upMs })), {
    failures: 1,
    attempt: { phase: 'waiting', untilMs: nowMs + 1000 },
  });
  t.match(look(restartState({ failures: 5 }), seen({ ...up, startedAtMs: nowMs - upMs })), { failures: 0 });
  t.match(look(restartState({ failures: 5 }), crash('r1', { upMs: upMs - 1 })), { failures: 6 });
  t.end();
});

for (const [name, exit, failures, reason, exitCode] of [
  ['first exit → exited', { exitCode: 3 }, 0, 'exited', 3],
  ['exit code 0 → exited all the same', { exitCode: 0 }, 0, 'exited', 0],
  ['third quick exit → crash_loop', { exitCode: 3 }, 2, 'crash_loop', 3],
  ['out of memory → oom_killed', { exitCode: 137, oomKilled: true }, 0, 'oom_killed', 137],
  ['out of memory in a loop → still oom_killed', { exitCode: 137, oomKilled: true }, 9, 'oom_killed', 137],
  [
    'start that the engine could not make → start_failed',
    { exitCode: 127, error: 'no such file' },
    0,
    'start_failed',
    127,
  ],
] as const) {
  t.test(name, (t) => {
    t.match(look(restartState({ failures }), crash('r1', exit)).why, { reason, exitCode });
    t.end();
  });
}

t.test('a new generation clears back-off and failure; the old exit is no crash', (t) => {
  const later = wanted('running', { generation: 4 });
  for (const attempt of [{ phase: 'failed' }, { phase: 'waiting', untilMs: nowMs + 9000 }] as const) {
    const before = restartState({ attempt, why, failures: 7, restarts: 7 });
    const after = look(before, crash('r1'), later);
    t.match(after, {
      generation: 4,
      attempt: { phase: 'clear' },
      why: null,
      failures: 0,
      restarts: 0,
      countedRun: 'r1',
    });
    t.same(look(after, crash('r1'), later), after);
  }
  t.end();
});

t.test('a start of a running container keeps its restart count', (t) => {
  t.match(look(restartState({ restarts: 4, failures: 2 }), seen(up), wanted('running', { generation: 4 })), {
    restarts: 4,
  });
  t.end();
});

t.test('with pull_policy always, a start pulls first', (t) => {
  const always = (generation: number) => wanted('running', { generation, pull_policy: 'always' });
  t.equal(look(restartState(), crash('r1'), always(4)).pullDue, true);
  t.equal(look(restartState(), seen(up), always(4)).pullDue, false, 'not while it runs');
  t.equal(look(restartState(), crash('r1'), wanted('running', { generation: 4 })).pullDue, false);
  const prepare = wanted('prepared', { generation: 4, pull_policy: 'always' });
  t.equal(look(restartState(), seen(created), prepare).pullDue, true, 'what is prepared');
  const ready = restartState({ want: 'prepared', generation: 4 });
  t.equal(look(ready, seen(created), always(4)).pullDue, false, 'and not again when it starts');
  t.end();
});

t.test('after an isolation, the stop is no crash', (t) => {
  const isolated = look(restartState(), seen(up), wanted('stopped', { generation: 3 }));
  const back = look(look(isolated, crash('r1'), wanted('stopped', { generation: 3 })), crash('r1'));
  t.match(back, { attempt: { phase: 'clear' }, failures: 0 });
  t.end();
});

t.test('a copy over its disk limit stops, and starts again once it is within it', (t) => {
  const marked = overDisk(restartState(), 'd1', 'it wrote too much');
  t.match(marked.disk, { dockerId: 'd1', why: { reason: 'disk_limit' } });
  t.equal(overDisk(marked, 'd1', 'again'), marked);
  for (const want of ['removed', 'stopped'] as const) {
    const other = restartState({ want });
    t.equal(overDisk(other, 'd1', 'x'), other, `it is ${want} anyway`);
  }
  const over = look(marked, seen(up));
  t.match(over, { disk: null, attempt: { phase: 'failed' }, why: { reason: 'disk_limit' } });
  t.equal(overDisk(over, 'd1', 'again'), over, 'it is known');
  const stopped = settle(over, { kind: 'stop', dockerId: 'd1' }, { kind: 'done' }, nowMs, bounds);
  const down = look(stopped, crash('r1'));
  t.match(down, { attempt: { phase: 'failed' }, why: { reason: 'disk_limit' }, failures: 0 }, 'its end is no crash');
  t.equal(look(withinDisk(down, 'd2'), crash('r1')).attempt.phase, 'failed', 'another copy is within its limit');
  const again = look(withinDisk(down, 'd1'), crash('r1'));
  t.match(again, { attempt: { phase: 'clear' }, why: null, failures: 0 });
  t.match(look(down, crash('r1'), wanted('running', { generation: 4 })), { attempt: { phase: 'clear' } }, 'a start');
  t.equal(withinDisk(restartState(), 'd1').disk, null, 'it was never over');
  t.end();
});

t.test('the disk of a copy that is not the one that should run stops nothing', (t) => {
  const marked = overDisk(restartState(), 'd2', 'it wrote too much');
  t.match(look(marked, seen(up)), { disk: null, attempt: { phase: 'clear' } });
  t.match(look(marked, absent), { disk: null, attempt: { phase: 'clear' } });
  t.end();
});

t.test('an agent without restart state starts at once what it finds stopped', (t) => {
  t.match(look(blank, crash('r1')), { generation: 3, attempt: { phase: 'clear' }, failures: 0 });
  t.end();
});
