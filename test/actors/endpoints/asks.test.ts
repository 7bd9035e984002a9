/**
 * Answers of a batch on their way back: in as few messages as may be, none larger than the server
 * takes.
 */
import t from 'tap';
import { collectAnswers } from '../../../actors/endpoints/asks.ts';
import { limits } from '../../../schemas/limits.ts';
import { decodeAnswers } from '../../../schemas/wire/codec.ts';
import { protocolVersion } from '../../../schemas/wire/version.ts';

const maxPayload = 1024 * 1024;

function collect(send: (payload: string) => void = () => {}, owner?: string) {
  const payloads: string[] = [];
  const events: string[] = [];
  const answers = collectAnswers(
    {
      respond: (payload) => {
        send(String(payload));
        payloads.push(String(payload));
        return true;
      },
    },
    maxPayload,
    { error: (event) => void events.push(event) },
    owner,
  );
  return { answers, payloads, events };
}

t.test('answers of one tick are one message', async (t) => {
  const { answers, payloads } = collect();
  for (let index = 0; index < 10; index++) answers.add({ index, code: 'ok', body: '{}' });
  await Promise.resolve();
  answers.add({ index: 10, code: 'ok', body: '{}' });
  await Promise.resolve();
  t.same(
    payloads.map((payload) => decodeAnswers(payload).length),
    [10, 1],
  );
});

t.test('many large answers go in parts, each within a message', async (t) => {
  const { answers, payloads } = collect();
  const body = JSON.stringify('é'.repeat(100_000));
  for (let index = 0; index < 10; index++) answers.add({ index, code: 'ok', body });
  await Promise.resolve();
  t.ok(payloads.length > 1);
  for (const payload of payloads) t.ok(Buffer.byteLength(payload) <= limits.answerPartBytes);
  t.same(
    payloads.flatMap((payload) => decodeAnswers(payload)).map(({ index }) => index),
    Array.from({ length: 10 }, (_, index) => index),
  );
});

t.test('an answer that no message holds is an error of its own item alone', async (t) => {
  const { answers, payloads, events } = collect();
  answers.add({ index: 0, code: 'ok', body: JSON.stringify('x'.repeat(maxPayload)) });
  answers.add({ index: 1, code: 'ok', body: '{}' });
  await Promise.resolve();
  t.same(
    payloads.flatMap((payload) => decodeAnswers(payload)).map(({ code }) => code),
    ['internal', 'ok'],
  );
  t.same(events, ['answer_too_large']);
});

t.test('a connection that is closed ends nothing else', async (t) => {
  const { answers, events } = collect(() => {
    throw new Error('closed');
  });
  answers.add({ index: 0, code: 'ok', body: '{}' });
  await Promise.resolve();
  t.same(events, ['answer_send_failed']);
});

t.test('answers say their version, and whose they are', async (t) => {
  for (const [owner, expected] of [
    [undefined, `${protocolVersion}\n0\tok\t{}`],
    ['one', `${protocolVersion} one\n0\tok\t{}`],
  ] as const) {
    const { answers, payloads } = collect(undefined, owner);
    answers.add({ index: 0, code: 'ok', body: '{}' });
    await Promise.resolve();
    t.same(payloads, [expected]);
  }
});
