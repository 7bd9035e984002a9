/** Work of one process in virtual time. */
import type { Test } from 'tap';
import { World, type Process } from '../../sim/world/time.ts';
import { createFractions } from './random.ts';

/** Fails the test if the work does not end within this time. */
export async function inWorld(t: Test, limitMs: number, work: (process: Process) => Promise<void>): Promise<void> {
  const world = new World();
  const process = world.process('actors');
  await world.run(createFractions(1), async () => {
    let isDone = false;
    void world.spawn(process, async () => {
      await work(process);
      isDone = true;
    });
    t.ok(await world.until(() => isDone, limitMs));
  });
}
