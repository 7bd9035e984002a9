/** The judgement of usage notices what it is there for. */
import t from 'tap';
import type { Run, RunEnd } from './engine/programs.ts';
import { usageFaults } from './judge-usage.ts';

const run = (startedMs: number, endedMs: number | undefined, by: RunEnd['by'] = 'agent'): Run => ({
  ...{ tenant: 't1', container: 'c1', tag: 'latest', wasAsked: false, startedMs },
  end: endedMs === undefined ? undefined : { atMs: endedMs, exitCode: 0, by },
});
const ended = [run(10_000, 15_000), run(20_000, 21_000)];
const nowMs = 100_000;
const faults = (runs: readonly Run[], used: number, forgotten = [{ fromMs: 0, toMs: 1 }]): number =>
  usageFaults(runs, new Map([['c1', used]]), nowMs, forgotten).length;

t.test('each second of a run once', (t) => {
  t.equal(faults(ended, 6_000), 0);
  t.equal(faults(ended, 1_000), 1, 'a run is missing');
  t.equal(faults(ended, 11_000), 1, 'a run counts twice');
  t.equal(usageFaults(ended, new Map(), nowMs).length, 1, 'nothing is told');
  t.equal(faults([...ended, run(40_000, undefined)], 60_000), 0, 'what runs is told a little later');
  t.equal(faults([...ended, run(40_000, undefined)], 6_000), 1, 'but it is');
  t.equal(faults([run(10_000, 15_000, 'hand')], 0), 0, 'nobody saw its end');
  t.equal(faults([run(10_000, 15_000, 'hand')], 7_000), 1);
  t.end();
});

t.test('what ran in a time that the stream forgot may be missing, and nothing counts twice', (t) => {
  const forgotten = [{ fromMs: 20_500, toMs: 21_500 }];
  t.equal(faults(ended, 5_000, forgotten), 0);
  t.equal(faults(ended, 1_000, forgotten), 1);
  t.equal(faults(ended, 11_000, forgotten), 1);
  t.end();
});
