/** Answers of actors while the enrolled key of a host is unknown, or not known yet. */
import t, { type Test } from 'tap';
import { HostDirectory } from '../../../../actors/endpoints/directory.ts';
import { Fleet } from '../../../../actors/endpoints/fleet.ts';
import { subscribeHeartbeats, serveHosts } from '../../../../actors/endpoints/hosts/serve.ts';
import type { UsageOptions } from '../../../../actors/endpoints/hosts/usage.ts';
import { PeersSeen } from '../../../../actors/usage/peers-seen.ts';
import { createUsageStore } from '../../../../actors/usage/store.ts';
import { encodeValue } from '../../../../actors/runtime/journal/codec.ts';
import { startNats } from '../../../../dev/servers/nats.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import { createSlices } from '../../../../lib/time/slices.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import type { RevokedKeyRecord } from '../../../../schemas/api/host.ts';
import type { SyncAnswer } from '../../../../schemas/wire/host.ts';
import { subjects, type Sender } from '../../../../schemas/wire/subjects.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { agentOf, hostKey, quietLog } from '../../../actors/support.ts';
import { controlPlane } from '../support.ts';
import { MemoryBucket, createMemorySink, createMemoryStore } from '../../../actors/support/memory-store.ts';
import { createPartition } from '../../../actors/support/partition.ts';
import { none, roomy } from '../../../actors/support/records.ts';
import { protocolFields } from '../../../../schemas/wire/version.ts';

const damaged = hostKey('h1');

/** A process with two partitions. In the host's own partition, the host's record is damaged. */
async function serving(t: Test) {
  const nats = await startNats({ dir: temporaryFolder(t) });
  t.teardown(() => nats.stop());
  const nc = await controlPlane(nats);
  t.teardown(() => nc.close());
  const owned = await Promise.all(
    [0, 1].map(async (number) => {
      const bucket = new MemoryBucket();
      bucket.set(keys.host(damaged), 'damaged');
      const revoked: RevokedKeyRecord = { kind: 'revoked_key', publicKey: 'UB', host: damaged, atMs: 1 };
      bucket.set(keys.revokedKey(revoked.publicKey), encodeValue(revoked));
      const partition = createPartition({ number, store: createMemoryStore(bucket), events: createMemorySink([]) });
      await partition.start();
      t.teardown(() => partition.release());
      return partition;
    }),
  );
  const fleet = new Fleet({ clock: systemClock, partitions: 2, hostUnknownMs: 60_000 });
  const refused: string[] = [];
  const options: UsageOptions = {
    nc,
    usage: createUsageStore(nc),
    peersSeen: new PeersSeen(() => 'memory'),
    clock: systemClock,
    cluster: { id: 'c', partitions: 2, format: 1 },
    owned: () => owned,
    fleet,
    slices: createSlices(systemClock),
    log: quietLog,
    refusals: quietLog,
    onRefused: (kind, { host }) => void refused.push(`${kind} of ${host}`),
    signJwt: async () => Promise.resolve(''),
  };
  serveHosts(options);
  subscribeHeartbeats(options, '*', (host, beat) => void fleet.takeHeartbeat(host, beat));
  /** Sends every message except a report; returns the answers to the sync. */
  const speak = async (sender: Sender, held: Record<string, [number, number]> = {}): Promise<SyncAnswer[]> => {
    const beat = {
      v: 1,
      ...protocolFields,
      session: 1,
      used: none,
      engine: 'test',
      orphans_held: 0,
      volumes_left: 0,
      faults: [],
      room: {},
    };
    nc.publish(subjects.hostBeat(sender), JSON.stringify(beat));
    const answers: SyncAnswer[] = [];
    const inbox = nc.subscribe('_INBOX.senders.*', { callback: (_, each) => void answers.push(each.json()) });
    nc.publish(subjects.hostSync(sender), JSON.stringify({ v: 1, ...protocolFields, held }), {
      reply: '_INBOX.senders.sync',
    });
    // Messages are handled in order, the hello last.
    const hello = JSON.stringify({ v: 1, ...protocolFields, agent_version: '0', capacity: roomy });
    t.match((await nc.request(subjects.hostHello(sender), hello, { timeout: 10_000 })).json(), { ok: false });
    inbox.unsubscribe();
    return answers;
  };
  const learn = (): void => {
    for (const [partition, { view }] of owned.entries()) {
      const directory = new HostDirectory();
      directory.load(view);
      fleet.learn(directory.whole({ partition, epoch: 1, revision: 1 }));
    }
  };
  return { speak, learn, refused };
}

t.test('actors refuse a sender only once they know which key is enrolled', async (t) => {
  const { speak, learn, refused } = await serving(t);
  const stranger = agentOf(hostKey('h2'));

  t.same(await speak(stranger), [], 'before the owners have sent their hosts');
  t.same(refused, [], 'no sender is refused yet');

  learn();
  t.same(await speak(stranger), []);
  t.same(refused, ['beat of h2', 'sync of h2', 'sync of h2', 'hello of h2'], 'afterwards an unknown host is refused');

  refused.length = 0;
  const held: Record<string, [number, number]> = { 0: [3, 7], 1: [4, 9] };
  for (const sender of [agentOf(damaged), { host: damaged, user: 'UANOTHER' }]) {
    const answers = await speak(sender, held);
    t.match(
      answers,
      [{ partition: 0, same: true, epoch: 3, revision: 7, also: [[1, 4, 9]], containers: [], hold: [] }],
      'a host whose record is damaged keeps what it runs, at its own version',
    );
    t.notOk(
      answers.some(({ fenced }) => fenced),
      'whatever key it uses',
    );
  }
  t.same(await speak(agentOf(damaged), {}), [], 'and learns nothing about what it should run');
  t.same(refused, []);
});
