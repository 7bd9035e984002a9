import t from 'tap';
import { encodeValue, type Encoded } from '../../../../actors/runtime/journal/codec.ts';
import { decodeMark, encodeMark, type Mark } from '../../../../actors/runtime/journal/mark.ts';
import type { MemberId } from '../../../../schemas/ids.ts';

const textOf = (mark: Mark): string => Buffer.from(encodeMark(mark)).toString();

t.test('a mark is read as it was written', (t) => {
  const [a, b] = ['a' as MemberId, 'b' as MemberId];
  const marks: Mark[] = [
    { number: 0, journals: [] },
    { number: 7, journals: [a] },
    { number: 7, journals: [a, b] },
  ];
  for (const mark of marks) t.same(decodeMark(encodeMark(mark)), { ok: true, value: mark }, JSON.stringify(mark));
  t.end();
});

t.test('a damaged mark is no mark', (t) => {
  const damaged: [string, Encoded, RegExp][] = [
    ['nothing', Buffer.from(''), /format/],
    ['rot', Buffer.from('rot'), /format/],
    ['a flipped bit', Buffer.from(textOf({ number: 7, journals: [] }).replace('7', '6')), /checksum/],
    ['cut short', encodeMark({ number: 7, journals: [] }).slice(0, -1), /checksum/],
    ['the common form', encodeValue({ number: 7, journals: [] }), /format/],
    ['a number alone', encodeValue(7, '2'), /shape/],
    ['without journals', encodeValue({ number: 7 }, '2'), /shape/],
    ['a form that comes later', encodeValue({ number: 7, journals: [] }, '3'), /format/],
  ];
  for (const [name, value, fault] of damaged) t.match(decodeMark(value), { ok: false, fault }, name);
  t.end();
});
