import t from 'tap';
import { amountText } from '../../../cli/terminal/quantities.ts';
import { sampleLine } from '../../../cli/tenant/stats.ts';

t.test('amounts of a quota: bytes as people read them', (t) => {
  t.equal(amountText('mem_bytes', 64 * 1024 ** 2), '64 MiB');
  t.equal(amountText('cpu_millis', 8250), '8.25 cores');
  t.equal(amountText('containers', 20), '20');
  t.end();
});

t.test('samples that follow one another are below one another', (t) => {
  const lines = [
    ['TIME', 'CPU', 'MEMORY', 'RECEIVED', 'SENT', 'PIDS'],
    ['2026-11-25T04:00:47.754Z', '0.000', '1020.5 KiB / 64 MiB', '607 B', '25.7 KiB', '3'],
    ['2026-11-25T04:00:48.754Z', '12.004', '2 MiB / 64 MiB', '20.4 KiB', '999 B', '12'],
  ].map(sampleLine);
  t.same(
    lines.map((line) => line.search(/\S+$/)),
    [79, 79, 79],
  );
  t.end();
});
