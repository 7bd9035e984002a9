/** Restores on a real NATS server. */
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { NatsConnection } from '@nats-io/transport-node';
import { jetstreamManager } from '@nats-io/jetstream';
import t from 'tap';
import { joinCluster } from '../../../actors/cluster.ts';
import { encodeValue } from '../../../actors/runtime/journal/codec.ts';
import { backUpCluster } from '../../../ops/backup/cluster.ts';
import { savedStreams } from '../../../ops/backup/folder.ts';
import { api, streamInfo } from '../../../ops/backup/stream.ts';
import { restoreCluster } from '../../../ops/restore/cluster.ts';
import { missingBytes, requireFastDisk } from '../../../ops/restore/possible.ts';
import { startNatsCluster } from '../../../dev/servers/nats-cluster.ts';
import { compareAndSet } from '../../../lib/nats/kv-keys.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { bucketStream, buckets, journalBuckets, keys } from '../../../schemas/records/buckets.ts';
import { announcedEpoch, restoredCluster, type Cluster } from '../../../schemas/records/cluster.ts';
import { subjects } from '../../../schemas/wire/subjects.ts';
import { connectTo } from '../../e2e/support/programs.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { controlPlane } from '../actors/support.ts';
import {
  checkpointed,
  newFolder,
  partitions,
  replaceInManifest,
  startGround,
  stateKey,
  type Stored,
} from './backup-ground.ts';

const { nats, nc, put, contentOf, destroy, freshCluster, backUp, restore, joinRestored } = await startGround(t);
const dayMs = 24 * 3600 * 1000;

const journals = Array.from({ length: journalBuckets }, (_, number) => buckets.journal.bucket(number));

t.test('a cluster is restored to an empty server, twice', async (t) => {
  const folder = newFolder(t);
  const cluster = await freshCluster();
  const before = await contentOf('KV_state-0');
  const manifest = await backUp(folder);
  t.same(
    savedStreams(manifest).map(({ config }) => config.name),
    [...journals.map(bucketStream), 'KV_state-0', 'KV_state-1', 'EVENTS', 'AUDIT', 'USAGE', 'LOGS'],
  );
  t.same(readdirSync(folder).sort(), [
    'AUDIT.snapshot',
    'EVENTS.snapshot',
    ...journals.map((bucket) => `${bucketStream(bucket)}.snapshot`),
    'KV_state-0.snapshot',
    'KV_state-1.snapshot',
    'LOGS.snapshot',
    'USAGE.snapshot',
    'manifest.json',
    'manifest.sha256',
  ]);
  await destroy();
  const first = await restore(folder);
  t.match(await joinRestored(), { id: cluster.id, partitions });
  t.match(first.partitions, [
    { kind: 'loads', lastEntry: 2 },
    { kind: 'loads', lastEntry: 0 },
  ]);
  const after = await contentOf('KV_state-0');
  const isEpoch = ({ subject }: Stored): boolean => subject === stateKey(0, keys.epoch);
  t.same(
    after.filter((message) => !isEpoch(message)),
    before.filter((message) => !isEpoch(message)),
  );
  const epochs = [before, after].map((content) => content.find(isEpoch));
  t.equal(epochs[1]?.data, epochs[0]?.data, 'the epoch record still names the former owner');
  t.ok((epochs[1]?.seq ?? 0) > (before.at(-1)?.seq ?? 0), 'the former owner is fenced off');

  await destroy();
  const second = await restore(folder);
  t.ok((second.cluster.incarnation ?? 0) > (first.cluster.incarnation ?? 0), 'a later incarnation');
});

t.test('announced epochs rise, in whatever order backups are restored', (t) => {
  const fresh: Cluster = { id: 'c', partitions: 1, format: 1, incarnation: 0 };
  const atMs = Date.parse('2026-06-01');
  const announced: number[] = [announcedEpoch(fresh, 0, 5_000_000_000)];
  const late = restoredCluster(fresh, undefined, [4_000_000_000], atMs);
  announced.push(announcedEpoch(late, 0, 4_000_000_001), announcedEpoch(late, 0, 4_000_900_000));
  // Ten seconds later, an older backup that does not know of the restore before.
  const early = restoredCluster(fresh, undefined, [17], atMs + 10_000);
  announced.push(announcedEpoch(early, 0, 18));
  // A backup of the result, restored on a machine whose clock is a day behind.
  const behind = restoredCluster(early, undefined, [17], atMs - dayMs);
  announced.push(announcedEpoch(behind, 0, 18));
  // The same after the cluster has made many revisions.
  announced.push(announcedEpoch(behind, 0, 5_000_000));
  const later = restoredCluster(behind, undefined, [5_000_000], atMs - dayMs);
  announced.push(announcedEpoch(later, 0, 5_000_001));
  t.same(
    announced,
    [...announced].sort((left, right) => left - right),
  );
  t.equal(new Set(announced).size, announced.length);
  const last = restoredCluster(fresh, undefined, [0], Date.parse('2100-01-01'));
  t.ok(Number.isSafeInteger(announcedEpoch(last, 0, 2 ** 46)));
  t.end();
});

t.test('a restore deletes events and lines that no restored partition knows', async (t) => {
  const folder = newFolder(t);
  await freshCluster();
  let saved = 0;
  // Published after the first partition is saved and before the events are.
  const published: Promise<number>[] = [];
  await backUp(folder, () => {
    if (saved++ > 0) return;
    published.push(put('event.acme.c', JSON.stringify([{ id: '0-3-0' }, { id: '0-3-1' }])));
    published.push(put('event.acme.c', JSON.stringify([{ id: '0-2-0' }])));
    published.push(put('audit.tenant.acme', JSON.stringify([{ id: '0-2-0' }])));
    published.push(put('audit.tenant.acme', JSON.stringify([{ id: '0-2-1' }, { id: '0-3-0' }])));
  });
  await Promise.all(published);
  await destroy();
  t.match(await restore(folder), { eventsDropped: 1, linesDropped: 1 });
  const ids = async (stream: string): Promise<string[]> =>
    (await contentOf(stream)).map(({ data }) => Buffer.from(data ?? '', 'base64').toString());
  t.same(await ids('AUDIT'), ['[{"id":"0-2-0"}]']);
  t.same(await ids('EVENTS'), ['[{"id":"0-1-0"}]', '[{"id":"0-2-0"}]', '[{"id":"0-2-0"}]']);
});

t.test('a restore replaces an existing cluster only with --replace', async (t) => {
  const folder = newFolder(t);
  await freshCluster();
  await backUp(folder);
  await put(stateKey(1, 'tenant.later'), 'made after the backup');
  const before = await contentOf('KV_state-1');
  await t.rejects(restore(folder), { message: /KV_cluster.*KV_state-0.*--replace/ });
  t.same(await contentOf('KV_state-1'), before);
  await restore(folder, { replace: true });
  t.same(await contentOf('KV_state-1'), []);
  t.match(await joinRestored(), { partitions });
});

t.test('a restore deletes partitions that the restored cluster does not have', async (t) => {
  const folder = newFolder(t);
  await freshCluster();
  await backUp(folder);
  await destroy();
  await joinCluster(nc, { partitions: 4, replicas: 1, newId: randomUUID });
  await t.rejects(restore(folder, { replace: true }), { message: /the backup is of cluster .*--other-cluster/ });
  t.not(await streamInfo(nc, 'KV_state-3'), undefined, 'another cluster is left as it is');
  await restore(folder, { replace: true, otherCluster: true });
  t.equal(await streamInfo(nc, 'KV_state-3'), undefined);
});

t.test('a backup that the servers cannot take is refused before anything is deleted', async (t) => {
  const folder = newFolder(t);
  const cluster = await freshCluster();
  await backUp(folder);
  const before = await contentOf('KV_state-0');
  await t.rejects(restore(folder, { replace: true, replicas: 3 }), {
    message: /can't keep 3 replicas.*nothing was changed.*--replicas 1/,
  });
  replaceInManifest(folder, /"max_bytes": \d+/, `"max_bytes": ${2 ** 52}`);
  await t.rejects(restore(folder, { replace: true }), { message: /lack storage.*restart nats-server/ });
  t.same(await contentOf('KV_state-0'), before);
  t.match(await joinRestored(), { id: cluster.id }, 'and the cluster serves on');
});

t.test('each server needs room for what it gets, beside what it loses', (t) => {
  const gib = 2 ** 30;
  const backedUp = [3, 5].map((size) => ({
    config: { name: 'EVENTS', num_replicas: 3, max_bytes: size * gib },
    state: { messages: 1, bytes: 1, first_seq: 1, last_seq: 1 },
  }));
  const [one, other] = backedUp as [(typeof backedUp)[0], (typeof backedUp)[0]];
  const on = (...[leader, ...replicas]: string[]) => ({
    leader: leader!,
    replicas: replicas.map((name) => ({ name })),
  });
  const missing = (replicas: number, ...servers: readonly string[][]): number => {
    const present = [one, other].map((stream, index) => ({ ...stream, cluster: on(...(servers[index] ?? [])) }));
    return missingBytes(backedUp, servers.length === 0 ? [] : present, replicas) / gib;
  };
  t.equal(missing(3), 8, 'there was nothing');
  t.equal(missing(3, ['a', 'b', 'c'], ['b', 'a', 'c']), 0, 'the same again');
  t.equal(missing(3, ['a'], ['a']), 8, 'all was on one server, and the others get it too');
  t.equal(missing(3, ['a'], ['b']), 8);
  t.equal(missing(3, ['a', 'b', 'c'], ['b']), 5);
  t.equal(missing(1, ['a', 'b', 'c'], ['b', 'a', 'c']), 0);
  t.equal(missing(1, ['a'], ['b']), 0, 'spread over two, as before');
  t.equal(missingBytes(backedUp, [one], 1) / gib, 5, 'a server that is not clustered');
  t.end();
});

t.test('streams that a killed restore made to ask the servers are removed', async (t) => {
  const folder = newFolder(t);
  await freshCluster();
  await backUp(folder);
  const left = 'longshore-restore-00000000-0000-4000-8000-000000000000';
  await api(nc, `STREAM.CREATE.${left}`, {
    name: left,
    subjects: [`longshore.restore.probe.${left}`],
    storage: 'file',
  });
  await restore(folder, { replace: true });
  const { streams } = await api<{ streams: string[] }>(nc, 'STREAM.NAMES');
  t.same(
    streams.filter((name) => name.startsWith('longshore-restore-')),
    [],
  );
});

t.test('a disk that is too slow is refused, too', (t) => {
  const config = { name: 'EVENTS', num_replicas: 1 };
  const state = { messages: 50_000, bytes: 50_000 * 350, first_seq: 1, last_seq: 50_000 };
  t.doesNotThrow(() => requireFastDisk([{ config, state }], 0.2));
  t.throws(() => requireFastDisk([{ config, state }], 6.7), {
    message:
      /takes 6.7 ms to store a message: it would give up restoring EVENTS; nothing was changed: start .* without/,
  });
  t.doesNotThrow(() => requireFastDisk([{ config, state: { ...state, messages: 100, bytes: 35_000 } }], 6.7));
  t.end();
});

t.test('a restore is refused while an actors process runs', async (t) => {
  const folder = newFolder(t);
  await freshCluster();
  await backUp(folder);
  const before = await contentOf('KV_state-0');

  t.test('seen by its subscription', async (t) => {
    const other = await controlPlane(nats);
    t.teardown(() => other.close());
    other.subscribe(subjects.directoryRefresh, { callback: () => {} });
    await other.flush();
    await t.rejects(restore(folder, { replace: true }), { message: /an actors process is running/ });
  });

  t.test('seen by the renewals of its lease', async (t) => {
    const renewing = setInterval(() => nc.publish(`$KV.${buckets.members.bucket}.member.m`, 'live'), 250);
    t.teardown(() => clearInterval(renewing));
    await t.rejects(restore(folder, { replace: true }), { message: /renews its lease/ });
  });

  t.same(await contentOf('KV_state-0'), before);
});

t.test('a damaged backup is refused before the restore changes anything', async (t) => {
  const damage: Record<string, { readonly how: (folder: string) => void; readonly message: RegExp }> = {
    'a truncated file': {
      how: (folder) => truncateSync(join(folder, 'KV_state-0.snapshot'), 100),
      message: /KV_state-0.snapshot has 100 bytes/,
    },
    'a flipped bit': {
      how: (folder) => {
        const path = join(folder, 'EVENTS.snapshot');
        const bytes = readFileSync(path);
        bytes[20] = (bytes[20] ?? 0) ^ 1;
        writeFileSync(path, bytes);
      },
      message: /EVENTS.snapshot is damaged/,
    },
    'a manifest of a later format': {
      how: (folder) => replaceInManifest(folder, '"format": 2', '"format": 3'),
      message: /has format 3; this release reads format 2: restore it with the release that made it/,
    },
    'a manifest of the format of release 0.1.0': {
      how: (folder) => replaceInManifest(folder, '"format": 2', '"format": 1'),
      message: /has format 1; this release reads format 2: restore it with the release that made it/,
    },
    'a backup of a cluster that release 0.1.0 made': {
      how: (folder) => replaceInManifest(folder, /,\s*"journals": true/, ''),
      message: /^release 0\.1\.0 or an older one made this cluster, and this release reads clusters that 0\.2\.0 made/,
    },
    'a manifest that names a file outside the folder': {
      how: (folder) => replaceInManifest(folder, '"LOGS.snapshot"', '"../LOGS.snapshot"'),
      message: /manifest.json can't be read/,
    },
    'an empty manifest': {
      how: (folder) => truncateSync(join(folder, 'manifest.json'), 0),
      message: /manifest.json can't be read/,
    },
  };
  for (const [what, { how, message }] of Object.entries(damage)) {
    const folder = newFolder(t);
    await freshCluster();
    await backUp(folder);
    how(folder);
    await t.rejects(restore(folder, { replace: true }), { message }, what);
    t.match(await contentOf('KV_state-0'), { length: 5 }, what);
  }
});

t.test('an interrupted restore is run again', async (t) => {
  const folder = newFolder(t);
  await freshCluster();
  await backUp(folder);
  await destroy();
  let restored = 0;
  const breaking = restore(folder, {
    onRestored: () => {
      if (++restored === 2) throw new Error('the power went');
    },
  });
  await t.rejects(breaking, { message: 'the power went' });
  await t.rejects(joinRestored(), { message: /is being restored/ }, 'no program serves a half-restored cluster');
  await t.rejects(backUp(newFolder(t)), { message: /this cluster is being restored/ });
  await restore(folder);
  t.match(await joinRestored(), { partitions });
  t.match(await contentOf('KV_state-0'), { length: 5 });
});

/** The connection of a restore, which sleeps where the test says, as a suspended process does. */
function sleepy(connection: NatsConnection, sleepsAt: (subject: string) => 'before' | 'after' | undefined) {
  let wake: () => void = () => {};
  const woken = new Promise<void>((resolve) => (wake = resolve));
  let fall: () => void = () => {};
  const asleep = new Promise<void>((resolve) => (fall = resolve));
  let isAsleep = false;
  const request: NatsConnection['request'] = async (subject, ...rest) => {
    const when = isAsleep ? 'before' : sleepsAt(subject);
    const answer = when === 'after' ? await connection.request(subject, ...rest) : undefined;
    if (when !== undefined) {
      isAsleep = true;
      fall();
      await woken;
    }
    return answer ?? connection.request(subject, ...rest);
  };
  const nc = new Proxy(connection, {
    get: (target, name) => {
      if (name === 'request') return request;
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
  const restWoken = (): void => {
    isAsleep = false;
    sleepsAt = () => undefined;
    wake();
  };
  return { nc, asleep, wake: restWoken };
}

t.test('a restore that slept while another one ran deletes nothing', async (t) => {
  const markRead = `$JS.API.STREAM.MSG.GET.${bucketStream(buckets.cluster.bucket)}`;
  let deleted = 0;
  const between = (subject: string): 'before' | undefined => {
    if (subject.startsWith('$JS.API.STREAM.DELETE.KV_') && ++deleted > 3) throw new Error('not reached');
    return deleted === 3 && subject.startsWith('$JS.API.STREAM.INFO.') ? 'before' : undefined;
  };
  let reads = 0;
  // The mark was still its own when it fell asleep, and the answer was there.
  const afterRead = (subject: string): 'after' | undefined =>
    subject === markRead && deleted === 0 && ++reads === 4 ? 'after' : undefined;
  for (const [where, sleepsAt] of [
    ['between two deletions', between],
    ['with the answer about its mark', afterRead],
  ] as const) {
    await t.test(where, async (t) => {
      deleted = 0;
      reads = 0;
      const folder = newFolder(t);
      await freshCluster();
      await backUp(folder);
      const other = await controlPlane(nats);
      t.teardown(() => other.close());
      const slept = sleepy(other, sleepsAt);
      const options = { folder, replace: true, replicas: undefined, clock: systemClock };
      const calls = { onChecked: () => {}, onRestored: () => {} };
      const first = restoreCluster(slept.nc, { ...options, ...calls }).then(
        () => 'it went on',
        (error: unknown) => error,
      );
      await slept.asleep;
      const restored = await restore(folder, { replace: true });
      await put(stateKey(1, 'tenant.later'), 'acknowledged after the restore');
      const jsm = await jetstreamManager(nc);
      const created = async (): Promise<string[]> => {
        const found: string[] = [];
        for await (const { config, created } of jsm.streams.list()) found.push(`${config.name} ${created}`);
        return found.sort();
      };
      const before = await created();
      slept.wake();
      t.match(await first, { message: /another restore|stood still|created while/ });
      t.same(await created(), before);
      t.match(await joinRestored(), { id: restored.cluster.id });
      t.match(await contentOf('KV_state-1'), [{ subject: stateKey(1, 'tenant.later') }]);
    });
  }
});

t.test('one of two concurrent restores is refused', async (t) => {
  const folder = newFolder(t);
  await freshCluster();
  await backUp(folder);
  await destroy();
  let secondEnds: Promise<unknown> = Promise.resolve();
  const isSlow = new Promise<void>((resolve) => {
    secondEnds = restore(folder, {
      onChecked: () => resolve(),
    }).catch((error: unknown) => error);
  });
  const first = restore(folder).catch((error: unknown) => error);
  await isSlow;
  const outcomes = await Promise.all([first, secondEnds]);
  const refused = outcomes.filter((outcome) => outcome instanceof Error);
  t.equal(refused.length, 1, String(refused));
  t.match(await joinRestored(), { partitions });
});

t.test('a cluster of three servers is restored with three replicas, and with one', async (t) => {
  const folder = newFolder(t);
  const three = await startNatsCluster({ dir: temporaryFolder(t) });
  t.teardown(() => three.stop());
  const cp = await connectTo(three);
  t.teardown(() => cp.close());
  const cluster = await joinCluster(cp, { partitions, replicas: 3, newId: randomUUID });
  const epoch = encodeValue({ token: 'a', owner: 'former', takenAtMs: 1 });
  await compareAndSet(cp, stateKey(1, keys.epoch), epoch, 0, { timeoutMs: 5_000 });
  for (const [key, value] of checkpointed(1)) await compareAndSet(cp, stateKey(1, key), value, 0, { timeoutMs: 5_000 });
  const options = { folder, withLogs: true, replace: true, clock: systemClock, onSaved: () => {} };
  await backUpCluster(cp, options);
  for (const replicas of [undefined, 1]) {
    const restored = await restoreCluster(cp, { ...options, replicas, onChecked: () => {}, onRestored: () => {} });
    t.equal(restored.cluster.id, cluster.id);
    t.match(restored.partitions, [{}, { kind: 'loads', lastEntry: 1 }]);
    const info = await streamInfo(cp, 'KV_state-1');
    t.match(info, { config: { num_replicas: replicas ?? 3 }, cluster: { leader: String } });
    t.equal(info?.cluster?.replicas?.length ?? 0, (replicas ?? 3) - 1, 'what room is reckoned by');
  }
});
