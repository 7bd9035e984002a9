/**
 * A cluster of the last release is taken over as that release left it, also after a kill in the
 * middle of its writes, and is given back when the only actors process goes back.
 */
import { join } from 'node:path';
import t from 'tap';
import { startNats } from '../../dev/servers/nats.ts';
import { startRedis } from '../../dev/servers/redis.ts';
import { readLast } from '../../lib/nats/direct-reads.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { streams } from '../../schemas/records/buckets.ts';
import { decodeAnswers, encodeAsks } from '../../schemas/wire/codec.ts';
import { authorsHeader } from '../../schemas/records/event-authors.ts';
import { partitionOf, subjects } from '../../schemas/wire/subjects.ts';
import { anyAnswer, clientFor } from '../e2e/support/client.ts';
import { eventually } from '../e2e/support/eventually.ts';
import { connectTo, startPrograms, thisRelease } from '../e2e/support/programs.ts';
import { containerId, specOf } from '../actors/support.ts';
import { temporaryFolder } from '../support/folder.ts';
import { unpackLastRelease } from './last-release.ts';

const tenants = ['take-a', 'take-b', 'take-c', 'take-d'];
const body = { registry: 'registry.test', repository: 'demo', cpu_limit: '0.1', mem_limit: '16m' };

t.test('no acknowledged create is lost between the layouts of two releases', { timeout: 300_000 }, async (t) => {
  const lastRelease = await unpackLastRelease();
  const folder = temporaryFolder(t, 'longshore-takeover-');
  const nats = await startNats({ dir: join(folder, 'nats') });
  t.teardown(() => nats.stop());
  const redis = await startRedis({ folder: join(folder, 'redis') });
  t.teardown(() => redis.stop());
  const copies = { actors: 1, gateways: 1 };
  const settings = { actors: {}, gateway: { ...redis.settings } };
  const access = { ...nats, urls: [nats.url] };
  const { issuer, actors, gateways } = await startPrograms(t, folder, access, settings, copies, lastRelease);
  const { baseUrl } = gateways[0]!;
  const { program } = actors[0]!;
  const operator = await clientFor(baseUrl, issuer, 'ops', 'operator', anyAnswer);
  for (const tenant of tenants) {
    await operator.call('PUT', `/api/v2/operator/tenants/${tenant}`, {
      caps: { containers: 100_000, cpu_millis: null, mem_bytes: null },
    });
  }
  const clients = await Promise.all(tenants.map((tenant) => clientFor(baseUrl, issuer, tenant, undefined, anyAnswer)));
  let made = 0;
  const kept = new Map(tenants.map((tenant) => [tenant, new Set<string>()]));

  /** Creates in all tenants until the actors process ends in its own way. */
  const createUntil = async (end: () => Promise<void>): Promise<void> => {
    let isOver = false;
    const working = clients.map(async (client, index) => {
      while (!isOver) {
        const { status, body: created } = await client.create({ ...body, name: `c${made++}` });
        if (status === 201) kept.get(tenants[index]!)!.add(created.data.id);
      }
    });
    const count = (): number => [...kept.values()].reduce((sum, ids) => sum + ids.size, 0);
    const before = count();
    await eventually(
      'some creates are acknowledged',
      async () => Promise.resolve(count()),
      (after) => after >= before + 40,
    );
    await end();
    isOver = true;
    await Promise.all(working);
  };
  const missing = async (): Promise<string[]> => {
    const lost: string[] = [];
    for (const [index, client] of clients.entries()) {
      for (const id of kept.get(tenants[index]!)!) {
        const { status } = await eventually(
          'the owner answers',
          async () => client.call('GET', `/api/v2/compute/${id}`),
          ({ status }) => status === 200 || status === 404,
        );
        if (status !== 200) lost.push(id);
      }
    }
    return lost;
  };

  const nc = await connectTo(access);
  t.teardown(() => nc.close());
  const askOwner = async (ask: object) => {
    const line = JSON.stringify({ ...ask, tenant: tenants[0], rid: 'r', budgetMs: 30_000 });
    // 16 is the default of PARTITIONS.
    const subject = subjects.partition(partitionOf(tenants[0]!, 16));
    const message = await nc.request(subject, encodeAsks([line]), { timeout: 30_000 });
    return decodeAnswers(message.string())[0];
  };

  await createUntil(() => program.kill9());
  await program.start(thisRelease);
  t.same(await missing(), [], 'what the killed process of the last release acknowledged');
  const put = { type: 'secret.put', name: 'db', version: 1, sealed: 'v1.k1.wrapped.data', op: 'operation-put-secret' };
  t.match(await askOwner(put), { code: 'ok' }, 'a kind of record that the last release does not know');
  const by = { tenant: 'ops', subject: 'Zoë', token: 'k', address: '203.0.113.7' };
  const cause = { by, action: 'container.create', target: {} };
  const id = containerId();
  const create = { type: 'container.create', id, spec: specOf('with-author'), idempotency: null, cause };
  t.match(await askOwner({ ...create, op: 'operation-with-author' }), { code: 'created' });
  /** Through a gateway of the last release, which refuses unknown fields in events. */
  const isTold = async (): Promise<void> => {
    const { status, text } = await clients[0]!.call('GET', `/api/v2/compute/${id}/events`);
    t.equal(status, 200);
    t.match(text, '"type":"created"');
    t.notMatch(text, by.address);
  };
  const isPublished = async (): Promise<boolean> => {
    const filter = subjects.event(tenants[0] as TenantId, id);
    const reading = { stream: streams.events.name, filter, timeoutMs: 5000 };
    return ((await readLast(nc, reading))?.head.get(authorsHeader) ?? '') !== '';
  };
  await isTold();
  await eventually('its message says who caused it', isPublished, (published) => published);
  await isTold();
  await createUntil(() => program.kill9());
  await program.start(thisRelease);
  t.same(await missing(), [], 'what the killed process of this release acknowledged');
  const last = { ...create, id: containerId(), spec: specOf('with-author-too') };
  await createUntil(async () => {
    t.match(await askOwner({ ...last, op: 'operation-with-author-too' }), { code: 'created' });
    await program.stop();
  });
  await program.start(lastRelease);
  t.same(await missing(), [], 'all of it, under the last release');
  await isTold();
  const { text } = await clients[0]!.call('GET', `/api/v2/compute/${last.id}/events`);
  t.match(text, '"type":"created"', 'that release has taken over the event and leaves its author alone');
  t.notMatch(text, by.address);
  await createUntil(() => program.kill9());
  await program.start(lastRelease);
  t.same(await missing(), [], 'and after a kill');
  await program.stop();
  await program.start(thisRelease);
  t.same(await missing(), [], 'and back again');
  t.match(await askOwner({ type: 'secret.list' }), { body: /"name":"db","version":1/ }, 'with what it had left alone');
});
