/**
 * Two partitions over stores whose acknowledgements get lost and whose writes land late, the
 * outbox items between them, and requests that stop anywhere. A run that fails names its seed.
 */
import t, { type Test } from 'tap';
import { recordKey } from '../../../actors/domain/records.ts';
import { encodeValue } from '../../../actors/runtime/journal/codec.ts';
import {
  createOutbox,
  reservationTtlMs,
  outboxItemsPerSweep,
  type OutboxOptions,
} from '../../../actors/outbox/outbox.ts';
import type { Partition } from '../../../actors/partition.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { systemClock, type Clock } from '../../../lib/time/clock.ts';
import { createSlices } from '../../../lib/time/slices.ts';
import type { NetworkName, PeerId } from '../../../schemas/ids.ts';
import { addressOf } from '../../../schemas/wire/asks.ts';
import { notOwner } from '../../../schemas/wire/codec.ts';
import type { Reservation } from '../../../schemas/api/network.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import { until } from '../../support/until.ts';
import { operation, quietLog, tenantId } from '../support.ts';
import { MemoryBucket, createMemorySink, createMemoryStore, stormy, type Network } from '../support/memory-store.ts';
import { createPartition, writeOf, type Answered, type LooseWrite } from '../support/partition.ts';
import { createRandom } from '../support/random.ts';
import { home, madeNetwork, madePeer, peerId, peerRecord } from '../support/vpn.ts';

const here = partitionOf(home, 2);
const tenant = tenantId(['a', 'b', 'c'].find((name) => partitionOf(name, 2) !== here) ?? 'a');

async function run(seed: number): Promise<string[]> {
  const random = createRandom(seed);
  let [isCalm, aheadMs] = [false, 0];
  const clock: Clock = {
    nowMs: () => systemClock.nowMs() + aheadMs,
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
  };
  const storm = stormy(random);
  const network: Network = { ...storm, fate: () => (isCalm ? 'done' : storm.fate()) };
  const client: OutboxOptions['client'] = {
    ask: async (_kind, question) => {
      const unanswered = { code: 'timeout', body: '' } as const;
      if (!isCalm && random.once(4)) return unanswered;
      const to = partitionOf(String(addressOf(question)), 2);
      const answer = await writeOf(partitionAt(to), question as LooseWrite, 300).catch(() => unanswered);
      const { code, body } = answer;
      return code === notOwner || (!isCalm && random.once(4)) ? unanswered : { code, body };
    },
    stop: () => {},
  };
  const outbox = createOutbox({ client, partitions: 2, clock, slices: createSlices(systemClock), log: quietLog });
  const partitions = [0, 1].map((number) =>
    createPartition(
      {
        number,
        store: createMemoryStore(new MemoryBucket(), network),
        events: createMemorySink([]),
        onEffects: (partition, effects) => {
          for (const { kind } of effects) if (kind === 'outbox') outbox.look(partition);
        },
      },
      clock,
    ),
  );
  const partitionAt = (number: number): Partition => {
    const partition = partitions[number];
    if (partition === undefined) throw new Error(`partition ${number}`);
    return partition;
  };
  const [allocator, owner] = [partitionAt(here), partitionAt(1 - here)];
  await Promise.all(partitions.map(async (partition) => partition.start()));
  const isSuccess = ({ code }: Answered): boolean => code === 'ok' || code === 'created' || code === 'no_content';
  /** Asks as a gateway does: until there is an answer, under one operation id; or once. */
  async function ask(partition: Partition, write: LooseWrite): Promise<Answered | undefined> {
    for (let attempt = 0; attempt < 40; attempt++) {
      if (!isCalm && random.once(20)) return undefined;
      const answer = await writeOf(partition, write, 200).catch(() => undefined);
      if (answer !== undefined && answer.code !== 'unavailable') return answer;
    }
    return undefined;
  }

  const made = madeNetwork({ ipv4_pool: '10.86.0.0/28' });
  while ((await ask(allocator, { type: 'network.create', network: home, made, op: operation() }))?.code !== 'created');

  const acknowledged = new Set<PeerId>();
  async function request(number: number): Promise<void> {
    const peer = peerId();
    const by = { tenant, peer };
    const reserved = await ask(allocator, { type: 'network.reserve', network: home, by, op: operation() });
    if (reserved === undefined || !isSuccess(reserved) || random.once(5)) return;
    const { index } = (JSON.parse(reserved.body) as { data: Reservation }).data;
    const created = await ask(owner, {
      type: 'peer.create',
      ...by,
      made: madePeer(`p${number}`, index),
      op: operation(),
    });
    if (created === undefined) return;
    if (!isSuccess(created)) {
      await ask(allocator, { type: 'network.release', network: home, by, op: operation() });
      return;
    }
    acknowledged.add(peer);
    if (random.once(2)) {
      await ask(owner, { type: 'peer.update', ...by, update: { enabled: false }, op: operation() });
    }
    if (!random.once(2)) return;
    // Without an answer it is unknown whether it is gone.
    acknowledged.delete(peer);
    await ask(owner, { type: 'peer.remove', ...by, op: operation() });
  }
  await Promise.all(Array.from({ length: 24 }, async (_, number) => request(number)));

  isCalm = true;
  const faults: string[] = [];
  const isAtRest = (): boolean => {
    const known = allocator.view.vpn.network(home);
    const { records } = owner.view.tenant(tenant).peers;
    return [...owner.view.vpn.untold()].length === 0 && known.allocated === records.size;
  };
  for (let round = 0; round < 200 && !isAtRest(); round++) {
    aheadMs += reservationTtlMs;
    for (const partition of partitions) outbox.look(partition);
    await sleep(5);
  }
  const known = allocator.view.vpn.network(home);
  const { records } = owner.view.tenant(tenant).peers;
  if (!isAtRest()) faults.push(`${known.allocated} addresses are allocated to ${records.size} peers`);
  for (const { id, index, enabled } of records.values()) {
    const lease = known.lease(index);
    if (lease?.peer !== id || lease.state.phase !== 'held') faults.push(`address ${index} is not its peer’s`);
    else if (lease.state.enabled !== enabled) faults.push(`lease ${index} is of old`);
  }
  for (const peer of acknowledged) if (!records.has(peer)) faults.push(`${peer} was acknowledged`);
  if (records.size > 10) faults.push('over the cap');
  outbox.stop();
  await Promise.all(partitions.map(async (partition) => partition.release()));
  return faults.map((fault) => `seed ${seed}: ${fault}`);
}

t.test(
  'storms over both stores and all outbox items: what was acknowledged is there, and every address is somebody’s',
  async (t) => {
    for (let seed = 1; seed <= 20; seed++) t.same(await run(seed), [], `seed ${seed}`);
  },
);

/** The peers of each network are put in this order; what is asked first of all is the outcome. */
async function firstAsked(t: Test, peers: readonly (readonly [network: string, count: number])[]): Promise<string[]> {
  const bucket = new MemoryBucket();
  let index = 1;
  for (const [network, count] of peers) {
    for (let number = 0; number < count; number++) {
      const more = { told: 0, network: network as NetworkName, insertedAtMs: ++index };
      const record = peerRecord(more, `p${index}`, index);
      bucket.set(recordKey(record), encodeValue(record));
    }
  }
  const partition = createPartition({ store: createMemoryStore(bucket), events: createMemorySink([]) });
  await partition.start();
  t.teardown(() => partition.release());
  const asked: string[] = [];
  const client: OutboxOptions['client'] = {
    // No answer comes.
    ask: async (_kind, question) => new Promise(() => void asked.push(String(addressOf(question)))),
    stop: () => {},
  };
  const slices = createSlices(systemClock);
  const outbox = createOutbox({ client, partitions: 2, clock: systemClock, slices, log: quietLog });
  outbox.look(partition);
  await until('it asks', () => asked.length > 0);
  return asked;
}

t.test('peers of a network that does not answer hold up no peer of another', async (t) => {
  const many = 3 * outboxItemsPerSweep;
  const names = Array.from({ length: 20 }, (_, number) => `net${number}`);
  const [dead = ''] = names;
  const beside = names.find((name) => name !== dead && partitionOf(name, 2) === partitionOf(dead, 2)) ?? '';
  const elsewhere = names.find((name) => partitionOf(name, 2) !== partitionOf(dead, 2)) ?? '';
  const asked = await firstAsked(t, [
    [dead, many],
    [beside, 1],
    [elsewhere, many],
  ]);
  const count = (network: string): number => asked.filter((name) => name === network).length;
  t.equal(count(beside), 1, 'of the same partition');
  t.equal(count(elsewhere), outboxItemsPerSweep, 'of another partition, which has places of its own');
  t.equal(count(dead), outboxItemsPerSweep - 1);
});
