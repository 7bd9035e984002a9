import t from 'tap';
import { endOperation, settle } from '../../../../host-agent/reconcile/restart/restart-state.ts';
import type { Why } from '../../../../host-agent/reconcile/step.ts';
import { image, nowMs, reference, restartState } from '../../support/decisions.ts';

const bounds = { minMs: 1000, maxMs: 60_000 };
const why: Why = { reason: 'image_pull', message: 'connection refused', exitCode: null };

t.test('a step changes the restart state by its outcome', (t) => {
  const pull = { kind: 'pull', reference, policy: 'always' } as const;
  const start = { kind: 'start', dockerId: 'd1', prepare: false, again: true } as const;
  const after = (step: Parameters<typeof settle>[1], outcome: Parameters<typeof settle>[2], before = restartState()) =>
    settle(before, step, outcome, nowMs, bounds);

  t.match(after(pull, { kind: 'done', imageId: 'sha256:one' }, restartState({ why, failures: 3, pullDue: true })), {
    image: { reference, id: 'sha256:one' },
    why: null,
    failures: 0,
    pullDue: false,
  });
  t.match(after(pull, { kind: 'retry', why, fault: 'container' }), { why, failures: 1, attempt: { phase: 'waiting' } });
  const busy = after({ kind: 'limit', dockerId: 'd1' }, { kind: 'retry', why, fault: 'container' });
  t.same(busy, restartState({ attempt: { phase: 'waiting', untilMs: nowMs + bounds.maxMs } }), 'it runs on');
  t.match(after(pull, { kind: 'failed', why }), { why, failures: 0, attempt: { phase: 'failed' } });
  t.match(after(start, { kind: 'done' }, restartState({ restarts: 1, drained: 'd1' })), { restarts: 2, drained: null });
  for (const outcome of [{ kind: 'done' }, { kind: 'outage' }] as const) {
    const drained = restartState({ drained: 'd1', drainedBeside: 'd1' });
    t.match(after(start, outcome, drained), { drained: null, drainedBeside: null }, 'it writes again');
    const other = restartState({ drainedBeside: 'd2' });
    t.match(after(start, outcome, other), { drainedBeside: 'd2' }, 'the other copy does not');
  }
  t.match(after({ ...start, again: false }, { kind: 'done' }), { restarts: 0 });
  t.same(after(start, { kind: 'outage' }), restartState({ startedAtMs: nowMs }), 'an outage counts as no failure');
  t.equal(
    after(
      { kind: 'create', reference, imageId: 'x' },
      { kind: 'retry', why, fault: 'image_gone' },
      restartState({ image }),
    ).image,
    null,
  );
  t.end();
});

t.test('a pull that failed for an older generation does not delay the new one', (t) => {
  const pull = { kind: 'pull', reference, policy: 'always' } as const;
  const begun = restartState({ operation: { kind: 'pull', generation: 2, reference } });
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
