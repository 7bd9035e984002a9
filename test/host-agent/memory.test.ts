import t from 'tap';
import { blank, endOperation, remember, settle, type Memory, type Why } from '../../host-agent/memory.ts';
import { absent, type Observed } from '../../host-agent/observed.ts';
import { limits } from '../../schemas/limits.ts';
import { down, image, memory, nowMs, reference, seen, up, wanted } from './support/decisions.ts';

const bounds = { minMs: 1000, maxMs: 60_000 };
const watchedSinceMs = nowMs - 3_600_000;
const running = wanted('running');
const look = (before: Memory, observed: Observed, want = running, atMs = nowMs): Memory =>
  remember(before, want, observed, atMs, bounds, watchedSinceMs);
const crash = (run: string, exit = {}): Observed => {
  const state = down(exit);
  return seen(state.phase === 'exited' ? { ...state, run } : state);
};
const why: Why = { reason: 'image_pull', message: 'connection refused', exitCode: null };

t.test('an exit is counted once, however often it is seen', (t) => {
  const once = look(memory(), crash('r1'));
  t.match(once, { failures: 1, attempt: { phase: 'waiting', untilMs: nowMs + 1000 }, why: { reason: 'exited' } });
  t.same(look(once, crash('r1')), once);
  t.end();
});

t.test('an exit while nobody watched is no failure, and is started again at once', (t) => {
  const unwatched = look(memory({ failures: 3 }), crash('r1', { endedAtMs: watchedSinceMs - 1 }));
  t.match(unwatched, { failures: 3, attempt: { phase: 'clear' }, why: null, countedRun: 'r1' });
  t.match(look(memory(), crash('r1', { endedAtMs: watchedSinceMs - 1 })), { failures: 0, restarts: 1 });
  const never = crash('r1', { endedAtMs: -62_135_596_800_000, error: 'no such file' });
  t.match(look(memory(), never), { failures: 1, why: { reason: 'start_failed' } }, 'a start that failed has no end');
  t.match(look(unwatched, crash('r2')), { failures: 4, attempt: { phase: 'waiting' } });
  t.end();
});

t.test('back-off doubles from 1 s to 60 s', (t) => {
  let state = memory();
  const pauses = [1, 2, 3, 4, 5, 6, 7, 8].map((each) => {
    state = look(state, crash(`r${each}`));
    return state.attempt.phase === 'waiting' ? state.attempt.untilMs - nowMs : -1;
  });
  t.same(pauses, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  t.end();
});

t.test('ten minutes up forgive what was before', (t) => {
  const upMs = limits.restartBackoffForgetMs;
  t.match(look(memory({ failures: 5 }), crash('r1', { upMs })), {
    failures: 1,
    attempt: { phase: 'waiting', untilMs: nowMs + 1000 },
  });
  t.match(look(memory({ failures: 5 }), seen({ ...up, startedAtMs: nowMs - upMs })), { failures: 0 });
  t.match(look(memory({ failures: 5 }), crash('r1', { upMs: upMs - 1 })), { failures: 6 });
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
    t.match(look(memory({ failures }), crash('r1', exit)).why, { reason, exitCode });
    t.end();
  });
}

t.test('a new generation clears back-off and failure, and the old exit is no crash', (t) => {
  const later = wanted('running', { generation: 4 });
  for (const attempt of [{ phase: 'failed' }, { phase: 'waiting', untilMs: nowMs + 9000 }] as const) {
    const before = memory({ attempt, why, failures: 7, restarts: 7 });
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

t.test('start pressed on what runs keeps its count of restarts', (t) => {
  t.match(look(memory({ restarts: 4, failures: 2 }), seen(up), wanted('running', { generation: 4 })), { restarts: 4 });
  t.end();
});

t.test('start pressed asks for a newer image where the policy is always', (t) => {
  const always = (generation: number) => wanted('running', { generation, pull_policy: 'always' });
  t.equal(look(memory(), crash('r1'), always(4)).pullDue, true);
  t.equal(look(memory(), seen(up), always(4)).pullDue, false, 'not while it runs');
  t.equal(look(memory(), crash('r1'), wanted('running', { generation: 4 })).pullDue, false);
  t.end();
});

t.test('back from isolation the stop was no crash', (t) => {
  const isolated = look(memory(), seen(up), wanted('stopped', { generation: 3 }));
  const back = look(look(isolated, crash('r1'), wanted('stopped', { generation: 3 })), crash('r1'));
  t.match(back, { attempt: { phase: 'clear' }, failures: 0 });
  t.end();
});

t.test('an agent that forgot everything starts at once what it finds down', (t) => {
  t.match(look(blank, crash('r1')), { generation: 3, attempt: { phase: 'clear' }, failures: 0 });
  t.end();
});

t.test('a clock set back does not turn seconds into years', (t) => {
  const before = memory({ attempt: { phase: 'waiting', untilMs: nowMs + 3_600_000 } });
  t.match(look(before, absent), { attempt: { untilMs: nowMs + bounds.maxMs } });
  t.end();
});

t.test('what a step leaves behind', (t) => {
  const pull = { kind: 'pull', reference, policy: 'always' } as const;
  const start = { kind: 'start', dockerId: 'd1', prepare: false, again: true } as const;
  const after = (step: Parameters<typeof settle>[1], outcome: Parameters<typeof settle>[2], before = memory()) =>
    settle(before, step, outcome, nowMs, bounds);

  t.match(after(pull, { kind: 'done', imageId: 'sha256:one' }, memory({ why, failures: 3, pullDue: true })), {
    image: { reference, id: 'sha256:one' },
    why: null,
    failures: 0,
    pullDue: false,
  });
  t.match(after(pull, { kind: 'retry', why }), { why, failures: 1, attempt: { phase: 'waiting' } });
  t.match(after(pull, { kind: 'failed', why }), { why, failures: 0, attempt: { phase: 'failed' } });
  t.match(after(start, { kind: 'done' }, memory({ restarts: 1, drained: 'd1' })), { restarts: 2, drained: null });
  t.match(after({ ...start, again: false }, { kind: 'done' }), { restarts: 0 });
  t.same(after(start, { kind: 'outage' }), memory(), 'an outage counts for nothing');
  t.equal(
    after({ kind: 'create', reference, imageId: 'x' }, { kind: 'retry', why, imageGone: true }, memory({ image }))
      .image,
    null,
  );
  t.end();
});

t.test('a pull that failed for an older generation does not hold up the new one', (t) => {
  const pull = { kind: 'pull', reference, policy: 'always' } as const;
  const begun = memory({ operation: { kind: 'pull', generation: 2, reference } });
  t.match(endOperation(begun, pull, { kind: 'failed', why }, nowMs, bounds), {
    attempt: { phase: 'clear' },
    operation: null,
  });
  t.match(endOperation(begun, pull, { kind: 'done', imageId: 'x' }, nowMs, bounds), {
    image: { id: 'x' },
    operation: null,
  });
  t.end();
});
