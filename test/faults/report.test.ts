/** The closing table of fault runs. */
import t from 'tap';
import { table } from './report.ts';
import type { Injection, Trial } from './trial.ts';

const injection = (kind: string, unavailableMs: number, jetstreamMs: number): Injection => ({
  kind,
  text: '',
  unavailableMs,
  jetstreamMs,
});

const trial = (seed: number, injections: readonly Injection[]): Trial => ({
  seed,
  injections,
  operations: 100,
  losses: 0,
  doubles: 0,
  judgements: [{ what: 'a check', faults: seed === 2 ? ['it fails'] : [] }],
  growths: [],
  folder: '',
});

t.test('a row for each fault, with JetStream’s part and the rest', (t) => {
  const lines = table(
    [
      trial(1, [injection('leader killed', 5_000, 4_000), injection('actors killed', 2_000, 0)]),
      trial(2, [injection('leader killed', 7_000, 6_800)]),
      trial(3, [injection('leader killed', 6_000, 3_000)]),
    ],
    true,
  );
  const cells = lines.filter((line) => line.startsWith('|')).map((line) => line.split('|').map((cell) => cell.trim()));
  t.same(cells.slice(2), [
    ['', 'actors killed', '1', '2.00', '2.00', '0.00', '0.00', '2.00', '2.00', ''],
    ['', 'leader killed', '3', '6.00', '7.00', '4.00', '6.80', '1.00', '3.00', ''],
  ]);
  t.match(lines.at(-1), /^Seeds 1, 2, 3: 4 faults injected, 300 operations checked.* 1 judgements failed\.$/);
  t.end();
});
