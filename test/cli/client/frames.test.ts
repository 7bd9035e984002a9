import t from 'tap';
import { frameReader } from '../../../cli/client/frames.ts';

const text = 'id: 1\nevent: log\ndata: {"a":1}\n\n: comment\n\nevent: end\r\ndata: one\r\ndata: two\r\n\r\n';
const frames = [
  { id: '1', event: 'log', data: '{"a":1}' },
  { id: '', event: 'end', data: 'one\ntwo' },
];

t.test('frames are the same however the text is cut', (t) => {
  for (let size = 1; size <= text.length; size++) {
    const read = frameReader();
    const found = [];
    for (let from = 0; from < text.length; from += size) found.push(...read(text.slice(from, from + size)));
    t.same(found, frames, `in pieces of ${size}`);
  }
  t.end();
});

t.test('a frame is taken when it is complete, and not before', (t) => {
  const read = frameReader();
  t.same(read('data: 1\n'), []);
  t.same(read('\n'), [{ id: '', event: '', data: '1' }]);
  t.end();
});

t.test('a line without an end is refused before it fills the memory', (t) => {
  const read = frameReader();
  t.throws(() => {
    for (let piece = 0; piece < 200; piece++) read('x'.repeat(16 * 1024));
  }, /too long/);
  t.end();
});
