/** Handling of reports by an owner while the stream EVENTS is away. */
import t from 'tap';
import { directoryEntry } from '../../../../actors/domain/host/decide.ts';
import { recordKey } from '../../../../actors/domain/records.ts';
import { Fleet } from '../../../../actors/endpoints/fleet.ts';
import { takeReport } from '../../../../actors/endpoints/hosts/report.ts';
import type { HostServerOptions } from '../../../../actors/endpoints/hosts/server.ts';
import { encodeValue } from '../../../../actors/runtime/journal/codec.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import { createSlices } from '../../../../lib/time/slices.ts';
import type { ReportAnswer, ReportItem } from '../../../../schemas/wire/host.ts';
import { protocolFields } from '../../../../schemas/wire/version.ts';
import { until } from '../../../support/until.ts';
import { agentOf, containerId, operation, quietLog, specOf, tenantId } from '../../support.ts';
import { createMemoryStore, MemoryBucket, type Told } from '../../support/memory-store.ts';
import { createPartition, writeOf } from '../../support/partition.ts';
import { acme, container, h1, hostRecord, itemOf, observation, placedOn } from '../../support/records.ts';

t.test('events of crashes fill the share of their tenant, and keep nobody else from anything', async (t) => {
  const host = hostRecord(h1, { publicKey: agentOf(h1).user });
  const bolt = tenantId('bolt');
  const crashing = Array.from({ length: 100 }, (_, index) => container({ placement: placedOn(h1) }, `c${index}`));
  const other = container({ placement: placedOn(h1), tenant: bolt }, 'other');
  const bucket = new MemoryBucket();
  for (const record of [host, other, ...crashing]) bucket.set(recordKey(record), encodeValue(record));
  const told: Told[] = [];
  let isAway = true;
  const events = {
    publish: async (some: readonly Told[]) => {
      if (isAway) throw new Error('the stream is away');
      told.push(...some);
      return Promise.resolve();
    },
  };
  const fleet = new Fleet({ clock: systemClock, partitions: 1, hostUnknownMs: 60_000 });
  const entries = [directoryEntry(host)];
  fleet.learn({ partition: 0, epoch: 1, revision: 1, changes: 1, full: true, entries, removed: [], unreadable: [] });
  const partition = createPartition({ store: createMemoryStore(bucket), events, fleet });
  await partition.start();
  t.teardown(() => partition.drop());

  let seq = 10;
  const report = async (...items: readonly ReportItem[]): Promise<ReportAnswer> => {
    const options = {
      ...{ cluster: { id: 'c', partitions: 1, format: 1 }, owned: () => [partition], fleet, clock: systemClock },
      ...{ slices: createSlices(systemClock), log: quietLog, refusals: quietLog, onRefused: () => {} },
    } as unknown as HostServerOptions;
    const numbered = items.map((item) => ({ ...item, seq: ++seq }));
    const message = { v: 1 as const, ...protocolFields, partition: 0, session: host.session, items: numbered };
    return new Promise((resolve) => takeReport(options, agentOf(h1), message, resolve));
  };
  const crashOf = (record: (typeof crashing)[number]): ReportItem =>
    itemOf(record, {
      observation: observation('backoff', { message: 'x'.repeat(3000), restart_count: ++seq, exit_code: 1 }),
    });
  const placeOfOther = 50;
  let lastOfOther = 0;
  const crash = async (): Promise<ReportAnswer> => {
    const items = crashing.map(crashOf);
    const item = crashOf(other);
    lastOfOther = item.observation.restart_count;
    return report(...items.slice(0, placeOfOther), item, ...items.slice(placeOfOther));
  };

  let answer = await crash();
  for (let times = 0; times < 100 && answer.ok; times++) answer = await crash();
  answer = await crash();
  const later = Array.from({ length: crashing.length + 1 }, (_, place) => place).filter((at) => at !== placeOfOther);
  t.match(answer, { ok: false, error: 'unavailable', later });
  const seenOf = ({ tenant, id }: typeof other) =>
    partition.view.tenant(tenant).containers.get(id)?.observed.restart_count;
  t.equal(seenOf(other), lastOfOther);
  const [first] = crashing;
  t.ok((seenOf(first!) ?? 0) < lastOfOther - crashing.length, 'not taken');
  const create = { type: 'container.create', tenant: bolt, id: containerId(), spec: specOf('web') } as const;
  t.equal((await writeOf(partition, { ...create, op: operation(), idempotency: null })).code, 'created');
  t.ok(partition.mayTell(bolt));
  t.notOk(partition.mayTell(acme));

  isAway = false;
  await until('they are taken once the stream is back', async () => (await crash()).ok || undefined);
});
