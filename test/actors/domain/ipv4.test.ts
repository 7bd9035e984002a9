/** The IPv4 addresses that a partition gives to containers. */
import t from 'tap';
import { create, type Creation } from '../../../actors/domain/container/create.ts';
import { leaveTombstone } from '../../../actors/domain/container/transitions.ts';
import { containerStatusView } from '../../../actors/domain/container/view.ts';
import { PartitionState } from '../../../actors/domain/state.ts';
import type { TurnContext } from '../../../actors/domain/turn.ts';
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import { limits } from '../../../schemas/limits.ts';
import { ipv4RangeIn, ipv4SliceOf, type Ipv4Slice } from '../../../schemas/tenant-network.ts';
import { containerId, specOf } from '../support.ts';
import { acme, apply, contextOf, fleetHost, fleetOf, h1, noLedger } from '../support/records.ts';

const firstOf = (text: string): number => Number(ipv4RangeIn(text)?.base);
const slice = (count: number): Ipv4Slice => ({ first: firstOf('10.193.0.0/16'), count });

const head = { rid: 'r', budgetMs: 1000, op: 'o' as Creation['op'] };

function start(given: Ipv4Slice | undefined) {
  const state = new PartitionState(noLedger);
  let nowMs = 1_000_000;
  let aheadMs = 0;
  const context = (): TurnContext => ({
    ...contextOf(fleetOf(fleetHost(h1)), nowMs),
    nowMs: nowMs + aheadMs,
    tenantIpv4: given && { range: '10.193.0.0/16', sliceOf: () => given },
  });
  const make = (): ContainerRecord => {
    const id = containerId();
    const turn = create(state, { ...head, tenant: acme, id, spec: specOf(id), idempotency: null }, context());
    apply(state, turn.changes);
    const record = state.tenant(acme).containers.get(id);
    if (record === undefined) throw new Error('it was not made');
    return record;
  };
  const remove = (record: ContainerRecord): void => apply(state, leaveTombstone(record, context()));
  const leap = (ms: number) => void (aheadMs += ms);
  return { state, context, make, remove, leap, pass: (ms: number) => void (nowMs += ms) };
}

t.test('each container has another address, for its life', async (t) => {
  const { state, make } = start(slice(4));
  const made = [make(), make(), make()];
  t.same(
    made.map(({ ipv4 }) => ipv4),
    ['10.193.0.0', '10.193.0.1', '10.193.0.2'],
  );
  const again = new PartitionState(noLedger);
  for (const record of state.tenant(acme).containers.values()) again.put(record);
  t.equal(again.nextIpv4(slice(4), 0), '10.193.0.3', 'and after a takeover too');
});

t.test('without a free address a container is made without one', async (t) => {
  const { context, make } = start(slice(1));
  make();
  const late = make();
  t.equal(late.ipv4, null);
  t.match(containerStatusView(late, context(), { upSinceMs: 0 }).network, { ipv4: null, reason: 'not_attached' });
  const attached = { ...late, observed: { ...late.observed, network: { state: 'ready' as const, message: null } } };
  t.match(containerStatusView(attached, context(), { upSinceMs: 0 }).network, {
    ipv4: null,
    state: 'ready',
    reason: 'no_ipv4',
  });
});

t.test('an address that was given back rests, also after a takeover', async (t) => {
  const { state, make, remove, pass } = start(slice(2));
  const [first, second] = [make(), make()];
  remove(first);
  t.equal(make().ipv4, null);
  const again = new PartitionState(noLedger);
  for (const record of state.tenant(acme).containers.values()) again.put(record);
  for (const tombstone of state.tombstones()) again.put(tombstone);
  t.equal(again.nextIpv4(slice(2), 1_000_000), undefined);
  pass(limits.ipv4RestMs);
  t.equal(make().ipv4, first.ipv4);
  t.equal(second.ipv4, '10.193.0.1');
});

t.test('a wall clock that is days ahead gives away no address that rests', async (t) => {
  const { make, remove, leap, pass } = start(slice(1));
  const first = make();
  remove(first);
  leap(10 * limits.ipv4RestMs);
  t.equal(make().ipv4, null);
  pass(limits.ipv4RestMs);
  t.equal(make().ipv4, first.ipv4);
});

t.test('a tombstone that ends takes no address from the container that has it now', async (t) => {
  const { state, make, remove, pass } = start(slice(1));
  const first = make();
  remove(first);
  pass(limits.ipv4RestMs);
  t.equal(make().ipv4, first.ipv4);
  state.delete(`tombstone.${acme}.${first.id}`);
  t.equal(make().ipv4, null);
});

t.test('without a range there is none', async (t) => {
  const { context, make } = start(undefined);
  const record = make();
  t.equal(record.ipv4, undefined);
  t.match(containerStatusView(record, context(), { upSinceMs: 0 }).network, { ipv4: null, reason: 'not_attached' });
});

t.test(
  'partitions have parts of the range that do not overlap, without its first and its last addresses',
  async (t) => {
    for (const [text, partitions] of [
      ['10.193.0.0/16', 256],
      ['10.193.0.0/16', 7],
      ['10.0.0.0/8', 16],
      ['10.193.0.0/16', 1],
    ] as const) {
      const range = ipv4RangeIn(text);
      if (range === undefined) throw new Error(text);
      const slices = Array.from({ length: partitions }, (_, at) => ipv4SliceOf(range, at, partitions));
      let next = Number(range.base) + 64;
      for (const { first, count } of slices) {
        if (first < next || count < 100) t.fail(`${text} of ${partitions}: ${first} ${count}`);
        next = first + count;
      }
      t.ok(next <= Number(range.base) + 2 ** (32 - range.prefix) - 1, `${text} of ${partitions}`);
    }
  },
);

t.test('ranges that are refused', async (t) => {
  for (const text of ['10.0.0.0/7', '10.193.0.0/17', '10.193.0.1/16', 'fd00::/16', 'off', ''])
    t.equal(ipv4RangeIn(text), undefined, text);
});
