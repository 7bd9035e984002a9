/** Events that wait in the bucket for the stream EVENTS when a backup is made, on a real server. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import t from 'tap';
import { joinCluster } from '../../../actors/cluster.ts';
import { createJetStreamStore } from '../../../actors/runtime/store/jetstream-store.ts';
import { backUpCluster } from '../../../ops/backup/cluster.ts';
import { api, streamInfo } from '../../../ops/backup/stream.ts';
import { restoreCluster } from '../../../ops/restore/cluster.ts';
import { readStream } from '../../../lib/nats/direct-reads.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { buckets, streams } from '../../../schemas/records/buckets.ts';
import type { EventBody } from '../../../schemas/api/event.ts';
import { authorsHeader, type EventAuthors } from '../../../schemas/records/event-authors.ts';
import { containerId, operation, specOf, tenantId } from '../../actors/support.ts';
import { createAsker, ownerOn, startCluster } from '../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { replaceInManifest } from './backup-ground.ts';
import { until } from '../../support/until.ts';

const { name: eventStream, subjects: eventSubjects } = streams.events;

t.test('events parked at the backup are published once after the restore', { timeout: 600_000 }, async (t) => {
  const ground = await startCluster(t, 1);
  const { nc } = ground;
  const ask = createAsker(nc, 1);
  const tenant = tenantId('acme');
  const id = containerId();
  const listenOn = async (subjects: readonly string[]): Promise<void> => {
    const info = await streamInfo(nc, eventStream);
    await api(nc, `STREAM.UPDATE.${eventStream}`, { ...info?.config, subjects });
  };
  const parked = async (): Promise<number> => {
    const store = createJetStreamStore(nc, buckets.state.bucket(0), randomUUID);
    const { revision } = await store.readEpoch();
    return (await store.load(revision)).filter(({ key, value }) => key.startsWith('events.') && value !== null).length;
  };
  /** The events in the stream, and who caused them. */
  const published = async () => {
    const reading = { stream: eventStream, filter: 'event.>', from: { seq: 1 }, timeoutMs: 5000 } as const;
    const events: EventBody[] = [];
    const authors: EventAuthors = [];
    for await (const { data, head } of readStream(nc, { ...reading, batchMessages: 100, batchBytes: 1_000_000 })) {
      events.push(...(JSON.parse(Buffer.from(data).toString()) as EventBody[]));
      authors.push(...(JSON.parse(head.get(authorsHeader) || '[]') as EventAuthors));
    }
    return { events, authors };
  };
  const by = { tenant, subject: 'Zoë 日本', token: 'k', address: '203.0.113.7' };
  const cause = { by, action: 'test', target: {} };

  const first = ownerOn(ground, nc);
  await first.start();
  // No stream listens on the subjects of events, so the owner must park them.
  await listenOn(['nothing.>']);
  const ofContainer = { tenant, id, cause };
  const created = await ask({
    type: 'container.create',
    op: operation(),
    spec: specOf('web'),
    idempotency: null,
    ...ofContainer,
  });
  t.equal(created.code, 'created');
  for (const type of ['container.stop', 'container.start', 'container.stop'] as const)
    t.equal((await ask({ type, op: operation(), ...ofContainer })).code, 'ok');
  await until('parked', async () => (await parked()) > 0);
  t.same((await published()).events, []);
  const recent = await ask({ type: 'event.recent', tenant, container: null, from: { before: null }, limit: 100 });
  const expected = (recent.json as { data: { events: EventBody[] } }).data.events.map(({ id }) => id);
  t.ok(expected.length >= 4, `${expected.length} events wait`);

  const folder = join(temporaryFolder(t), 'backup');
  await backUpCluster(nc, { folder, withLogs: true, clock: systemClock, onSaved: () => {} });
  await first.stop();
  // As where the stream refuses events for another reason: a restore takes no other subjects.
  replaceInManifest(folder, 'nothing.>', eventSubjects.join());
  const options = { folder, replace: true, replicas: undefined, clock: systemClock };
  await restoreCluster(nc, { ...options, onChecked: () => {}, onRestored: () => {} });
  t.ok((await parked()) > 0, 'the bucket is restored with them');
  await listenOn(eventSubjects);
  const cluster = await joinCluster(nc, { partitions: 1, replicas: 1, newId: randomUUID });
  const second = ownerOn({ ...ground, cluster }, nc);
  t.teardown(() => second.stop());
  await second.start();
  await until('published', async () => (await parked()) === 0);
  const { events, authors } = await published();
  t.same(events.map(({ id }) => id).sort(), [...expected].sort(), 'each event is published once');
  const told = authors.flatMap(([count, author]) => Array.from({ length: count }, () => author));
  t.same(
    told,
    expected.map(() => by),
    'with who caused it',
  );
});
