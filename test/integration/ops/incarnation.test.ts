/** Each restore is obeyed by every host that runs, whatever the clocks of the restores were. */
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import t from 'tap';
import { backUpCluster } from '../../../ops/backup/cluster.ts';
import { restoreCluster, type Restored, type RestoreOptions } from '../../../ops/restore/cluster.ts';
import { systemClock, type Clock } from '../../../lib/time/clock.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { announcedEpoch, incarnationOfEpoch } from '../../../schemas/records/cluster.ts';
import type { SyncAsk } from '../../../schemas/wire/host.ts';
import { subjects } from '../../../schemas/wire/subjects.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';
import { agentOf } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { controlPlane, createAsker, enrolHost, ownerOn, startCluster } from '../actors/support.ts';

const ground = await startCluster(t, 1);
const { nats, nc } = ground;
const host = 'h1' as HostKey;
const folder = join(temporaryFolder(t), 'backup');
const dayMs = 24 * 3600 * 1000;
const clockAt = (aheadMs: number): Clock => ({ ...systemClock, nowMs: () => Date.now() + aheadMs });

const owner = ownerOn(ground, nc);
await owner.start();
await enrolHost(createAsker(nc, 1), host);
await owner.stop();
await backUpCluster(nc, { folder, withLogs: true, clock: systemClock, onSaved: () => {} });

/** The agent of the host: asks when a doorbell rings, and names the epoch that it has. */
const agent = await controlPlane(nats);
t.teardown(() => agent.close());
let has: readonly [epoch: number, revision: number] | 'nothing' | 'silent' = 'nothing';
agent.subscribe(subjects.desiredOfHost(host), {
  callback: () => {
    if (has === 'silent') return;
    const held = has === 'nothing' ? {} : { '0': [has[0], has[1]] as [number, number] };
    agent.publish(
      subjects.hostSync(agentOf(host)),
      JSON.stringify({ v: 1, ...protocolFields, held } satisfies SyncAsk),
    );
  },
});
await agent.flush();

/** JetStream is lost, so that NATS knows nothing of the restores before. */
async function restoreLost(more: Partial<RestoreOptions>): Promise<Restored> {
  const jsm = await jetstreamManager(nc);
  for await (const name of jsm.streams.names()) await jsm.streams.delete(name);
  const calls = { onChecked: () => {}, onRestored: () => {} };
  return restoreCluster(nc, { folder, replace: false, replicas: undefined, clock: systemClock, ...calls, ...more });
}
const firstEpochOf = ({ cluster }: Restored): number => {
  const [base = 0] = cluster.epochBases ?? [];
  return announcedEpoch(cluster, 0, cluster.incarnation! * 2 ** 11 - base + 1);
};

t.test('a restore is obeyed after one by a machine whose clock was ahead', async (t) => {
  const first = await restoreLost({ clock: clockAt(dayMs) });
  t.same(first.hosts, { incarnation: 0, silent: [], implausible: [] });
  // Many owners have come since.
  const seen = firstEpochOf(first) + 5_000_000;
  has = [seen, 7];
  const second = await restoreLost({});
  t.equal(second.hosts.incarnation, incarnationOfEpoch(seen));
  t.ok(firstEpochOf(second) > seen);
});

t.test('a restore that is run again keeps what the first attempt knew', async (t) => {
  has = 'nothing';
  const first = await restoreLost({ clock: clockAt(dayMs) });
  const options = { folder, replace: true, replicas: undefined, clock: systemClock, onChecked: () => {} };
  const broken = restoreCluster(nc, {
    ...options,
    onRestored: () => {
      throw new Error('the power went');
    },
  });
  await t.rejects(broken, { message: 'the power went' });
  const again = await restoreCluster(nc, { ...options, onRestored: () => {} });
  t.ok(firstEpochOf(again) > firstEpochOf(first));
});

t.test('a host that does not answer is named, and the operator may give the number', async (t) => {
  has = 'silent';
  const above = Date.now() + 3 * dayMs;
  const restored = await restoreLost({ incarnationAbove: above });
  t.same(restored.hosts.silent, [host]);
  t.equal(restored.cluster.incarnation, above + 1);
});

t.test('a host is not believed that is decades ahead', async (t) => {
  has = [(Date.now() + 30 * 365 * dayMs) * 2 ** 11, 1];
  const restored = await restoreLost({});
  t.same(restored.hosts.implausible, [host]);
  t.ok((restored.cluster.incarnation ?? 0) < Date.now() + dayMs);
});
