/** The schedule of a host's syncs and their partitions, in virtual time. */
import t from 'tap';
import {
  alsoDue,
  createSyncLoop,
  dueAfter,
  isDue,
  noteObeyed,
  nothingDue,
  type Due,
  type SyncLoop,
} from '../../../host-agent/link/sync-loop.ts';
import type { SyncResult } from '../../../host-agent/link/sync.ts';
import { createFaults } from '../../../host-agent/faults.ts';
import { emptyDesired } from '../../../host-agent/desired/desired-set.ts';
import { limits } from '../../../schemas/limits.ts';
import { incarnationOfEpoch, restoredCluster, type Cluster } from '../../../schemas/records/cluster.ts';
import { quietLog } from '../../actors/support.ts';
import { World } from '../../sim/world/time.ts';
import { answerOf, createOwners, partitions, syncParts } from '../support/owners.ts';

/** With the jitter of this test, an interval is a quarter longer, and a pause is whole. */
const syncMs = 80_000;
const intervalMs = 100_000;
const retry = { minMs: 1000, maxMs: 4000 };
const all = Array.from({ length: partitions }, (_, partition) => partition);

interface Scene {
  readonly world: World;
  readonly loop: SyncLoop;
  /** Asks and messages of the loop since the last call, with their times. */
  readonly did: () => string[];
  /** Partitions whose owners answer; `refusing`: another cluster answers. */
  readonly owners: { answering: readonly number[]; isRefusing: boolean };
  readonly pass: (ms: number) => Promise<unknown>;
}

async function syncing(body: (scene: Scene) => Promise<void>): Promise<void> {
  const world = new World();
  const agent = world.process('agent');
  const lines: string[] = [];
  const tell = (what: string) => void lines.push(`${world.nowMs} ${what}`);
  const owners = { answering: all as readonly number[], isRefusing: false };
  const { nc, say } = createOwners(({ ask }) => {
    const asked = ask.partitions ?? all;
    tell(`asks ${ask.partitions === undefined ? 'all' : asked.join()}`);
    world.at(world.nowMs, agent, () => {
      if (owners.isRefusing) say(answerOf(0, { cluster: 'c2' }));
      else for (const partition of asked) if (owners.answering.includes(partition)) say(answerOf(partition));
    });
  });
  let desired = emptyDesired('c1');
  const ofSync = syncParts({ desired: () => desired, accept: (next) => void (desired = next) });
  const ending = new AbortController();
  await world.run(
    () => 1,
    async () => {
      const loop = createSyncLoop({
        ...ofSync,
        workload: { ...ofSync.workload, asked: () => {} },
        lease: { ...ofSync.lease, synced: () => {} },
        credentials: { signer: () => false },
        faults: createFaults(quietLog),
        connection: { asked: () => {}, heard: () => tell('heard') },
        syncMs,
        retry,
        clock: { nowMs: () => 10 ** 12 + world.nowMs, monotonicMs: () => world.nowMs },
        metrics: { sync: (kind) => tell(kind) },
      });
      loop.events.on('full', () => tell('full'));
      void world.spawn(agent, () => loop.run(nc, ending.signal));
      const pass = async (ms: number) => world.until(() => false, ms);
      await body({ world, loop, did: () => lines.splice(0), owners, pass });
      ending.abort();
      await pass(intervalMs);
    },
  );
}

const ring = ({ world, loop }: Scene, ...due: number[]) =>
  void world.at(world.nowMs, world.stage, () => due.forEach((partition) => loop.ring([partition])));

t.test('it asks all at the start and at the interval, and in between what a doorbell names', async (t) => {
  await syncing(async (scene) => {
    const { loop, did, pass } = scene;
    t.equal(loop.lastSyncMs(), null);
    await pass(0);
    t.same(did(), ['0 asks all', '0 complete', '0 heard', '0 full']);
    t.equal(loop.lastSyncMs(), 10 ** 12);
    await pass(500);
    ring(scene, 3, 1, 1);
    await pass(500);
    t.same(did(), ['500 asks 3,1', '500 complete', '500 heard'], 'what rings together is one ask');
    t.equal(loop.lastSyncMs(), 10 ** 12, 'which is no sync of all');
    await pass(intervalMs - 1001);
    t.same(did(), []);
    await pass(1);
    t.same(did().slice(0, 2), [`${intervalMs} asks all`, `${intervalMs} complete`]);
  });
});

t.test('partitions whose doorbell rings during an ask are asked for after it', async (t) => {
  await syncing(async (scene) => {
    const { did, owners, pass } = scene;
    await pass(0);
    owners.answering = [];
    ring(scene, 1);
    await pass(10);
    ring(scene, 2);
    did();
    await pass(0);
    owners.answering = all;
    await pass(limits.syncTimeoutMs - 10 + retry.minMs);
    const atMs = limits.syncTimeoutMs + retry.minMs;
    t.same(did(), [`${limits.syncTimeoutMs} silent`, `${atMs} asks 2,1`, `${atMs} complete`, `${atMs} heard`]);
  });
});

t.test('an owner that has not answered is asked again, after growing pauses that a doorbell ends', async (t) => {
  await syncing(async (scene) => {
    const { did, owners, pass } = scene;
    await pass(0);
    did();
    owners.answering = [0];
    ring(scene, 0, 1);
    await pass(limits.syncTimeoutMs);
    t.same(did(), ['0 asks 0,1', `${limits.syncTimeoutMs} partial`, `${limits.syncTimeoutMs} heard`]);
    const asksMs: number[] = [];
    for (const pauseMs of [1000, 2000, 4000, 4000]) {
      await pass(pauseMs);
      asksMs.push(...did().flatMap((what) => (what.endsWith('asks 1') ? [pauseMs] : [])));
      await pass(limits.syncTimeoutMs);
      did();
    }
    t.same(asksMs, [1000, 2000, 4000, 4000]);
    await pass(10);
    owners.answering = all;
    const atMs = scene.world.nowMs;
    ring(scene, 3);
    await pass(0);
    t.same(did(), [`${atMs} asks 1,3`, `${atMs} complete`, `${atMs} heard`]);
  });
});

t.test('a sync of all that lacks an answer is not over: all are asked again', async (t) => {
  await syncing(async ({ loop, did, owners, pass }) => {
    owners.answering = [0, 1, 2];
    const againMs = limits.syncTimeoutMs + retry.minMs;
    await pass(againMs - 1);
    t.same(did(), ['0 asks all', `${limits.syncTimeoutMs} partial`, `${limits.syncTimeoutMs} heard`]);
    t.equal(loop.lastSyncMs(), null);
    owners.answering = all;
    await pass(1);
    t.same(did(), [`${againMs} asks all`, `${againMs} complete`, `${againMs} heard`, `${againMs} full`]);
    t.equal(loop.lastSyncMs(), 10 ** 12 + againMs);
  });
});

t.test('silence is the end of a sync of all too, and nothing was heard', async (t) => {
  await syncing(async ({ loop, did, owners, pass }) => {
    owners.answering = [];
    await pass(limits.syncTimeoutMs);
    t.same(did(), ['0 asks all', `${limits.syncTimeoutMs} silent`, `${limits.syncTimeoutMs} full`]);
    t.equal(loop.lastSyncMs(), null);
  });
});

t.test('a refused answer makes all due: nothing of it was taken', async (t) => {
  await syncing(async (scene) => {
    const { did, owners, pass } = scene;
    await pass(0);
    did();
    owners.isRefusing = true;
    ring(scene, 2);
    await pass(0);
    owners.isRefusing = false;
    await pass(retry.minMs);
    t.same(did(), ['0 asks 2', '0 refused', '1000 asks all', '1000 complete', '1000 heard', '1000 full']);
  });
});

const due = (...named: number[]): Due => new Set(named);
const complete: SyncResult = { kind: 'complete', due: [] };
const silent: SyncResult = { kind: 'silent' };

for (const [name, before, asked, result, expected] of [
  ['complete: nothing is left', nothingDue, 'all', complete, due()],
  ['complete: a doorbell during the sync stays', due(3), due(1), complete, due(3)],
  ['complete: strangers that the ask did not name', due(3), due(1), { kind: 'complete', due: [1] }, due(3, 1)],
  ['partial: silent partitions stay due', nothingDue, 'all', { kind: 'partial', missing: [2, 5] }, due(2, 5)],
  ['silent: the asked partitions stay due, and no others', nothingDue, due(2), silent, due(2)],
  ['silent: all were asked', due(2), 'all', silent, 'all'],
  ['silent: all became due meanwhile', 'all', due(2), silent, 'all'],
  ['refused: everything', due(1), due(2), { kind: 'refused', why: 'fenced' }, 'all'],
] as const satisfies readonly (readonly [string, Due, Due, SyncResult, Due])[]) {
  t.test(`${name}`, (t) => {
    t.same(dueAfter(before, asked, result), expected);
    t.end();
  });
}

t.test('all covers every partition', (t) => {
  t.equal(alsoDue('all', [1]), 'all');
  t.equal(alsoDue(due(1), 'all'), 'all');
  t.same(alsoDue(due(1), [2]), due(1, 2));
  t.same([isDue('all'), isDue(due(1)), isDue(nothingDue)], [true, true, false]);
  t.end();
});

const cluster: Cluster = { id: 'c1', partitions: 1, format: 1 };

t.test('a host that ignores the control plane says so, until it obeys again', (t) => {
  const faults = createFaults(quietLog);
  const obeyed = noteObeyed(faults);
  const atMs = Date.parse('2026-06-02');
  const { epochBases: [base = 0] = [] } = restoredCluster(cluster, undefined, [17], atMs);
  const seen = base + 18;
  obeyed(seen);
  t.same(faults.list(), [], 'a former owner may answer once during a takeover');
  obeyed(seen);
  t.match(faults.list(), [{ kind: 'control_plane_behind', message: /restore again with --incarnation-above \d+,/ }]);
  const named = Number(/--incarnation-above (\d+)/.exec(faults.list()[0]?.message ?? '')?.[1]);
  t.equal(named, incarnationOfEpoch(seen));
  const { epochBases: [next = 0] = [] } = restoredCluster(cluster, undefined, [17], named);
  t.ok(next + 18 > seen, 'with that number the next restore is obeyed');
  obeyed(undefined);
  t.same(faults.list(), []);
  obeyed(seen);
  t.same(faults.list(), []);
  t.end();
});
