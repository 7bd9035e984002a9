/** Two ends of a tunnel, and what is between them, in virtual time. */
import fc from 'fast-check';
import t from 'tap';
import {
  Tunnel,
  tunnelWindowControls,
  tunnelBeatMs,
  tunnelSilentMs,
  type TunnelPort,
} from '../../../lib/tunnel/tunnel.ts';
import { limits } from '../../../schemas/limits.ts';
import type { SessionEnd } from '../../../schemas/wire/session.ts';
import { decodeSent, pair } from './support.ts';

const window = limits.tunnelWindowBytes;
const bytes = (count: number, value = 7): Uint8Array => new Uint8Array(count).fill(value);

t.test('nothing may be sent before the other end has attached its port', (t) => {
  const { near, far, opened, farPort } = pair();
  t.equal(near.room(), 0);
  t.notOk(near.control({ type: 'x' }));
  t.throws(() => near.data(0, bytes(1)));
  far.attach(farPort);
  t.same(opened, ['near'], 'that opens the session');
  t.equal(near.room(), window);
  near.data(0, bytes(10));
  t.equal(near.room(), window - 10);
  t.same(farPort.seen, ['data 0 10']);
  t.end();
});

t.test('bytes that were taken may be sent again, once there are many of them', (t) => {
  const { near, far, farPort } = pair();
  far.attach(farPort);
  near.data(1, bytes(window));
  t.equal(near.room(), 0);
  t.equal(farPort.seen.length, window / limits.tunnelMessageBytes, 'in messages of the size that fits');
  far.took(limits.tunnelCreditBytes - 1);
  t.equal(near.room(), 0);
  far.took(1);
  t.equal(near.room(), limits.tunnelCreditBytes);
  t.end();
});

t.test('control messages have a window of their own', (t) => {
  const { near, far, farPort } = pair();
  far.attach(farPort);
  near.data(0, bytes(window));
  for (let sent = 0; sent < tunnelWindowControls; sent++) t.ok(near.control({ sent }));
  t.notOk(near.control({ sent: 'too many' }));
  for (let taken = 0; taken < tunnelWindowControls / 2; taken++) far.tookControl();
  t.ok(near.control({ sent: 'again' }));
  t.equal(farPort.seen.at(-1), 'control {"sent":"again"}');
  t.end();
});

t.test('an end that sends more than the window ends the session', (t) => {
  const rows: Record<string, (near: Tunnel) => void> = {
    bytes: (near) => near.data(0, bytes(window)),
    'control messages': (near) => {
      for (let sent = 0; sent < tunnelWindowControls; sent++) near.control({});
    },
  };
  for (const [what, send] of Object.entries(rows)) {
    const { near, far, farPort, forge } = pair();
    far.attach(farPort);
    send(near);
    t.equal(far.ended, undefined, what);
    forge(what === 'bytes' ? { kind: 'data', channel: 0, bytes: bytes(1) } : { kind: 'control', text: '{}' });
    t.match(far.ended, { reason: 'over_window' }, what);
    t.match(near.ended, { reason: 'over_window' }, `${what}: both ends know`);
  }
  t.end();
});

t.test('a control message that is too large ends the session', (t) => {
  const { far, farPort, forge } = pair();
  far.attach(farPort);
  forge({ kind: 'control', text: 'x'.repeat(limits.tunnelControlBytes + 1) });
  t.match(far.ended, { reason: 'over_window' });
  t.end();
});

t.test('a message that is lost, repeated or not one ends the session', (t) => {
  const rows: Record<string, (sent: Uint8Array[]) => Uint8Array[]> = {
    lost: (sent) => sent.slice(1),
    repeated: ([first, ...others]) => [first!, first!, ...others],
    'out of order': (sent) => sent.toReversed(),
  };
  for (const [what, harm] of Object.entries(rows)) {
    const { near, far, farPort, hold } = pair();
    far.attach(farPort);
    const sent = hold('near');
    for (const count of [1, 2, 3]) near.data(0, bytes(count));
    for (const message of harm(sent())) far.receive(message);
    t.match(far.ended, { reason: 'lost' }, what);
    t.match(farPort.ends, [{ reason: 'lost' }], `${what}: told once`);
  }
  for (const junk of [bytes(0), bytes(4), bytes(5, 255), Uint8Array.of(2, 0, 0, 0, 0, 1)]) {
    const { far, farPort } = pair();
    far.attach(farPort);
    far.receive(junk);
    t.match(far.ended, { reason: 'invalid' });
  }
  t.end();
});

t.test('an end that is quiet says that it is there, and one that is silent is gone', (t) => {
  const { near, far, farPort, pass, hold } = pair();
  far.attach(farPort);
  near.attach(farPort);
  for (let look = 0; look < 100; look++) pass(tunnelBeatMs);
  t.same([near.ended, far.ended], [undefined, undefined]);
  const sent = hold('near');
  for (let ms = 0; ms < tunnelSilentMs; ms += tunnelBeatMs) pass(tunnelBeatMs);
  t.match(far.ended, { reason: 'lost' });
  t.match(decodeSent(sent()[0]!), { message: { kind: 'beat' } }, 'near did its part');
  t.end();
});

t.test('the end comes after what was sent before it, once, and nothing follows it', (t) => {
  const { near, far, farPort, nearPort } = pair();
  far.attach(farPort);
  near.attach(nearPort);
  near.data(0, bytes(3));
  near.end({ reason: 'done', message: 'bye' });
  near.end({ reason: 'failed' });
  t.same(farPort.seen, ['room', 'data 0 3']);
  t.same(farPort.ends, [{ reason: 'done', message: 'bye' }]);
  t.same(nearPort.ends, [{ reason: 'done', message: 'bye' }]);
  t.notOk(near.control({}));
  t.equal(near.room(), 0);
  far.took(window);
  far.end({ reason: 'failed' });
  t.same(farPort.ends.length, 1);
  t.end();
});

t.test('a port that is attached after the end hears it', (t) => {
  const { near, far, nearPort } = pair();
  far.end({ reason: 'too_many', message: 'no' });
  near.attach(nearPort);
  t.same(nearPort.ends, [{ reason: 'too_many', message: 'no' }]);
  t.same(nearPort.seen, []);
  t.end();
});

t.test('an end for a reason of another release is a failure', (t) => {
  const { far, farPort, forge } = pair();
  far.attach(farPort);
  forge({ kind: 'end', text: '{"reason":"moon","message":"full"}' });
  t.same(far.ended, { reason: 'failed', message: 'full' });
  const other = pair();
  other.forge({ kind: 'end', text: 'x' });
  t.match(other.far.ended, { reason: 'failed' });
  t.end();
});

t.test('no connection ends it', (t) => {
  const ends: SessionEnd[] = [];
  const tunnel = new Tunnel({
    publish: () => {
      throw new Error('closed');
    },
    clock: { monotonicMs: () => 0 },
    onEnded: (end) => void ends.push(end),
  });
  const port: TunnelPort = { onData() {}, onControl() {}, onRoom() {}, onEnd: (end) => void ends.push(end) };
  tunnel.attach(port);
  t.match(ends, [{ reason: 'lost' }, { reason: 'lost' }]);
  t.end();
});

t.test('every byte arrives in its place, and never more than a window is between', (t) => {
  const chunks = fc.array(fc.integer({ min: 1, max: 100_000 }), { maxLength: 60 });
  const takes = fc.array(fc.integer({ min: 0, max: 120_000 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(chunks, takes, (sizes, takings) => {
      const { near, far, farPort } = pair();
      far.attach(farPort);
      let sent = 0;
      let turn = 0;
      for (const size of sizes) {
        for (let left = size; left > 0;) {
          const part = Math.min(left, near.room());
          near.data(
            0,
            Uint8Array.from({ length: part }, (_, index) => (sent + index) % 251),
          );
          sent += part;
          left -= part;
          const waiting = farPort.bytes - farPort.taken;
          if (waiting > window) throw new Error(`${waiting} bytes wait`);
          const take = near.room() === 0 ? waiting : Math.min(waiting, takings[turn++ % takings.length] ?? 0);
          far.took(take);
          farPort.taken += take;
        }
      }
      return farPort.bytes === sent && farPort.inOrder;
    }),
    { numRuns: 50 },
  );
  t.end();
});
