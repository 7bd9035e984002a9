import t from 'tap';
import { partitionOfDoorbell, perSecond } from '../../../gateway/auth/redis.ts';

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
