/**
 * Usage reports of hosts on real servers: the hosts that may send them, and what is kept (ADR 40).
 */
import { randomUUID } from 'node:crypto';
import t from 'tap';
import { createUsageStore } from '../../../actors/usage/store.ts';
import { readLastPages, type ReadMessage } from '../../../lib/nats/direct-reads.ts';
import type { ContainerId, HostKey, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { streams } from '../../../schemas/records/buckets.ts';
import { hourOf, type StoredAmounts, type UsageDay } from '../../../schemas/records/usage.ts';
import type { UsageAnswer, UsageReport } from '../../../schemas/wire/host.ts';
import { partitionOf, subjects, type Sender } from '../../../schemas/wire/subjects.ts';
import { agentOf, containerId, hostKey, operation, specOf, tenantId } from '../../actors/support.ts';
import { until } from '../../support/until.ts';
import { controlPlane, createAsker, enrolHost, ownerOn, startCluster } from './support.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';

t.setTimeout(120_000);
const partitions = 2;
const [acme, other] = [tenantId('acme'), tenantId('other')];
const [h1, h2] = [hostKey('h1'), hostKey('h2')];
const source = 'a'.repeat(32);
const hour = hourOf(Date.now());

t.test('usage of hosts', async (t) => {
  const ground = await startCluster(t, partitions);
  const { nc } = ground;
  const connection = await controlPlane(ground.nats);
  t.teardown(() => connection.close());
  const owner = ownerOn(ground, connection);
  await owner.start();
  t.teardown(() => owner.stop());
  const ask = createAsker(nc, partitions);
  const place = async (tenant: TenantId, host: HostKey): Promise<ContainerId> => {
    const id = containerId();
    const spec = specOf(`c-${id.slice(0, 8)}`, { host_key: host });
    const { code } = await ask({ type: 'container.create', tenant, id, op: operation(), spec, idempotency: null });
    if (code !== 'created') throw new Error(code);
    return id;
  };
  await enrolHost(ask, h1);
  await enrolHost(ask, h2);
  const mine = await place(acme, h1);
  const theirs = await place(other, h2);

  const item = (tenant: TenantId, id: ContainerId, used: StoredAmounts, more = {}) => ({
    tenant,
    id,
    hour,
    part: 0,
    used,
    ...more,
  });
  const send = async (
    sender: Sender,
    items: UsageReport['items'],
    partition = partitionOf(items[0]!.tenant, partitions),
  ) => {
    const message: UsageReport = { v: 1, ...protocolFields, partition, source, items };
    const answer = (await nc.request(subjects.hostUsage(sender), JSON.stringify(message), { timeout: 5_000 })).json<
      UsageAnswer & { memory?: string }
    >();
    const { memory, ...said } = answer;
    t.equal(memory !== undefined, said.ok, 'an owner that answers names its memory');
    return said;
  };
  const stored = async (tenant: TenantId): Promise<ReadMessage[]> => {
    const reading = { stream: streams.usage.name, filter: `usage.${tenant}.>`, timeoutMs: 5_000 };
    const messages: ReadMessage[] = [];
    for await (const page of readLastPages(nc, { ...reading, batchMessages: 2, batchBytes: 100_000 }))
      messages.push(...page);
    return messages;
  };
  const dayOf = ({ data }: ReadMessage): UsageDay => JSON.parse(Buffer.from(data).toString()) as UsageDay;
  const usedBy = async (tenant: TenantId, id: ContainerId) =>
    (await stored(tenant)).flatMap((message) => Object.values(dayOf(message).containers[id] ?? {}));

  await t.test('the sums of a report are in the stream when it is acknowledged', async (t) => {
    await until(
      'the host is known',
      async () => (await send(agentOf(h1), [item(acme, mine, [1, 1, '1'])])).ok || undefined,
    );
    t.match(await send(agentOf(h1), [item(acme, mine, [60_000, 500, '123456789012345678901'])]), {
      ok: true,
      refused: undefined,
    });
    t.same(await usedBy(acme, mine), [[60_000, 500, '123456789012345678901']]);
    t.match(Object.values(dayOf((await stored(acme))[0]!).names), ['c-'.concat(mine.slice(0, 8))]);
  });

  await t.test('one that comes late or twice changes nothing', async (t) => {
    const [before] = await stored(acme);
    await send(agentOf(h1), [item(acme, mine, [50_000, 500, '9'])]);
    await send(agentOf(h1), [item(acme, mine, [60_000, 500, '123456789012345678901'])]);
    t.equal((await stored(acme))[0]?.sequence, before?.sequence);
  });

  await t.test('a host reports only of containers that were placed on it', async (t) => {
    t.same(await send(agentOf(h1), [item(other, theirs, [1, 1, '1'])]), {
      ...protocolFields,
      ok: true,
      refused: [0],
    });
    const unknown = containerId();
    const mixed = [item(acme, unknown, [1, 1, '1']), item(acme, mine, [61_000, 501, '123456789012345678902'])];
    t.match(await send(agentOf(h1), mixed), { ok: true, refused: [0] }, 'the others are taken');
    t.same(await usedBy(other, theirs), []);
    t.same(await usedBy(acme, unknown), []);
    t.same(await usedBy(acme, mine), [[61_000, 501, '123456789012345678902']]);
    const elsewhere =
      partitionOf(other, partitions) === partitionOf(acme, partitions) ? undefined : partitionOf(other, partitions);
    if (elsewhere !== undefined) {
      t.match(
        await send(agentOf(h1), [item(acme, mine, [99_000, 1, '1'])], elsewhere),
        { refused: [0] },
        'another partition',
      );
    }
  });

  await t.test('only the enrolled agent speaks for its host', async (t) => {
    const stranger: Sender = { host: h1, user: 'U'.padEnd(56, 'A') };
    t.match(await send(stranger, [item(acme, mine, [99_000, 1, '1'])]), { ok: false, error: 'unavailable' });
    t.match(await send({ ...stranger, host: hostKey('nobody') }, [item(acme, mine, [99_000, 1, '1'])]), { ok: false });
    t.same(await usedBy(acme, mine), [[61_000, 501, '123456789012345678902']]);
  });

  await t.test('hours to come and hours of long ago can’t be taken now', async (t) => {
    const days = limits.usageAgeMs / 3_600_000;
    for (const wrong of [hour + 3, hour - days - 1]) {
      t.same(await send(agentOf(h1), [item(acme, mine, [99_000, 1, '1'], { hour: wrong })]), {
        ...protocolFields,
        ok: true,
        later: [0],
        outOfTime: [0],
      });
    }
    t.match(await send(agentOf(h1), [item(other, theirs, [1, 1, '1'], { hour: hour + 3 })]), { refused: [0] });
    t.match(await send(agentOf(h1), [item(acme, mine, [-1, 1, '1'])]), { ok: false, error: 'invalid' });
    t.match(await send(agentOf(h1), [item(acme, mine, [1, 1, 'x'])]), { ok: false, error: 'invalid' });
    t.same(await usedBy(acme, mine), [[61_000, 501, '123456789012345678902']]);
  });

  await t.test('of an hour that an owner with a wrong clock has taken, the rest is taken', async (t) => {
    const ahead = hour + 48;
    const day = new Date(ahead * 3_600_000).toISOString().slice(0, 10);
    const subject = subjects.usage({ tenant: acme, day, host: h1, source, part: 0 });
    await createUsageStore(nc).put(subject, [{ id: mine, hour: ahead, used: [5, 0, '0'], name: undefined }]);
    const items = [ahead, ahead + 1].map((wrong) => item(acme, mine, [9, 0, '0'], { hour: wrong }));
    // An hour of the same day, unless it is the last one.
    t.match(await send(agentOf(h1), items), { ok: true, later: [1], outOfTime: [1] });
    t.ok((await usedBy(acme, mine)).some(([runMs]) => runMs === 9));
  });

  await t.test('of two owners that put at once, neither loses what the other has put', async (t) => {
    const subject = subjects.usage({ tenant: tenantId('race'), day: '2026-11-24', host: h1, source, part: 0 });
    const stores = [createUsageStore(nc), createUsageStore(connection)];
    const ids = Array.from({ length: 8 }, () => randomUUID() as ContainerId);
    for (const round of [1, 2]) {
      await Promise.all(
        ids.map(async (id, index) => {
          const put = () => stores[index % 2]!.put(subject, [{ id, hour, used: [round, 0, '0'], name: undefined }]);
          await until('the put', () => put().catch(() => undefined));
        }),
      );
    }
    const [message] = await stored(tenantId('race'));
    t.same(dayOf(message!).containers, Object.fromEntries(ids.map((id) => [id, { [hour % 24]: [2, 0, '0'] }])));
  });
});
