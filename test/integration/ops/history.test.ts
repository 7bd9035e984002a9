/** Events, audit, usage and log lines come back while the restored cluster serves. */
import { randomUUID } from 'node:crypto';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { joinCluster } from '../../../actors/cluster.ts';
import { backUpCluster } from '../../../ops/backup/cluster.ts';
import { api, streamInfo } from '../../../ops/backup/stream.ts';
import { continueHistory, restoreCluster } from '../../../ops/restore/cluster.ts';
import { clusterSubject, readClusterEntry } from '../../../lib/nats/cluster-record.ts';
import { readStream } from '../../../lib/nats/direct-reads.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import type { EventBody } from '../../../schemas/api/event.ts';
import type { Cluster } from '../../../schemas/records/cluster.ts';
import { containerId, operation, specOf, tenantId } from '../../actors/support.ts';
import { until } from '../../support/until.ts';
import { createAsker, ownerOn, startCluster } from '../actors/support.ts';
import { newFolder, replaceInManifest, startGround } from './backup-ground.ts';

const { nc, put, contentOf, freshCluster, backUp, restore, joinRestored } = await startGround(t);
const history = ['AUDIT', 'EVENTS', 'LOGS', 'USAGE'];
const event = (id: string) => put('event.acme.c', JSON.stringify([{ id }]));

t.test('owners serve before history is back, and what they say comes after it', { timeout: 600_000 }, async (t) => {
  const ground = await startCluster(t, 1);
  const ask = createAsker(ground.nc, 1);
  const ofContainer = { tenant: tenantId('acme'), id: containerId() };
  const published = async (): Promise<string[]> => {
    const reading = { stream: 'EVENTS', filter: 'event.>', from: { seq: 1 }, timeoutMs: 5000 } as const;
    const types: string[] = [];
    for await (const { data } of readStream(ground.nc, { ...reading, batchMessages: 100, batchBytes: 1_000_000 })) {
      types.push(...(JSON.parse(Buffer.from(data).toString()) as EventBody[]).map(({ type }) => type));
    }
    return types;
  };
  const first = ownerOn(ground, ground.nc);
  await first.start();
  const spec = { spec: specOf('web'), idempotency: null };
  t.equal((await ask({ type: 'container.create', op: operation(), ...ofContainer, ...spec })).code, 'created');
  await until('published', async () => (await published()).length > 0);
  await first.stop();
  const folder = newFolder(t);
  await backUpCluster(ground.nc, { folder, withLogs: true, clock: systemClock, onSaved: () => {} });
  const before = await published();

  const whileMissing = async (): Promise<void> => {
    const cluster = await joinCluster(ground.nc, { partitions: 1, replicas: 1, newId: randomUUID });
    t.equal(await streamInfo(ground.nc, 'EVENTS'), undefined, 'nobody creates it');
    const second = ownerOn({ ...ground, cluster }, ground.nc);
    t.teardown(() => second.stop());
    await second.start();
    t.equal((await ask({ type: 'container.stop', op: operation(), ...ofContainer })).code, 'ok', 'it serves');
    const recent = await ask({
      type: 'event.recent',
      tenant: ofContainer.tenant,
      container: null,
      from: { before: null },
      limit: 100,
    });
    t.match(recent.json, { data: { events: [{}] } }, 'and shows its events');
  };
  await restoreCluster(ground.nc, {
    ...{ folder, replace: true, replicas: undefined, clock: systemClock },
    ...{ onChecked: () => {}, onRestored: () => {}, onServable: whileMissing },
  });
  await until('the new ones', async () => (await published()).length > before.length);
  t.same((await published()).slice(0, before.length), before);
});

/** The streams that exist, and whether they take messages and answer readers. */
async function there(): Promise<string[]> {
  const infos = await Promise.all(history.map(async (name) => ({ name, info: await streamInfo(nc, name) })));
  return infos.flatMap(({ name, info }) =>
    info === undefined ? [] : [info.config['allow_direct'] === true ? name : `${name} closed`],
  );
}

/** A cluster whose restore ended after all state, with one stream of the history not whole. */
async function interrupted(t: Test): Promise<{ readonly folder: string; readonly cluster: Cluster }> {
  const folder = newFolder(t);
  await freshCluster();
  let saved = 0;
  const unknown: Promise<number>[] = [];
  await backUp(folder, () => {
    if (saved++ === 0) unknown.push(event('0-9-0'));
  });
  await Promise.all(unknown);
  const restoring = restore(folder, {
    replace: true,
    onRestored: ({ config }) => {
      if (config.name === 'EVENTS') throw new Error('the power went');
    },
  });
  await t.rejects(restoring, { message: 'the power went' });
  return { folder, cluster: await joinRestored() };
}
const more = { replicas: undefined, onChecked: () => {}, onRestored: () => {} };

t.test('history that an interrupted restore left is brought later, once', async (t) => {
  const { folder, cluster } = await interrupted(t);
  t.match(cluster.history, { streams: ['EVENTS', 'AUDIT', 'USAGE', 'LOGS'], lastEntries: [2, 0] });
  t.same(await there(), ['EVENTS closed']);
  await t.rejects(event('0-3-0'), 'what is not whole takes no message');
  await t.rejects(backUp(newFolder(t)), { message: /history of this cluster is not restored yet.*--only-history/ });

  t.match(await continueHistory(nc, { folder, ...more }), { eventsDropped: 1 });
  t.same(await there(), history);
  await event('0-3-0');
  t.same(
    (await contentOf('EVENTS')).map(({ data }) => Buffer.from(data ?? '', 'base64').toString()),
    ['[{"id":"0-1-0"}]', '[{"id":"0-2-0"}]', '[{"id":"0-3-0"}]'],
  );
  const { entry } = await readClusterEntry(nc);
  const { history: _, ...whole } = cluster;
  t.same(entry, whole, 'the same cluster, which no program has to leave');
  await t.rejects(continueHistory(nc, { folder, ...more }), { message: /nothing is to be restored/ });
  await backUp(newFolder(t));
});

t.test('history of another backup is refused', async (t) => {
  const { folder } = await interrupted(t);
  const other = newFolder(t);
  cpSync(folder, other, { recursive: true });
  replaceInManifest(other, /"takenAt": "[^"]+"/, '"takenAt": "2026-01-01T00:00:00.000Z"');
  await t.rejects(continueHistory(nc, { folder: other, ...more }), {
    message: /from the backup of .*: name its folder/,
  });
  t.same(await there(), ['EVENTS closed']);
});

t.test('one that slept while another restore ran brings nothing', async (t) => {
  const { folder } = await interrupted(t);
  const late = continueHistory(nc, {
    folder,
    ...more,
    onRestored: ({ config }) => {
      if (config.name !== 'EVENTS') return;
      // As of another restore of the same backup, which has yet to bring its own history.
      const { subject, entry } = later;
      nc.publish(subject, JSON.stringify(entry));
    },
  });
  const { entry: cluster } = await readClusterEntry(nc);
  const later = { subject: clusterSubject, entry: { ...cluster, incarnation: Date.now() + 1_000_000 } };
  await t.rejects(late, { message: /another restore of this cluster has run since/ });
  t.same(await there(), ['EVENTS closed']);
});

t.test('without history its streams begin empty, even if its files are lost', async (t) => {
  const { folder } = await interrupted(t);
  for (const name of history) rmSync(join(folder, `${name}.snapshot`));
  await t.rejects(continueHistory(nc, { folder, ...more }), { message: /EVENTS.snapshot: ENOENT/ });
  await continueHistory(nc, { folder, ...more, withoutHistory: true });
  t.same(await there(), history);
  t.same(await contentOf('EVENTS'), []);
  await event('0-3-0');
  t.match(await joinRestored(), { history: undefined });
});

t.test('a stream that an older actors process made is left as it is', async (t) => {
  const { folder } = await interrupted(t);
  await api(nc, 'STREAM.DELETE.EVENTS');
  const config = { name: 'EVENTS', subjects: ['event.>'], storage: 'file', num_replicas: 1, allow_direct: true };
  await api(nc, 'STREAM.CREATE.EVENTS', config);
  await event('0-3-0');
  await continueHistory(nc, { folder, ...more });
  t.match(await contentOf('EVENTS'), { length: 1 });
  t.same(await there(), history);
});
