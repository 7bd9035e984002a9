/** A store that went back in time under an owner that has all of it in memory. */
import t from 'tap';
import type { JournalsOptions } from '../../../actors/runtime/journal/journals.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import type { MemberId } from '../../../schemas/ids.ts';
import { until } from '../../support/until.ts';
import { containerId, endless, operation, specOf, tenantId } from '../support.ts';
import { memoryJournals } from '../support/journals.ts';
import { createMemorySink, createMemoryStore, MemoryBucket } from '../support/memory-store.ts';
import { createPartition, readOf, writeOf } from '../support/partition.ts';

const tenant = tenantId('acme');

/** A bucket and journals, and the processes that have the partition one after the other. */
function ground() {
  const bucket = new MemoryBucket();
  const journals = new Map<MemberId, MemoryBucket>();
  let members = 0;
  const start = async () => {
    const owner: { rewrite?: () => void } = {};
    const more: Partial<JournalsOptions> = { onWentBack: () => owner.rewrite?.() };
    const partition = createPartition({
      store: createMemoryStore(bucket),
      events: createMemorySink([]),
      journals: memoryJournals(journals, more),
      lease: { ...endless, member: `member-${++members}` as MemberId },
    });
    owner.rewrite = () => partition.rewrite();
    await partition.start();
    return partition;
  };
  return { bucket, journals, start };
}

type Owner = Awaited<ReturnType<ReturnType<typeof ground>['start']>>;

const create = async (partition: Owner, name: string): Promise<string> => {
  const ask = { type: 'container.create', tenant, id: containerId(), spec: specOf(name), idempotency: null } as const;
  const { code } = await writeOf(partition, { ...ask, op: operation() });
  return code;
};

const namesOf = async (partition: Owner): Promise<string[]> => {
  const { body } = await readOf(partition, { type: 'container.list', tenant, limit: 100, before: null });
  return (JSON.parse(body) as { data: { name: string }[] }).data.map(({ name }) => name).sort();
};

for (const what of ['bucket and journal', 'bucket', 'journal'] as const) {
  t.test(`a store that went back: ${what}`, async (t) => {
    const { bucket, journals, start } = ground();
    const first = await start();
    for (const name of ['a1', 'a2']) t.equal(await create(first, name), 'created');
    const id = [...first.view.tenant(tenant).containers.keys()][0]!;
    await first.checkpointed();
    const back = [
      ...(what === 'journal' ? [] : [bucket.snapshot()]),
      ...(what === 'bucket' ? [] : [...journals.values()].map((journal) => journal.snapshot())),
    ];
    for (const name of ['b1', 'b2', 'b3']) t.equal(await create(first, name), 'created');
    await first.checkpointed();
    t.equal((await writeOf(first, { type: 'container.delete', tenant, id, op: operation() })).code, 'accepted');
    if (what !== 'journal') await first.checkpointed();
    for (const restore of back) restore();

    await until('it takes writes', async () => (await create(first, 'c1')) === 'created' || (await sleep(20), false));
    await first.checkpointed();
    await until(
      'it is written again',
      async () => (await create(first, 'd1')) === 'created' || (await sleep(20), false),
    );
    const names = await namesOf(first);
    t.same(names, ['a2', 'b1', 'b2', 'b3', 'c1', 'd1']);
    await first.checkpointed();
    first.drop();

    const next = await start();
    t.teardown(() => next.drop());
    t.ok(next.isServing, 'the next owner loads it');
    t.same(await namesOf(next), names);
  });
}
