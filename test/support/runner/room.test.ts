import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { runAsRoomAllows } from './room.ts';

/** Runs eight jobs that last until released; returns how many ran before the first ended. */
async function crowd(idle: () => Promise<number>): Promise<number> {
  let running = 0;
  let most = 0;
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const job = async (): Promise<void> => {
    most = Math.max(most, ++running);
    await released;
    running--;
  };
  const all = runAsRoomAllows(Array<typeof job>(8).fill(job), { least: 2, most: 5 }, idle);
  for (let turn = 0; turn < 100; turn++) await setImmediate();
  const before = most;
  release();
  await all;
  t.equal(running, 0, 'every job ended');
  return before;
}

t.test('jobs join while the processors idle', async (t) => {
  t.equal(await crowd(() => setImmediate(0.9)), 5, 'up to the most');
  t.equal(await crowd(() => setImmediate(0.1)), 2, 'the least on a busy machine');
});

t.test('the failure of a job is the failure of all', async (t) => {
  const jobs = [async () => undefined, () => Promise.reject(new Error('broken'))];
  await t.rejects(runAsRoomAllows(jobs, { least: 2, most: 2 }), /broken/);
});
