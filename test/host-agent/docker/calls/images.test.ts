/** Detection of stalled pulls. The engine is a stream that the test writes. */
import { PassThrough } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { createEngine } from '../../../../host-agent/docker/engine.ts';
import type { Transport } from '../../../../host-agent/docker/transport.ts';

/** So long that a busy machine comes round in an eighth of it. */
const idleMs = 150;

function pulling() {
  const stream = new PassThrough();
  const body = Buffer.from(JSON.stringify({ Version: '28', ApiVersion: '1.48' }));
  const transport: Transport = {
    call: () => Promise.resolve({ status: 200, headers: {}, body }),
    open: () => Promise.resolve({ status: 200, headers: {}, stream }),
    close: () => undefined,
  };
  const heard: unknown[] = [];
  const ended = createEngine(transport, idleMs)
    .pull('r/x:1', new AbortController().signal, { onLine: (said) => heard.push(said.progress()) })
    .then(
      () => 'pulled',
      (error: { fault?: { kind: string } }) => error.fault?.kind,
    );
  const say = (status: string, current?: number): void => {
    stream.write(`${JSON.stringify({ id: 'layer', status, progressDetail: { current, total: 100 } })}\r\n`);
  };
  return { stream, say, ended, heard };
}

/** Repeats a message, for twice the allowed silence. */
async function repeatedly(say: (round: number) => void, ended: Promise<unknown>): Promise<boolean> {
  let isOver = false;
  void ended.then(() => (isOver = true));
  for (let round = 1; round <= 16 && !isOver; round++) {
    say(round);
    await delay(idleMs / 8);
  }
  return isOver;
}

t.test('bytes that arrive keep a pull going', async (t) => {
  const { stream, say, ended, heard } = pulling();
  t.equal(await repeatedly((round) => say('Downloading', round), ended), false);
  t.same(heard.at(-1), { layers: 1, bytes: 16, total: 100 });
  stream.end();
  t.equal(await ended, 'pulled');
});

t.test('an error ends a pull, in the words of old and new engines', async (t) => {
  const message = 'manifest unknown';
  for (const line of [{ error: message, errorDetail: { message } }, { errorDetail: { message } }, { error: message }]) {
    const { stream, ended } = pulling();
    stream.end(`${JSON.stringify(line)}\r\n`);
    t.equal(await ended, 'refused', JSON.stringify(line));
  }
});

t.test('lines that repeat themselves do not', async (t) => {
  const { say, ended, heard } = pulling();
  t.equal(await repeatedly(() => say('Downloading', 7), ended), true);
  t.equal(await ended, 'stalled');
  t.equal(heard.length, 1);
});

t.test('a pull that waits for others in the engine has not stalled', async (t) => {
  const { say, ended } = pulling();
  t.equal(await repeatedly(() => say('Waiting'), ended), false);
  say('Downloading', 1);
  t.equal(await ended, 'stalled', 'it has once it began');
});

t.test('but it does not wait for ever', async (t) => {
  const { say, ended } = pulling();
  say('Waiting');
  t.equal(await ended, 'stalled');
});
