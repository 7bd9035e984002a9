import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { createStops } from '../../../../host-agent/reconcile/execute/stops.ts';

const minutes = 60_000;

t.test('stops are bounded, after failures too', async (t) => {
  const stops = createStops({ workers: 2, slowWorkers: 1, patienceMs: minutes });
  let now = 0;
  let most = 0;
  const run = (id: string, fails: boolean) =>
    stops.run(id, async () => {
      most = Math.max(most, ++now);
      await delay(0);
      now -= 1;
      if (fails) throw new Error('the stop fails');
    });
  const outcomes = await Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map((id) => run(id, id < 'c')));
  t.equal(most, 2);
  t.same(
    outcomes.map(({ status }) => status === 'fulfilled'),
    [false, false, true, true, true],
  );
});

t.test('a stop that hangs gives up its place, and runs once if it is repeated', async (t) => {
  const stops = createStops({ workers: 2, slowWorkers: 1, patienceMs: 20 });
  let asked = 0;
  const ends: (() => void)[] = [];
  const hang = (id: string) =>
    stops.run(id, () => {
      asked += 1;
      return new Promise<void>((resolve) => void ends.push(resolve));
    });
  const quick = (id: string) => stops.run(id, () => delay(0));
  const hung = [hang('x'), hang('y'), hang('x')];
  await quick('a');
  t.equal(asked, 2);
  for (const end of ends) end();
  await Promise.all(hung);
  await quick('x');
});
