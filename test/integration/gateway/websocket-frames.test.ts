/**
 * Frames of WebSocket that RFC 6455 refuses, and the ends of it, on both engines. The table of
 * docs/deploy.md, "Rare forms", says the same.
 */
import { connect } from 'node:net';
import t, { type Test } from 'tap';
import { createEngine } from '../../../gateway/http/engine/choose.ts';
import type { EngineName } from '../../../gateway/http/engine/engine.ts';
import type { ClientSocket } from '../../../gateway/http/engine/sockets/client-socket.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { limits } from '../../../schemas/limits.ts';
import { engines, quietLog } from '../../gateway/support.ts';
import { until } from '../../support/until.ts';

const handshake = [
  'GET / HTTP/1.1',
  'Host: a',
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Protocol: p',
  '',
  '',
].join('\r\n');

const [final, text, close, ping] = [0x80, 0x1, 0x8, 0x9];
const mask = Buffer.of(1, 2, 3, 4);

function frame(first: number, content: string | Uint8Array, isMasked = true): Buffer {
  const bytes = Buffer.from(content);
  const length = bytes.length < 126 ? [bytes.length] : [126, bytes.length >> 8, bytes.length & 255];
  if (!isMasked) return Buffer.concat([Buffer.of(first, ...length), bytes]);
  const [short = 0, ...long] = length;
  const masked = bytes.map((byte, at) => byte ^ (mask[at % mask.length] ?? 0));
  return Buffer.concat([Buffer.of(first, final | short, ...long), mask, masked]);
}
const ofCode = (code: number, reason = ''): Buffer =>
  Buffer.concat([Buffer.of(code >> 8, code & 255), Buffer.from(reason)]);

const wrong = { uws: 'the end', node: 'close 1002' };
const notText = { uws: 'the end', node: 'close 1007' };
const rows: readonly (readonly [string, Buffer, Readonly<Record<EngineName, string>> | string])[] = [
  ['a text', frame(final | text, 'hi'), 'message'],
  ['a text in two frames', Buffer.concat([frame(text, 'h'), frame(final, 'i')]), 'message'],
  ['a ping of 125 bytes', frame(final | ping, 'x'.repeat(125)), 'pong'],
  ['a ping of 126 bytes', frame(final | ping, 'x'.repeat(126)), wrong],
  ['half of a ping', frame(ping, 'x'), wrong],
  // uWebSockets.js takes the first bytes of its content for the mask.
  ['no mask', Buffer.concat([frame(final | text, 'x'.repeat(100), false), frame(final | text, 'more')]), wrong],
  ['the first reserved bit', frame(final | 0x40 | text, 'hi'), wrong],
  ['the second reserved bit', frame(final | 0x20 | text, 'hi'), wrong],
  ['the third reserved bit', frame(final | 0x10 | text, 'hi'), wrong],
  ['opcode 3', frame(final | 0x3, 'x'), wrong],
  ['opcode 11', frame(final | 0xb, 'x'), wrong],
  ['a second text before the first has ended', Buffer.concat([frame(text, 'a'), frame(final | text, 'b')]), wrong],
  ['more of nothing', frame(final, 'x'), wrong],
  ['a text that is not UTF-8', frame(final | text, Buffer.of(0xff)), notText],
  ['close', frame(final | close, ''), 'close'],
  ['close 1000', frame(final | close, ofCode(1000)), 'close 1000'],
  ['close 3000', frame(final | close, ofCode(3000, 'bye')), { uws: 'close', node: 'close 3000' }],
  ['close 4999', frame(final | close, ofCode(4999)), 'close 4999'],
  ['close 999', frame(final | close, ofCode(999)), { uws: 'close', node: 'close 1002' }],
  ['close 1005', frame(final | close, ofCode(1005)), { uws: 'close', node: 'close 1002' }],
  ['half of a close code', frame(final | close, Buffer.of(3)), { uws: 'close', node: 'close 1002' }],
];

interface Stage {
  readonly port: number;
  readonly messages: string[];
  readonly closes: () => number;
}

/** An engine that says `message` to each message. */
async function stage(t: Test, name: EngineName): Promise<Stage> {
  const messages: string[] = [];
  let closes = 0;
  const engine = await createEngine(
    name,
    (exchange) => {
      const socket: ClientSocket | undefined = exchange.upgrade('p', [], {
        onMessage: (bytes) => {
          messages.push(Buffer.from(bytes).toString());
          socket?.send('message');
        },
        onPong: () => {},
        onDrain: () => {},
        onClose: () => closes++,
      });
    },
    { log: quietLog, clock: systemClock, connections: limits.connections, isTrusted: () => false },
  );
  const url = await engine.listen('127.0.0.1', 0);
  t.teardown(() => engine.close());
  return { port: Number(new URL(url).port), messages, closes: () => closes };
}

/** The first frame that comes back. */
function nameOf(reply: Buffer): string {
  const opcode = (reply[0] ?? 0) & 15;
  if (opcode === 10) return 'pong';
  if (opcode === text) return 'message';
  return opcode !== close ? `opcode ${opcode}` : reply.length < 4 ? 'close' : `close ${reply.readUInt16BE(2)}`;
}

async function cameOf({ port }: Stage, what: string, sent: Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let received = Buffer.alloc(0);
  let closed = false;
  socket.on('data', (data: Buffer) => (received = Buffer.concat([received, data])));
  socket.on('close', () => (closed = true));
  socket.on('error', () => (closed = true));
  socket.write(handshake);
  await until(`${what}: a WebSocket`, () => received.includes('\r\n\r\n'));
  const began = received.indexOf('\r\n\r\n') + 4;
  socket.write(sent);
  await until(`${what}: an answer or the end`, () => closed || received.length > began);
  const came = received.length > began ? nameOf(received.subarray(began)) : 'the end';
  // After a close, the connection ends, too.
  if (came.startsWith('close')) await until(`${what}: the end`, () => closed);
  socket.destroy();
  return came;
}

for (const name of engines) {
  t.test(`on ${name}`, async (t) => {
    const staged = await stage(t, name);
    const came = await Promise.all(rows.map(([what, sent]) => cameOf(staged, what, sent)));
    t.same(
      rows.map(([what], at) => `${what}: ${came[at]}`),
      rows.map(([what, , on]) => `${what}: ${typeof on === 'string' ? on : on[name]}`),
    );
    t.same(staged.messages, ['hi', 'hi'], 'nothing of a wrong frame is a message');
    await until('each listener hears the end', () => staged.closes() === rows.length);
  });
}
