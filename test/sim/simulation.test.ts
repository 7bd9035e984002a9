/**
 * Runs of the whole from seeds (simulation.ts): a hundred, other ones for the next commit. A seed
 * that fails is printed, and runs again alone: `SEEDS=17 node dist/test/sim/simulation.test.js`;
 * `SEEDS=1-1000` runs a thousand.
 */
import t from 'tap';
import { partOfTurn } from '../support/runner/choice/rotation.ts';
import { simulateAll } from './lane.ts';
import type { Run } from './simulation.ts';

const seedsOf = (text: string): number[] =>
  text.split(',').flatMap((part) => {
    const [first, last = first] = part.split('-').map(Number);
    return first === undefined || last === undefined
      ? []
      : Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });

const hundred = partOfTurn(10) * 100;
const seeds = seedsOf(process.env['SEEDS'] ?? `${hundred + 1}-${hundred + 100}`);

t.test(`${seeds.length} runs under pauses, crashes, lost and late messages`, { timeout: 1_700_000 }, async (t) => {
  const startMs = performance.now();
  const runs = await simulateAll(seeds);
  t.equal(runs.length, seeds.length);
  for (const { seed, faults } of runs) if (faults.length > 0) t.fail(`SEEDS=${seed}\n${faults.join('\n')}`);
  const sum = (of: (run: Run) => number): number => runs.reduce((total, run) => total + of(run), 0);
  const operations = sum((run) => run.operations);
  t.comment(
    `${operations} operations, ${sum(({ events }) => events)} events in ${Math.round(performance.now() - startMs)} ms`,
  );
  t.ok(operations > 0);
  const undecided = sum((run) => run.undecided);
  t.ok(undecided <= Math.ceil(seeds.length / 200), `${undecided} histories have too many orders to try`);
});

t.test('the same seed gives the same run, to the last message, however busy the machine is', async (t) => {
  const same = ({ digest, events, operations }: Run) => ({ digest, events, operations });
  // A restore; small limits, many tenants and a rush; secrets and logins.
  const first = (await simulateAll([3, 24, 26])).map(same);
  const again = (await simulateAll([26, 24, 3], 'erratic')).map(same);
  t.same(again.reverse(), first);
  t.equal(new Set(first.map(({ digest }) => digest)).size, first.length);
});
