/** How long the outcome of an operation is kept; refusals.test.ts has what that is for. */
import t from 'tap';
import { Operations } from '../../../actors/runtime/operations.ts';
import type { OutcomeCode } from '../../../schemas/errors.ts';
import type { OperationId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';

const idOf = (name: string): OperationId => name as OperationId;
const operationOf = (name: string, code: OutcomeCode = 'ok', body = '') => ({
  record: { op: idOf(name), atMs: 0, code, answer: { kind: 'body' as const, body } },
  commit: 1,
});

/** Outcomes by a clock that goes on, with a sweep a second. */
function keeping(operations = new Operations()) {
  let nowMs = 500_000;
  operations.expire(nowMs);
  return {
    operations,
    has: (name: string) => operations.get(idOf(name)) !== undefined,
    run: (ms: number) => {
      for (let left = ms; left > 0; left -= limits.sweepIntervalMs) {
        nowMs += Math.min(left, limits.sweepIntervalMs);
        operations.expire(nowMs);
      }
    },
    /** The process is stopped for so long. */
    stand: (ms: number) => operations.expire((nowMs += ms)),
  };
}

t.test('an outcome is kept for its time, and those after it for theirs', (t) => {
  const { operations, has, run } = keeping();
  operations.add(operationOf('first'));
  run(60_000);
  operations.add(operationOf('second'));
  operations.addUnchanged(operationOf('refused', 'conflict'));
  run(limits.operationTtlMs - 60_001);
  t.ok(has('first'), 'to the last millisecond');
  run(1);
  t.same([has('first'), has('second'), has('refused')], [false, true, true]);
  run(59_999);
  t.same([has('second'), has('refused')], [true, true]);
  run(1);
  t.same([has('second'), has('refused')], [false, false]);
  t.end();
});

t.test('time in which the process was stopped counts for three sweeps: a retry may be unread', (t) => {
  const { operations, has, run, stand } = keeping();
  operations.add(operationOf('a'));
  stand(10 * limits.operationTtlMs);
  t.ok(has('a'));
  run(limits.operationTtlMs - 3 * limits.sweepIntervalMs - 1);
  t.ok(has('a'));
  run(1);
  t.notOk(has('a'));
  t.end();
});

t.test('a load that took long ends nothing: time begins with the first sweep', (t) => {
  const operations = new Operations();
  operations.add(operationOf('loaded'));
  const { has, run } = keeping(operations);
  run(limits.operationTtlMs - 1);
  t.ok(has('loaded'));
  run(1);
  t.notOk(has('loaded'));
  t.end();
});

t.test('what was committed is never dropped by count, and stands before what changed nothing', (t) => {
  const { operations, has } = keeping();
  for (let count = 0; count <= limits.unchangedKept; count++) operations.add(operationOf(`op-${count}`));
  t.ok(has('op-0'));
  operations.addUnchanged(operationOf('op-0', 'conflict'));
  t.equal(operations.get(idOf('op-0'))?.code, 'ok');
  t.end();
});

t.test('a short answer is kept once, however many refusals say it', (t) => {
  const { operations } = keeping();
  const answerOf = (name: string, body: string) => {
    operations.add(operationOf(name, 'not_found', body));
    return operations.get(idOf(name))?.answer;
  };
  const short = answerOf('first', 'gone');
  t.equal(answerOf('second', 'gone'), short);
  t.same(answerOf('other', 'taken'), { kind: 'body', body: 'taken' });
  const long = 'x'.repeat(limits.sharedAnswerBytes + 1);
  t.not(answerOf('long', long), answerOf('long again', long), 'a long one goes with its outcome');
  for (let n = 0; n < limits.sharedAnswers; n++) answerOf(`of ${n}`, `${n}`);
  t.not(answerOf('third', 'gone'), short, 'bounded');
  t.equal(operations.get(idOf('first'))?.answer, short);
  t.end();
});
