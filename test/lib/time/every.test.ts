import t from 'tap';
import { createRounds, every } from '../../../lib/time/every.ts';

t.test('work begins after a pause, does not overlap, and ends with the signal', async (t) => {
  const ending = new AbortController();
  const said: string[] = [];
  let pauses = 0;
  const work = async (): Promise<void> => {
    said.push('begins');
    await new Promise(setImmediate);
    said.push('ends');
    if (said.length === 4) ending.abort();
  };
  await every(() => (pauses++, 1), work, ending.signal);
  t.same(said, ['begins', 'ends', 'begins', 'ends']);
  t.equal(pauses, 3);
  await every(() => 60_000, work, ending.signal);
  t.equal(said.length, 4, 'an aborted signal ends it at once');
});

t.test('a failure of the work ends it', async (t) => {
  const { signal } = new AbortController();
  await t.rejects(
    every(
      () => 0,
      () => Promise.reject(new Error('broken')),
      signal,
    ),
    /broken/,
  );
});

t.test('rounds stop after the round that is under way', async (t) => {
  const rounds = createRounds(1);
  let begun = (): void => {};
  const hasBegun = new Promise<void>((resolve) => (begun = resolve));
  let isOver = false;
  rounds.start(async () => {
    begun();
    await new Promise((resolve) => rounds.signal.addEventListener('abort', resolve));
    await new Promise(setImmediate);
    isOver = true;
  });
  await hasBegun;
  await rounds.stop();
  t.ok(isOver);
  await createRounds(1).stop();
});
