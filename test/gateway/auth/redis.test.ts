import t from 'tap';
import { isLapsing, partitionOfDoorbell, perSecond, redisCountTtlSeconds } from '../../../gateway/auth/redis.ts';

t.test('a doorbell names a partition in a few digits; any other message names none', (t) => {
  const rows: [string, number | undefined][] = [
    ['0', 0],
    ['15', 15],
    ['9999', 9999],
    ['10000', undefined],
    ['', undefined],
    ['-1', undefined],
    ['1.5', undefined],
    ['0x1', undefined],
    ['7\n', undefined],
    ['٣', undefined],
  ];
  for (const [message, partition] of rows) {
    t.equal(partitionOfDoorbell(Buffer.from(message)), partition, JSON.stringify(message));
  }
  t.end();
});

t.test('only so many of each second count', (t) => {
  let nowMs = 900;
  const may = perSecond(2, { nowMs: () => 0, monotonicMs: () => nowMs });
  t.same([may(), may(), may()], [true, true, false]);
  nowMs = 999;
  t.equal(may(), false);
  nowMs = 1000;
  t.same([may(), may(), may()], [true, true, false], 'a new second');
  t.end();
});

t.test('a count is kept from its first addition on, and again after half of its life', (t) => {
  const halfMs = redisCountTtlSeconds * 500;
  const known = { sum: 10, keptAtMs: 1000 };
  t.ok(isLapsing(undefined, 12, 2, 1000), 'first seen by this gateway');
  t.notOk(isLapsing(known, 12, 2, 1000 + halfMs - 1));
  t.ok(isLapsing(known, 12, 2, 1000 + halfMs));
  t.ok(isLapsing(known, 2, 2, 1001), 'new: Redis had lost it');
  t.notOk(isLapsing(known, 3, 2, 1001), 'another gateway made it before, and keeps it');
  t.end();
});
