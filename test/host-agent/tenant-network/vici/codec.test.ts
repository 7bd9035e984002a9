import t from 'tap';
import { decodeMessage, encodeMessage, type ReadSection } from '../../../../host-agent/tenant-network/vici/message.ts';
import {
  PacketReader,
  registerPacket,
  requestPacket,
  type Packet,
} from '../../../../host-agent/tenant-network/vici/packet.ts';

/** The example of the protocol's document. */
const example = { key1: 'value1', section1: { 'sub-section': { key2: 'value2' }, list1: ['item1', 'item2'] } };
const text = (...all: readonly (string | number)[]): Buffer =>
  Buffer.concat(all.map((part) => Buffer.from(typeof part === 'number' ? [part] : part)));
const exampleBytes = text(
  ...[3, 4, 'key1', 0, 6, 'value1'],
  ...[1, 8, 'section1', 1, 11, 'sub-section', 3, 4, 'key2', 0, 6, 'value2', 2],
  ...[4, 5, 'list1', 5, 0, 5, 'item1', 5, 0, 5, 'item2', 6, 2],
);

t.test('a message is written and read as the document of the protocol has it', (t) => {
  t.same(encodeMessage(example), exampleBytes);
  t.same(decodeMessage(exampleBytes), example);
  t.same(decodeMessage(Buffer.alloc(0)), {});
  t.same(decodeMessage(encodeMessage({ none: [], der: Buffer.from('bytes') })), { none: [], der: 'bytes' });
  const named = decodeMessage(text(3, 9, '__proto__', 0, 1, 'x'));
  t.same(Object.entries(named), [['__proto__', 'x']]);
  t.end();
});

t.test('what is no message, and what none can hold', (t) => {
  for (let length = 1; length < exampleBytes.length; length++) {
    const isWhole = length === exampleBytes.indexOf('section1') - 2;
    if (!isWhole) t.throws(() => decodeMessage(exampleBytes.subarray(0, length)), { name: 'ViciError' });
  }
  for (const bytes of [[2], [5, 0, 0], [6], [9], [4, 1, 97, 3], Array.from({ length: 99 }, () => [1, 0]).flat()])
    t.throws(() => decodeMessage(Buffer.from(bytes)), { name: 'ViciError' }, bytes.join(' '));
  t.throws(() => encodeMessage({ ['n'.repeat(256)]: '' }), { name: 'ViciError' });
  t.throws(() => encodeMessage({ value: 'v'.repeat(65_536) }), { name: 'ViciError' });
  t.throws(() => requestPacket('load-conn', { values: Array.from({ length: 9 }, () => 'v'.repeat(60_000)) }), {
    name: 'ViciError',
  });
  t.end();
});

t.test('packets', async (t) => {
  const read = (...chunks: readonly Buffer[]): Packet[] => {
    const reader = new PacketReader();
    return chunks.flatMap((chunk) => [...reader.read(chunk)]);
  };

  t.same(requestPacket('version', {}), text(0, 0, 0, 9, 0, 7, 'version'));
  t.same(registerPacket('list-sa'), text(0, 0, 0, 9, 3, 7, 'list-sa'));
  t.same(
    requestPacket('x', { a: 'b' }).subarray(4),
    text(0, 1, 'x', 3, 1, 'a', 0, 1, 'b'),
    'a message follows the name',
  );

  await t.test('are read however they are cut', (t) => {
    const stream = text(
      ...[0, 0, 0, 8, 1, 3, 1, 'a', 0, 2, 'bc'],
      ...[0, 0, 0, 1, 5, 0, 0, 0, 1, 2, 0, 0, 0, 1, 6],
      ...[0, 0, 0, 9, 7, 2, 'up', 3, 1, 'k', 0, 0],
    );
    const message = (name: string, value: string): ReadSection => ({ [name]: value });
    const all: Packet[] = [
      { kind: 'response', message: message('a', 'bc') },
      { kind: 'confirmed' },
      { kind: 'unknown' },
      { kind: 'unknown' },
      { kind: 'event', name: 'up', message: message('k', '') },
    ];
    t.same(read(stream), all);
    t.same(read(...Array.from(stream, (byte) => Buffer.from([byte]))), all);
    t.end();
  });

  await t.test('that are none', (t) => {
    const none = [text(0, 0, 0, 0), text(0x7f, 0, 0, 0), text(0, 0, 0, 1, 9), text(0, 0, 0, 3, 1, 3, 1)];
    for (const bytes of none) t.throws(() => read(bytes), { name: 'ViciError' }, bytes.join(' '));
    t.end();
  });
});
