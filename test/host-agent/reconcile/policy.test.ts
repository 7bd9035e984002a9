/** Effects of a policy after the end of a run, a stop, and failed health checks (ADR 36). */
import t from 'tap';
import { describe } from '../../../host-agent/reconcile/describe.ts';
import { absent, type EngineState, type Found } from '../../../host-agent/docker/observed.ts';
import { plan } from '../../../host-agent/reconcile/plan.ts';
import { afterLook } from '../../../host-agent/reconcile/restart/look.ts';
import {
  overDisk,
  settle,
  withinDisk,
  withoutGone,
  withStep,
  type RestartState,
} from '../../../host-agent/reconcile/restart/restart-state.ts';
import { fromStored, toStored } from '../../../host-agent/reconcile/restart/restart-store.ts';
import type { Declared, Wanted } from '../../../host-agent/desired/wanted.ts';
import { defaultPolicy, healthDefaults, type Policy } from '../../../schemas/api/policy.ts';
import type { DesiredContainer } from '../../../schemas/wire/host.ts';
import { down, found, nowMs, restartState, seen, up, wanted } from '../support/decisions.ts';

const backoff = { minMs: 1000, maxMs: 60_000 };
const clean = down({ exitCode: 0 });
const policyOf = (changes: Partial<Policy>): Policy => ({ ...defaultPolicy, ...changes });
const running = (restart: Policy['restart'], changes: Partial<DesiredContainer> = {}) =>
  wanted('running', { policy: policyOf({ restart }), ...changes });
const stopped = (restart: Policy['restart'], changes: Partial<DesiredContainer> = {}) =>
  wanted('stopped', { policy: policyOf({ restart }), ...changes });

const start = { kind: 'start', dockerId: 'd1', prepare: true, again: false } as const;
const watch = { nowMs, watchedSinceMs: nowMs - 10_000, backoff };
const look = (before: RestartState, as: Wanted, state: EngineState, changes: Partial<Found> = {}): RestartState =>
  afterLook(before, { wanted: as, observed: seen(state, changes), nowMs, watchedSinceMs: nowMs - 10_000, backoff });
const stepOf = (restart: RestartState, as: Wanted, state: EngineState) => plan(as, seen(state), restart, nowMs);

t.test('effects of the end of a run', (t) => {
  const oom = down({ exitCode: 137, oomKilled: true });
  for (const [policy, state, phase, status, reason] of [
    ['always', clean, 'waiting', 'backoff', 'exited'],
    ['always', down(), 'waiting', 'backoff', 'exited'],
    ['on_failure', clean, 'ended', 'stopped', 'completed'],
    ['on_failure', down(), 'waiting', 'backoff', 'exited'],
    ['on_failure', oom, 'waiting', 'backoff', 'oom_killed'],
    ['never', clean, 'ended', 'stopped', 'completed'],
    ['never', down(), 'ended', 'failed', 'exited'],
    ['never', oom, 'ended', 'failed', 'oom_killed'],
    // A start that failed was no run.
    ['never', down({ error: 'no such file' }), 'waiting', 'backoff', 'start_failed'],
  ] as const) {
    const restart = look(restartState(), running(policy), state);
    const name = `${policy}, ${JSON.stringify(state)}`;
    t.equal(restart.attempt.phase, phase, name);
    const description = describe(running(policy), seen(state), restart);
    t.match(description, { gone: false, observation: { status, reason } }, name);
    t.equal(description?.ended, phase === 'ended' ? true : undefined, name);
    if (phase === 'ended') t.same(stepOf(restart, running(policy), state), { kind: 'none' }, name);
  }
  const code = look(restartState(), running('never'), down({ exitCode: 42 }));
  t.match(describe(running('never'), seen(down()), code), { observation: { exit_code: 42 } });
  t.end();
});

t.test('a run that ended while nobody watched counts the same', (t) => {
  const unwatched = restartState({ seenUpAtMs: null });
  t.equal(look(unwatched, running('always'), clean).restarts, 1);
  t.equal(look(unwatched, running('on_failure'), clean).attempt.phase, 'ended');
  t.equal(look(unwatched, running('on_failure'), down()).restarts, 1, 'most likely it went down with its engine');
  t.equal(look(unwatched, running('never'), down()).attempt.phase, 'ended');
  t.end();
});

t.test('it stays at its end until its tenant starts it', (t) => {
  const ended = look(restartState(), running('on_failure'), clean);
  const atRest = look(ended, stopped('on_failure', { generation: 4 }), clean);
  t.match(describe(stopped('on_failure', { generation: 4 }), seen(clean), atRest), {
    ended: true,
    observation: { status: 'stopped', reason: 'completed', exit_code: 0 },
  });
  t.equal(look(ended, running('on_failure', { generation: 4 }), clean).attempt.phase, 'ended', 'another change');
  t.equal(look(ended, running('always', { generation: 4 }), clean).attempt.phase, 'clear', 'now it should run always');
  const started = look(atRest, running('on_failure', { generation: 5 }), clean);
  t.equal(started.attempt.phase, 'clear');
  t.match(stepOf(started, running('on_failure', { generation: 5 }), clean), { kind: 'start' });
  t.end();
});

t.test('a start that it learns of late runs it again, and nothing else does', (t) => {
  const time = { wallMs: () => nowMs, steadyMs: () => nowMs, maxWaitMs: 60_000 };
  for (const [policy, state] of [
    ['on_failure', clean],
    ['never', clean],
    ['never', down()],
  ] as const) {
    const since = (generation: number, startedWith: number, want: 'running' | 'stopped' = 'running'): Wanted =>
      (want === 'running' ? running : stopped)(policy, { generation, start: startedWith });
    const ran = look(look(restartState({ want: 'ignored' }), since(3, 3), up), since(3, 3), state);
    for (const ended of [ran, fromStored(toStored(ran, time), time)]) {
      t.equal(ended.attempt.phase, 'ended');
      t.equal(look(ended, since(5, 3), state).attempt.phase, 'ended', 'another change is no start');
      const again = look(ended, since(5, 5), state);
      t.match(again, { attempt: { phase: 'clear' }, hasBegun: false }, 'its stop came and went unheard');
      t.match(stepOf(again, since(5, 5), state), { kind: 'start', dockerId: 'd1' });
      const isolated = look(ended, { ...(since(5, 5) as Declared), want: 'stopped' }, state);
      t.equal(isolated.attempt.phase, 'ended');
      t.equal(look(isolated, since(5, 5), state).attempt.phase, 'clear', 'it was heard while the host was cut off');
      const restored = look(look(ended, since(4, 3, 'stopped'), state), since(2, 1), state);
      t.equal(restored.attempt.phase, 'ended', 'a restore is no start');
      t.equal(look(restored, since(4, 4), state).attempt.phase, 'clear', 'a start after a restore');
    }
    const { start: _, ...older } = ran;
    const upgraded = { ...older, start: null };
    t.equal(look(upgraded, since(5, 5), state).attempt.phase, 'clear', 'the agent before kept no start');
    t.equal(look(upgraded, since(5, 3), state).attempt.phase, 'ended');
    t.equal(look(ran, running(policy, { generation: 5 }), state).attempt.phase, 'ended', 'an owner that says none');
    const down3 = look(ran, stopped(policy, { generation: 4 }), state);
    t.equal(look(down3, running(policy, { generation: 5 }), state).attempt.phase, 'clear', 'it tells by the stop then');
  }
  const cutOff = { ...(running('never', { start: 3 }) as Declared), want: 'stopped' } as const;
  const once = look(look(restartState({ want: 'ignored' }), running('never', { start: 3 }), up), cutOff, up);
  const broken = look(withStep(once, { kind: 'stop', dockerId: 'd1' }, [found(up)]), cutOff, down());
  t.match(
    look(broken, running('never', { generation: 4, start: 3 }), down()),
    { attempt: { phase: 'ended' }, hasBegun: true },
    'a change while the host was cut off does not run a job twice',
  );
  const lost = look(restartState({ want: 'ignored' }), running('never', { start: 3 }), down());
  t.equal(lost.attempt.phase, 'ended', 'an agent that has lost its memory starts nothing twice');
  t.end();
});

t.test('a host that was cut off starts nothing for a second time that may run once', (t) => {
  const cutOff = { ...running('never'), want: 'stopped' } as Wanted;
  const isolated = look(restartState(), cutOff, up);
  t.match(stepOf(isolated, cutOff, up), { kind: 'stop' });
  const back = look(look(isolated, cutOff, down({ exitCode: 143 })), running('never'), down({ exitCode: 143 }));
  t.match(back, { attempt: { phase: 'ended' }, why: { reason: 'exited', exitCode: 143 } });
  const again = { ...running('on_failure'), want: 'stopped' } as Wanted;
  t.equal(look(look(restartState(), again, clean), running('on_failure'), clean).attempt.phase, 'clear');
  t.end();
});

t.test('an end survives a restart of the agent', (t) => {
  const time = { wallMs: () => nowMs, steadyMs: () => nowMs, maxWaitMs: 60_000 };
  for (const [policy, state] of [
    ['on_failure', clean],
    ['never', down()],
  ] as const) {
    const ended = look(restartState(), running(policy), state);
    const stored = toStored(ended, time);
    t.match(fromStored(stored, time), { attempt: ended.attempt, why: ended.why });
  }
  const ending = { run: 'd1:1', why: { reason: 'unhealthy', message: 'x', exitCode: null } } as const;
  t.same(fromStored(toStored(restartState({ ending }), time), time).ending, ending);
  t.end();
});

t.test('a container that may run once does not run again after it has written too much', (t) => {
  const once = wanted('running', { policy: policyOf({ restart: 'never' }) });
  const full = look(overDisk(restartState(), 'd1', 'too much'), once, up);
  t.match(full, { attempt: { phase: 'ended' }, why: { reason: 'disk_limit' } });
  t.equal(withinDisk(full, 'd1'), full);
  t.end();
});

t.test('health', (t) => {
  const check = { ...healthDefaults, tcp: { port: 80 } };
  const checked = (restart_unhealthy: boolean, restart: Policy['restart'] = 'always') =>
    wanted('running', { policy: policyOf({ restart, health: { ...check, restart_unhealthy } }) });
  const ill = { ...up, health: 'unhealthy', healthFault: 'port 80: nothing listens there' } as const;
  const message = 'its health check fails: port 80: nothing listens there';

  t.test('unhealthy: shown, and left alone', (t) => {
    const restart = look(restartState(), checked(false), ill);
    t.same(stepOf(restart, checked(false), ill), { kind: 'none' });
    t.match(describe(checked(false), seen(ill), restart), {
      observation: { status: 'running', reason: 'unhealthy', message },
    });
    t.end();
  });
  t.test('restart_unhealthy: stopped, and started again after a back-off', (t) => {
    const restart = look(restartState(), checked(true), ill);
    t.match(stepOf(restart, checked(true), ill), { kind: 'stop', dockerId: 'd1' });
    for (const policy of ['always', 'on_failure'] as const) {
      const after = look(restart, checked(true, policy), clean);
      t.match(after, { attempt: { phase: 'waiting' }, why: { reason: 'unhealthy', message }, failures: 1 }, policy);
    }
    t.equal(look(restart, checked(true), { ...up, run: 'd1:2' }).ending?.run, 'd1:1');
    t.same(stepOf(look(restart, checked(true), { ...up, run: 'd1:2' }), checked(true), { ...up, run: 'd1:2' }), {
      kind: 'none',
    });
    t.end();
  });
  t.end();
});

t.test('the network of a container is lost: that is no clean end', (t) => {
  const sandbox = { dockerId: 's1', state: 'down' } as const;
  const restart = look(restartState(), running('on_failure'), up, { sandbox });
  t.match(look(restart, running('on_failure'), clean, { sandbox }), {
    attempt: { phase: 'waiting' },
    why: { message: /network/ },
  });
  t.match(look(restart, running('never'), clean, { sandbox }), {
    attempt: { phase: 'ended' },
    why: { exitCode: null },
  });
  t.end();
});

t.test('a stop by the agent is no end of the program, also after a restart of the agent', (t) => {
  const time = { wallMs: () => nowMs, steadyMs: () => nowMs, maxWaitMs: 60_000 };
  const stop = { kind: 'stop', dockerId: 'd1' } as const;
  for (const [policy, phase] of [
    ['always', 'clear'],
    ['on_failure', 'clear'],
    ['never', 'ended'],
  ] as const) {
    const noted = withStep(look(restartState(), running(policy), up), stop, [found(up)]);
    for (const restart of [noted, fromStored(toStored(noted, time), time)]) {
      const after = look(restart, running(policy), clean);
      t.match(after, { attempt: { phase }, failures: 0, restarts: 0 }, policy);
      t.equal(after.why?.reason, policy === 'never' ? 'exited' : undefined, policy);
      if (policy !== 'never') continue;
      t.match(after.why?.message, /ended with exit code 0 while its host stopped it, so nobody knows/);
      t.match(look(restart, running(policy), down({ exitCode: 143 })).why?.message, /^stopped before its end/);
      for (const exitCode of [0, 143]) {
        const ended = look(restart, running(policy), down({ exitCode }));
        const { observation } = describe(running(policy), seen(down({ exitCode })), ended) ?? {};
        t.match(observation, { status: 'failed', exit_code: null }, 'the code is none of its own');
      }
    }
    t.match(withoutGone(noted, []), { stopped: [] });
    t.match(look(noted, running(policy), { ...up, run: 'd1:2' }), { attempt: { phase: 'clear' } });
  }
  t.end();
});

t.test('a container that runs once and is removed by hand does not run again', (t) => {
  const once = look(restartState(), running('never'), up);
  const gone = afterLook(once, { ...watch, wanted: running('never'), observed: absent });
  t.match(gone, { attempt: { phase: 'ended' }, why: { reason: 'exited', exitCode: null, message: /nobody knows/ } });
  t.match(describe(running('never'), absent, gone), { ended: true, observation: { status: 'failed' } });
  const again = afterLook(
    { ...gone, want: 'stopped' },
    { ...watch, wanted: running('never', { generation: 4 }), observed: absent },
  );
  t.match(again, { attempt: { phase: 'clear' }, hasBegun: false }, 'a start runs it again');
  for (const restart of [restartState(), withStep(restartState(), start, [])])
    t.equal(settle(restart, start, { kind: 'changed' }, nowMs, backoff).hasBegun, false, 'a start that was none');
  const unanswered = settle(withStep(restartState(), start, []), start, { kind: 'outage' }, nowMs, backoff);
  t.equal(unanswered.hasBegun, true);
  for (const generation of [3, 4]) {
    const notBegun = look(unanswered, running('never', { generation, start: 3 }), { phase: 'created' });
    const removed = { ...watch, wanted: running('never', { generation, start: 3 }), observed: absent };
    t.equal(afterLook(notBegun, removed).attempt.phase, 'clear', 'its agent removed a copy that had not begun');
    const unknown = afterLook(afterLook(unanswered, removed), removed);
    t.equal(unknown.attempt.phase, 'ended', 'nobody knows');
  }
  const often = look(restartState(), running('on_failure'), up);
  t.equal(afterLook(often, { ...watch, wanted: running('on_failure'), observed: absent }).attempt.phase, 'clear');
  t.end();
});

t.test('how it is stopped', (t) => {
  const policy = policyOf({ stop_grace_seconds: 30, stop_signal: 'SIGQUIT' });
  const manner = { graceMs: 30_000, signal: 'SIGQUIT' };
  for (const as of [wanted('stopped', { policy }), wanted('removed', { policy })]) {
    t.same(plan(as, seen(up), restartState(), nowMs), { kind: 'stop', dockerId: 'd1', manner });
  }
  t.same(plan(wanted('stopped'), seen(up), restartState(), nowMs), { kind: 'stop', dockerId: 'd1' });
  const cutOff = { ...wanted('running', { policy }), want: 'stopped' } as Wanted;
  t.same(plan(cutOff, seen(up), restartState(), nowMs), { kind: 'stop', dockerId: 'd1' }, "in the host's own time");
  t.same(plan({ want: 'nothing' }, seen(up), restartState(), nowMs), { kind: 'stop', dockerId: 'd1' });
  t.end();
});
