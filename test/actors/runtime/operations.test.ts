/** Retention of the outcomes of operations; refusals.test.ts has their use. */
import t from 'tap';
import {
  Operations,
  unchangedKept,
  sharedAnswers,
  sharedAnswersBytes,
  shortAnswerBytes,
  longAnswersBytes,
} from '../../../actors/runtime/operations.ts';
import type { OutcomeCode } from '../../../schemas/errors.ts';
import type { OperationId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';

const idOf = (name: string): OperationId => name as OperationId;
const operationOf = (name: string, code: OutcomeCode = 'ok', body = '', tenant = 'acme') => ({
  tenant,
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

t.test('committed outcomes are never dropped by count, and stand before those that changed nothing', (t) => {
  const { operations, has } = keeping();
  for (let count = 0; count <= unchangedKept; count++) operations.add(operationOf(`op-${count}`));
  t.ok(has('op-0'));
  operations.addUnchanged(operationOf('op-0', 'conflict'));
  t.equal(operations.get(idOf('op-0'))?.code, 'ok');
  t.end();
});

t.test('an answer is kept once, however many refusals say it, and however long it is', (t) => {
  const { operations } = keeping();
  const answerOf = (name: string, body: string) => {
    operations.add(operationOf(name, 'not_found', body));
    return operations.get(idOf(name))?.answer;
  };
  const short = answerOf('first', 'gone');
  t.equal(answerOf('second', 'gone'), short);
  t.same(answerOf('other', 'taken'), { kind: 'body', body: 'taken' });
  const long = (of: string) => of.repeat(shortAnswerBytes + 1);
  t.equal(answerOf('long', long('x')), answerOf('long again', long('x')));
  for (let n = 0; n < sharedAnswers; n++) answerOf(`of ${n}`, `${n}`);
  t.not(answerOf('third', 'gone'), short, 'bounded in number');
  t.equal(operations.get(idOf('first'))?.answer, short);
  const third = answerOf('fourth', 'gone');
  answerOf('longest', 'y'.repeat(sharedAnswersBytes));
  answerOf('after it', 'other');
  t.not(answerOf('fifth', 'gone'), third, 'bounded in bytes');
  t.end();
});

t.test('long answers of a tenant are bounded, until some have ended, and leave room for others', (t) => {
  const { operations, run } = keeping();
  const body = 'x'.repeat(longAnswersBytes / 64);
  let count = 0;
  const add = (tenant: string): void => {
    operations.add(operationOf(`${tenant} ${++count}`, 'conflict', body, tenant));
  };
  for (; operations.hasShare('acme') && count < 100;) add('acme');
  t.equal(count, 33, 'one alone has half of the room');
  t.ok(operations.hasShare('bolt'));
  for (; operations.hasShare('bolt') && count < 100;) add('bolt');
  t.equal(count, 49);
  t.ok(operations.hasShare('cork'), 'there is always some for another');
  for (let n = 0; n < 10; n++) add('');
  t.ok(operations.hasShare('cork'), 'what is of no tenant takes none of it');
  run(limits.operationTtlMs);
  t.ok(operations.hasShare('acme'), 'they have ended');
  for (let n = 0; n < 2 * unchangedKept; n++)
    operations.addUnchanged(operationOf(`unchanged ${n}`, 'conflict', 'y'.repeat(1000)));
  run(limits.operationTtlMs);
  for (count = 0; operations.hasShare('acme') && count < 100;) add('acme');
  t.equal(count, 33, 'what was forgotten early takes nothing');
  for (let n = 0; n < unchangedKept; n++)
    operations.addUnchanged(operationOf(`short ${n}`, 'conflict', 'y'.repeat(shortAnswerBytes), 'dash'));
  t.ok(operations.hasShare('dash'), 'short ones do not count');
  t.end();
});
