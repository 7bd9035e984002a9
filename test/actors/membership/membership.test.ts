/** A lease across a pause: what was answered before it counts from when it was asked. */
import t from 'tap';
import { Membership } from '../../../actors/membership/membership.ts';
import type { MemberStore } from '../../../actors/membership/member-store.ts';
import { sleep } from '../../../lib/backoff.ts';
import type { MemberId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { quietLog } from '../support.ts';
import { createFractions } from '../support/random.ts';
import { World } from '../../sim/world/time.ts';

t.test('a renewal that was answered during a pause is worth nothing after it', async (t) => {
  const world = new World();
  const process = world.process('member');
  let revision = 0;
  const store: MemberStore = {
    list: async () => Promise.resolve([]),
    read: async () => Promise.resolve({ revision, value: null }),
    replace: async () => {
      await sleep(10);
      return ++revision;
    },
  };
  const validAtMs: number[] = [];
  const membership = world.as(
    process,
    () =>
      new Membership({
        store,
        clock: process.clock,
        log: quietLog,
        newId: () => 'm1' as MemberId,
        held: () => [],
        refused: () => [],
        onRenewed: () => {
          if (membership.lease().isValid()) validAtMs.push(world.nowMs);
        },
        onRevoked: () => {},
        onLooked: () => {},
      }),
  );
  await world.run(createFractions(1), async () => {
    void world.spawn(process, () => membership.start());
    // The first renewal is under way when the process is stopped, and answered while it is.
    await world.until(() => false, 5);
    world.pause(process);
    await world.until(() => false, 3 * limits.leaseMs);
    t.same(validAtMs, []);
    world.resume(process);
    await world.until(() => revision > 0, 1);
    t.same(validAtMs, [], 'the answer is taken in, and the lease is over');
    t.notOk(membership.lease().isValid());
    await world.until(() => validAtMs.length > 0, limits.leaseMs);
    t.ok(membership.lease().isValid(), 'until the next');
  });
});
