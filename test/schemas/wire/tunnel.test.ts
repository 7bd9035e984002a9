import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import t from 'tap';
import {
  decodeTunnelMessage,
  encodeTunnelMessage,
  numberAfter,
  type TunnelMessage,
} from '../../../schemas/wire/tunnel.ts';

const count = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const plain = { noNullPrototype: true };
const messages = fc.oneof<fc.Arbitrary<TunnelMessage>[]>(
  fc.record(
    { kind: fc.constant('data' as const), channel: fc.integer({ min: 0, max: 255 }), bytes: fc.uint8Array() },
    plain,
  ),
  fc.record(
    { kind: fc.constantFrom('control' as const, 'end' as const), text: fc.string({ unit: 'grapheme' }) },
    plain,
  ),
  fc.record({ kind: fc.constant('credit' as const), bytes: count, controls: count }, plain),
  fc.constant({ kind: 'beat' as const }),
);

t.test('every message is read as it was written, wherever its bytes lie', (t) => {
  fc.assert(
    fc.property(messages, count, fc.nat(9), (message, number, offset) => {
      const encoded = encodeTunnelMessage(number, message);
      const within = new Uint8Array(offset + encoded.length + 3);
      within.set(encoded, offset);
      return isDeepStrictEqual(decodeTunnelMessage(within.subarray(offset, offset + encoded.length)), {
        number,
        message,
      });
    }),
    { numRuns: 300 },
  );
  t.end();
});

t.test('bytes that are no message', (t) => {
  const rows: Record<string, readonly number[]> = {
    none: [],
    'a part of a head': [0, 0, 0, 0],
    'an unknown kind': [9, 0, 0, 0, 0],
    'data without a channel': [0, 0, 0, 0, 0],
    'credit that is too short': [2, 0, 0, 0, 0, 0, 0, 0, 1],
    'credit that is too long': [2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0],
    'text that is not UTF-8': [1, 0, 0, 0, 0, 0xff],
  };
  for (const [what, bytes] of Object.entries(rows)) {
    t.equal(decodeTunnelMessage(Uint8Array.from(bytes)), undefined, what);
  }
  t.end();
});

t.test('numbers go round', (t) => {
  t.equal(numberAfter(0), 1);
  t.equal(numberAfter(2 ** 32 - 1), 0);
  t.end();
});
