import t from 'tap';
import { join } from 'node:path';
import { createGrowth } from '../../../../host-agent/logs/files/growth.ts';
import { limits } from '../../../../schemas/limits.ts';
import { World } from '../../../sim/world/time.ts';
import { temporaryFolder } from '../../../support/folder.ts';

t.test('a pause follows a read of a file that grew, and none a wait without a change', async (t) => {
  const world = new World();
  const growth = createGrowth(join(temporaryFolder(t), 'absent.log'));
  const { signal } = new AbortController();
  const endsAtMs: number[] = [];
  await world.run(
    () => 1,
    async () => {
      void world.spawn(world.process('agent'), async () => {
        t.equal(growth.arm(), false, 'the kernel watches no file that is not there');
        for (let wait = 0; wait < 3; wait++) {
          await growth.wait(signal);
          endsAtMs.push(world.nowMs);
        }
      });
      await world.until(() => endsAtMs.length === 3, 60_000);
    },
  );
  const firstMs = limits.logFilePauseMs + limits.logFileUnwatchedMs;
  t.same(endsAtMs, [firstMs, firstMs + limits.logFileUnwatchedMs, firstMs + 2 * limits.logFileUnwatchedMs]);
});
