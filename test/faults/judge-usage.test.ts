/** The judgement of usage notices what it is there for. */
import t from 'tap';
import type { Run, RunEnd } from './engine/programs.ts';
import { usageFaults } from './judge-usage.ts';

const run = (startedMs: number, endedMs: number | undefined, by: RunEnd['by'] = 'agent'): Run => ({
  ...{ tenant: 't1', container: 'c1', tag: 'latest', wasAsked: false, startedMs },
  end: endedMs === undefined ? undefined : { atMs: endedMs, exitCode: 0, by },
});
const ended = [run(10_000, 30_000), run(40_000, 44_000)];
const nowMs = 100_000;
const none = [{ fromMs: 0, toMs: 1 }];
const faults = (runs: readonly Run[], used: number, forgotten = none, undated = none): number =>
  usageFaults(runs, new Map([['c1', used]]), nowMs, forgotten, undated).length;

t.test('each second of a run once', (t) => {
  t.equal(faults(ended, 24_000), 0);
  t.equal(faults(ended, 4_000), 1, 'a run is missing');
  t.equal(faults(ended, 44_000), 1, 'a run counts twice');
  t.equal(usageFaults(ended, new Map(), nowMs).length, 1, 'nothing is told');
  t.equal(faults([...ended, run(60_000, undefined)], 64_000), 0, 'what runs is told a little later');
  t.equal(faults([...ended, run(60_000, undefined)], 24_000), 1, 'but it is');
  t.equal(faults([run(10_000, 30_000, 'hand')], 0), 0, 'nobody saw its end');
  t.equal(faults([run(10_000, 30_000, 'hand')], 27_000), 1);
  t.end();
});

t.test('what ran in a time that the stream forgot may be missing, and nothing counts twice', (t) => {
  const forgotten = [{ fromMs: 40_500, toMs: 41_500 }];
  t.equal(faults(ended, 20_000, forgotten), 0);
  t.equal(faults(ended, 4_000, forgotten), 1);
  t.equal(faults(ended, 44_000, forgotten), 1);
  t.end();
});

t.test('what ran while the agent had another clock than its engine is not judged', (t) => {
  t.equal(faults(ended, 90_000, none, [{ fromMs: 40_500, toMs: 41_500 }]), 0);
  t.equal(faults(ended, 90_000, none, [{ fromMs: 31_000, toMs: 39_000 }]), 1, 'nothing ran then');
  t.end();
});
