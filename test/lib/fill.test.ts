/** Filling one message up to its bounds. */
import t from 'tap';
import { fill, line, Room } from '../../lib/fill.ts';

const sizes = (...bytes: readonly number[]) => bytes.map((size, index) => ({ index, bytes: size }));
const cut = (value: { readonly index: number; readonly bytes: number }) => ({ value: value.index, bytes: value.bytes });

t.test('pieces go in until one does not fit; smaller ones behind it wait too', (t) => {
  const source = sizes(4, 5, 2, 1);
  t.same(fill(source, { bytes: 10 }, cut), { values: [0, 1], passed: 2, next: source[2] });
  t.same(fill(source, { bytes: 12 }, cut), { values: [0, 1, 2, 3], passed: 4, next: undefined });
  t.same(fill([], { bytes: 10 }, cut), { values: [], passed: 0, next: undefined });
  t.end();
});

t.test('the first piece goes in whatever its size', (t) => {
  const source = sizes(11, 1);
  t.same(fill(source, { bytes: 10 }, cut), { values: [0], passed: 1, next: source[1] });
  t.end();
});

t.test('items are bounded as well, by what each counts for', (t) => {
  const source = sizes(1, 1, 1);
  t.same(fill(source, { bytes: 10, items: 2 }, cut).values, [0, 1]);
  t.same(fill(source, { bytes: 10, items: 3 }, (item) => ({ ...cut(item), items: 2 })).values, [0]);
  t.end();
});

t.test('nothing is cut once the room holds as many items as it may', (t) => {
  const asked: number[] = [];
  const source = sizes(1, 1, 1);
  const filled = fill(source, { bytes: 10, items: 2 }, (item) => {
    asked.push(item.index);
    return cut(item);
  });
  t.same(filled, { values: [0, 1], passed: 2, next: source[2] });
  t.same(asked, [0, 1]);
  t.end();
});

t.test('a piece that is left out takes no room, and is passed', (t) => {
  const source = sizes(9, 1, 9, 1);
  const small = fill(source, { bytes: 2, items: 2 }, (item) => (item.bytes > 1 ? undefined : cut(item)));
  t.same(small, { values: [1, 3], passed: 4, next: undefined });
  t.end();
});

t.test('a room that refused a piece may take a smaller one', (t) => {
  const room = new Room({ bytes: 10 });
  t.same([room.take(6), room.take(6), room.take(4), room.take(1)], [true, false, true, false]);
  t.end();
});

t.test('a line counts its bytes and the separator', (t) => {
  t.same(line('é'), { value: 'é', bytes: 3 });
  t.end();
});
