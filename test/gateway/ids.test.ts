import t from 'tap';
import { ascendingIds, idsDrawn } from '../../gateway/ids.ts';
import { isContainerId } from '../../schemas/ids.ts';

const clockAt = (times: number[]) => ({ nowMs: () => times.shift() ?? 0 });
/** The last 40 bits: random in each id. */
const tailOf = (id: string) => id.replaceAll('-', '').slice(-10);

t.test('ids ascend, also within a millisecond and when the clock steps back', (t) => {
  const times = [1000, 1000, 1000, 1001, 999, 500, 1002];
  const count = times.length;
  const newId = ascendingIds(clockAt(times));
  const ids = Array.from({ length: count }, newId);
  t.same(ids.toSorted(), ids);
  t.equal(new Set(ids).size, count);
  t.ok(ids.every(isContainerId));
  t.match(ids[0], /^00000000-03e8-7/);
  t.end();
});

t.test('the counter starts again in each millisecond, below half of its range', (t) => {
  const newId = ascendingIds(clockAt([1, 1, 2]), (block) => block.fill(0xff));
  t.match(newId(), /^00000000-0001-77ff-bfff-ff/);
  t.match(newId(), /^00000000-0001-7800-8000-03/);
  t.match(newId(), /^00000000-0002-77ff-bfff-ff/);
  t.end();
});

t.test('each id has random bits of its own, drawn for many ids at once', (t) => {
  let draws = 0;
  let drawn = 0;
  const newId = ascendingIds({ nowMs: () => 1 }, (block) => {
    draws++;
    for (let at = 0; at < block.length; at += 16) new DataView(block.buffer, at).setUint32(12, drawn++);
  });
  const ids = Array.from({ length: 2 * idsDrawn }, newId);
  t.equal(draws, 2);
  t.equal(new Set(ids.map(tailOf)).size, ids.length);
  t.end();
});

t.test('without a source the random bits are the system’s', (t) => {
  const [one, other] = [ascendingIds({ nowMs: () => 1 }), ascendingIds({ nowMs: () => 1 })];
  const tails = Array.from({ length: 2 * idsDrawn }, () => [tailOf(one()), tailOf(other())]).flat();
  t.equal(new Set(tails).size, tails.length);
  t.end();
});
