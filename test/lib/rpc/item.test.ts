/** The states of an ask, and what each leaves for its outcome. */
import t from 'tap';
import {
  isSettled,
  mayDecide,
  newItem,
  outcomeBy,
  send,
  sendAgain,
  settle,
  silencesOf,
  unanswered,
  type Item,
  type RetryReason,
} from '../../../lib/rpc/item.ts';
import { readOf, writeOf } from './support.ts';

const ignore = (): void => {};
const write = (): Item => newItem(writeOf('a'), 1000, ignore);

/** Sent in a message, and to be sent again for each reason. */
function after(item: Item, ...reasons: readonly RetryReason[]): Item {
  for (const [index, reason] of reasons.entries()) {
    send(item, `message ${index}`);
    sendAgain(item, reason);
  }
  return item;
}

t.test('a write that may have been executed is a timeout; everything else is unavailable', (t) => {
  const sent = write();
  send(sent, 'm');
  const cases = [
    ['never sent', write(), 'unavailable'],
    ['sent, without an answer', sent, 'timeout'],
    ['no responders', after(write(), 'no_responders'), 'unavailable'],
    ['refused by one that does not own it', after(write(), 'not_owner'), 'timeout'],
    ['silence', after(write(), 'lost'), 'timeout'],
    ['silence, then no responders', after(write(), 'lost', 'no_responders'), 'timeout'],
    ['a read', after(newItem(readOf('a'), 1000, ignore), 'lost'), 'unavailable'],
  ] as const;
  for (const [what, item, code] of cases) t.same(unanswered(item), { code, body: '' }, what);
  t.end();
});

t.test('a refusal that owners do not keep says nothing of an earlier message', (t) => {
  const codeOf = (item: Item, code: 'unavailable' | 'conflict' | 'ok'): string => {
    send(item, 'last');
    return outcomeBy(item, { code, body: '' }).code;
  };
  t.equal(codeOf(write(), 'unavailable'), 'unavailable', 'there is none');
  t.equal(codeOf(after(write(), 'no_responders'), 'unavailable'), 'unavailable');
  t.equal(codeOf(after(write(), 'lost'), 'unavailable'), 'timeout');
  t.equal(codeOf(after(newItem(readOf('a'), 1000, ignore), 'lost'), 'unavailable'), 'unavailable');
  for (const code of ['conflict', 'ok'] as const) t.equal(codeOf(after(write(), 'lost'), code), code);
  t.end();
});

t.test('silences are counted, other retries are not', (t) => {
  t.equal(silencesOf(write()), 0);
  t.equal(silencesOf(after(write(), 'lost', 'no_responders', 'lost', 'not_owner')), 2);
  t.end();
});

t.test('the first outcome counts', (t) => {
  const told: string[] = [];
  const item = newItem(writeOf('a'), 1000, ({ code }) => told.push(code));
  send(item, 'm');
  settle(item, { code: 'ok', body: '' });
  settle(item, { code: 'internal', body: '' });
  t.same(told, ['ok']);
  t.ok(isSettled(item));
  t.notOk(sendAgain(item, 'lost'), 'it is not sent again');
  t.notOk(mayDecide(item, 'm', true));
  t.end();
});

t.test('the last message decides that a write is refused; any message decides the rest', (t) => {
  const item = after(write(), 'lost');
  t.ok(mayDecide(item, 'message 0', false), 'nothing later carries it yet');
  send(item, 'message 1');
  t.notOk(mayDecide(item, 'message 0', false));
  t.ok(mayDecide(item, 'message 0', true), 'a success counts, whichever message it answers');
  t.ok(mayDecide(item, 'message 1', false));
  const read = after(newItem(readOf('a'), 1000, ignore), 'lost');
  send(read, 'message 1');
  t.ok(mayDecide(read, 'message 0', false));
  t.end();
});
