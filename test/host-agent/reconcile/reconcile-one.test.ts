import t from 'tap';
import { createCarryOut } from '../../../host-agent/reconcile/reconcile-one.ts';
import { blank, type RestartState } from '../../../host-agent/reconcile/restart/restart-state.ts';
import type { Outcome, Step, Why } from '../../../host-agent/reconcile/step.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { quietLog } from '../../actors/support.ts';
import { down, id, nowMs, reference, restartState, seen, wanted } from '../support/decisions.ts';

const why: Why = { reason: 'start_failed', message: 'no', exitCode: null };
const pull: Step = { kind: 'pull', reference, policy: 'if_not_present' };
const start: Step = { kind: 'start', dockerId: 'd1', prepare: false, again: true };

function begin(outcome: Outcome | Error = { kind: 'done' }) {
  const states = new Map<ContainerId, RestartState>([[id, restartState()]]);
  const said: string[] = [];
  let settle = (_: Outcome | Error): void => undefined;
  const carryOut = createCarryOut({
    executor: {
      short: (step) => {
        said.push(`short ${step.kind}`);
        return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome);
      },
      long: (step) => {
        said.push(`long ${step.kind}`);
        return new Promise((resolve, reject) => {
          settle = (end) => (end instanceof Error ? reject(end) : resolve(end));
        });
      },
      cancelPull: () => void said.push('cancel pull'),
    },
    restartStore: {
      of: (each) => states.get(each) ?? blank,
      set: (each, state) => void states.set(each, state),
    },
    causes: { of: () => undefined },
    backoff: { minMs: 100, maxMs: 100 },
    steadyMs: () => nowMs,
    metrics: { step: (step, result) => void said.push(`${step}: ${result}`), restart: () => void said.push('restart') },
    log: quietLog,
    lookLater: (_, ms) => void said.push(`look after ${ms} ms`),
    onBegun: () => void said.push('begun'),
    onEnded: (_, { kind }) => void said.push(`ended ${kind}`),
  });
  const look = { id, wanted: wanted('running'), observed: seen(down()) };
  return {
    said,
    of: () => states.get(id) ?? blank,
    forget: () => states.delete(id),
    carryOut: (step: Step) => carryOut(look, step),
    end: async (end: Outcome | Error) => {
      settle(end);
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

t.test('nothing to do, and nothing to do yet', async (t) => {
  const { carryOut, said } = begin();
  await carryOut({ kind: 'none' });
  await carryOut({ kind: 'wait', untilMs: nowMs + 250 });
  await carryOut({ kind: 'wait', untilMs: nowMs - 1 });
  t.same(said, ['look after 250 ms', 'look after 0 ms']);
});

t.test('a short step ends within the look, and a restart is counted when it is done', async (t) => {
  const { carryOut, said, of } = begin();
  await carryOut(start);
  t.same(said, ['short start', 'start: done', 'restart', 'ended done']);
  t.equal(of().restarts, 1);
});

t.test('a start that fails waits for its back-off', async (t) => {
  const { carryOut, said, of } = begin({ kind: 'retry', why, fault: 'container' });
  await carryOut(start);
  t.same(said, ['short start', 'start: retry', 'ended retry'], 'no restart is counted');
  t.match(of(), { failures: 1, attempt: { phase: 'waiting', untilMs: nowMs + 100 }, why });
});

t.test('a container that cannot run as declared fails without a call', async (t) => {
  const { carryOut, said, of } = begin();
  await carryOut({ kind: 'fail', why });
  t.same(said, ['fail: failed', 'ended failed']);
  t.match(of(), { attempt: { phase: 'failed' }, why });
});

t.test('a long step continues after the look', async (t) => {
  const { carryOut, said, of, end } = begin();
  await carryOut(pull);
  t.same(said, ['begun', 'long pull']);
  t.match(of().operation, { kind: 'pull', reference });
  await end({ kind: 'done', imageId: 'sha256:two' });
  t.same(said.slice(2), ['pull: done', 'ended done']);
  t.match(of(), { operation: null, image: { reference, id: 'sha256:two' } });
});

t.test('the end of a pull that was cancelled, or of a forgotten container, changes nothing', async (t) => {
  const cancelled = begin();
  await cancelled.carryOut(pull);
  await cancelled.carryOut({ kind: 'cancel_pull' });
  t.equal(cancelled.of().operation, null);
  const saidBefore = [...cancelled.said];
  await cancelled.end({ kind: 'done', imageId: 'sha256:two' });
  t.same(cancelled.said, saidBefore);

  const forgotten = begin();
  await forgotten.carryOut(pull);
  forgotten.forget();
  await forgotten.end({ kind: 'done', imageId: 'sha256:two' });
  t.same(forgotten.said, ['begun', 'long pull']);
});

t.test('a long step that throws is an outage: its outcome is unknown', async (t) => {
  const { carryOut, said, of, end } = begin();
  await carryOut({ kind: 'stop', dockerId: 'd1' });
  await end(new Error('a bug'));
  t.same(said.slice(2), ['stop: outage', 'ended outage']);
  t.match(of(), { operation: null, failures: 0 });
});
