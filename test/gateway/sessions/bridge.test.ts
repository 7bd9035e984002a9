/**
 * The bridge between a client's WebSocket and a tunnel: its windows and its ends, in virtual time.
 */
import t from 'tap';
import { Bridge } from '../../../gateway/sessions/bridge.ts';
import { forwardFraming } from '../../../gateway/sessions/framing.ts';
import { limits } from '../../../schemas/limits.ts';
import { pair, RecordingPort } from '../../lib/tunnel/support.ts';

const window = limits.tunnelWindowBytes;

function stage(t: { teardown(done: () => void): void }) {
  let nowMs = 0;
  let isGood = true;
  const { near, far } = pair();
  const host = new RecordingPort();
  far.attach(host);
  const sent: (string | Uint8Array)[] = [];
  const closes: string[] = [];
  const wire = { hasRoom: true, pings: 0 };
  const bridge = new Bridge({
    tunnel: near,
    framing: forwardFraming,
    clock: { monotonicMs: () => nowMs },
    isStillGood: () => isGood,
  });
  const over = bridge.pass({
    send: (message) => {
      sent.push(message);
      return wire.hasRoom;
    },
    ping: () => void wire.pings++,
    close: (code, reason) => void closes.push(`${code} ${reason}`),
  });
  t.teardown(() => near.end({ reason: 'done' }));
  return {
    bridge,
    host,
    far,
    sent,
    closes,
    wire,
    over,
    near,
    /** Resolves after the bridge has looked at the time. */
    look: () => new Promise((resolve) => setTimeout(resolve, 2 * limits.sessionLookMs)),
    pass: (ms: number) => void (nowMs += ms),
    tick: () => new Promise((resolve) => setImmediate(resolve)),
    revoke: () => (isGood = false),
  };
}

t.test('bytes of the client wait for room at the host, and the client hears of it', async (t) => {
  const { bridge, host, far, sent, tick } = stage(t);
  for (let at = 0; at < 2; at++) bridge.onMessage(new Uint8Array(window / 2), true);
  bridge.onMessage(Buffer.from('{"type":"end"}'), false);
  await tick();
  t.equal(host.bytes, window);
  t.equal(host.seen.at(-1), 'control {"type":"end"}', 'behind the bytes');
  t.same(sent, [JSON.stringify({ type: 'window', bytes: window })]);
  bridge.onMessage(new Uint8Array(window), true);
  await tick();
  t.equal(host.bytes, window, 'the host has no room');
  far.took(window / 2);
  t.equal(host.bytes, window * 1.5);
  far.took(window);
  t.equal(host.bytes, window * 2);
});

t.test('more than the window is too much', async (t) => {
  const { bridge, closes, over } = stage(t);
  bridge.onMessage(new Uint8Array(window), true);
  bridge.onMessage(new Uint8Array(1), true);
  t.match(closes, [/^1009 over_window: /]);
  t.match(await over, { end: { reason: 'over_window' }, bytesIn: window, bytesOut: 0 });
});

t.test('many small messages go on as few', async (t) => {
  const { bridge, host, tick } = stage(t);
  for (let count = 0; count < 10_000; count++) bridge.onMessage(new Uint8Array(1), true);
  await tick();
  t.equal(host.bytes, 10_000);
  t.ok(host.seen.length < 10, `${host.seen.length} messages`);
});

t.test('a client that reads slowly holds the host up', (t) => {
  const { bridge, far, wire, sent } = stage(t);
  wire.hasRoom = false;
  far.data(1, new Uint8Array(window));
  t.equal(far.room(), 0);
  t.equal(sent.length, window / limits.tunnelMessageBytes);
  bridge.onDrain();
  t.equal(far.room(), window);
  t.end();
});

t.test('control messages of the host that this release does not know are left out', (t) => {
  const { far, sent } = stage(t);
  for (const control of [{ type: 'moon' }, { type: 'exit', code: 3 }, { type: 'end' }]) far.control(control);
  t.same(sent, ['{"type":"exit","code":3}', '{"type":"end"}']);
  t.end();
});

t.test('the end of a token, of patience and of a client', async (t) => {
  const revoked = stage(t);
  revoked.revoke();
  await revoked.look();
  t.match(revoked.closes, [/^4401 unauthenticated: /]);
  t.match(revoked.far.ended, { reason: 'unauthenticated' });

  const idle = stage(t);
  idle.pass(limits.sessionIdleMs - 1);
  idle.bridge.onPong();
  await idle.look();
  t.same(idle.closes, []);
  t.equal(idle.wire.pings, 1);
  idle.pass(1);
  await idle.look();
  t.match(idle.closes, [/^4408 idle: nothing passed for 30 minutes/]);

  const silent = stage(t);
  silent.pass(limits.webSocketSilentMs);
  await silent.look();
  t.match(silent.closes, [/^1000 left: the client does not answer pings/]);

  const left = stage(t);
  left.bridge.onClose();
  t.match(await left.over, { end: { reason: 'left' } });
  t.match(left.far.ended, { reason: 'left' });
});
