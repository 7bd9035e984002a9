/**
 * The cost of an owner's work by the number of records: work of the clock and of requests, with
 * 100,000 containers in one partition, and the cost of those who watch them. Without NATS.
 */
import { decideRead } from '../actors/domain/decide.ts';
import { directoryEntry } from '../actors/domain/host/decide.ts';
import { PartitionState } from '../actors/domain/state.ts';
import { expired, expiredOfVpn, sweep, type SweepContext } from '../actors/domain/sweep.ts';
import { Fleet } from '../actors/endpoints/fleet.ts';
import { outboxLines } from '../actors/outbox/outbox.ts';
import type { StateRead } from '../actors/runtime/domain.ts';
import { limits } from '../schemas/limits.ts';
import { hostKey, specOf, tenantId } from '../test/actors/support.ts';
import { container, contextOf, hostRecord, none, placedOn, unplaced } from '../test/actors/support/records.ts';
import { secretRecord, uses } from '../test/actors/support/secrets.ts';
import type { Section, Table } from './section.ts';
import { figure, median } from './statistics.ts';
import { watchTable } from './watch.ts';

interface Shape {
  readonly name: string;
  readonly tenants: number;
  /** Containers wait, as no host has room; otherwise they run on hosts. */
  readonly isWaiting: boolean;
}

const oneTenant: Shape = { name: 'one tenant, all run', tenants: 1, isWaiting: false };
const shapes: readonly Shape[] = [
  { name: '1,000 tenants, all run', tenants: 1_000, isWaiting: false },
  oneTenant,
  { name: '1,000 tenants, all wait for a host', tenants: 1_000, isWaiting: true },
];

const nowMs = 1_000_000;
const hostCount = 1_000;

/**
 * A partition, a tenant in it and a container in the middle of its list. All containers use one
 * secret.
 */
function worldOf({ tenants, isWaiting }: Shape, containers: number) {
  const hosts = Array.from({ length: hostCount }, (_, index) => hostKey(`h${index}`));
  const records = hosts.map((key) => hostRecord(key, isWaiting ? { capacity: none } : {}));
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
  const fleet = new Fleet({ clock, partitions: 1, hostUnknownMs: limits.hostLostMs });
  fleet.learn({
    partition: 0,
    epoch: 1,
    revision: 1,
    changes: 1,
    full: true,
    entries: records.map(directoryEntry),
    removed: [],
    unreadable: [],
  });
  const state = new PartitionState(fleet.placements);
  for (const record of records) state.put(record);
  for (let tenant = 0; tenant < tenants; tenant++) {
    for (const version of [1, 2]) state.put({ ...secretRecord('db', version), tenant: tenantId(`t${tenant}`) });
  }
  for (let index = 0; index < containers; index++) {
    const placement = isWaiting ? unplaced : placedOn(hosts[index % hostCount]!);
    const tenant = tenantId(`t${index % tenants}`);
    const isOut = state.tenant(tenant).members >= limits.networkMembers;
    const spec = specOf(`c${index}`, isOut ? { leftOut: true } : {});
    state.put(container({ tenant, placement, spec, insertedAtMs: index, secrets: uses('db', 2) }));
  }
  const context: SweepContext = {
    ...contextOf(fleet, nowMs),
    silentMs: () => 0,
    regionIsSilent: () => false,
    hostLostMs: limits.hostLostMs,
    onFault: (_, error) => {
      throw error;
    },
  };
  const tenant = tenantId('t0');
  const all = [...state.tenant(tenant).containers.values()];
  const one = all[Math.floor(all.length / 2)];
  if (one === undefined) throw new Error('the tenant has no containers');
  return { state, context, tenant, one };
}

type World = ReturnType<typeof worldOf>;

interface Work {
  readonly name: string;
  readonly when: string;
  /** Its steps; the caller runs long work in slices of them. */
  readonly steps: (world: World) => Iterable<unknown>;
}

type Read = StateRead extends infer A ? (A extends StateRead ? Omit<A, 'rid' | 'budgetMs'> : never) : never;

const request = (name: string, ask: (world: World) => Read): Work => ({
  name,
  when: 'request',
  *steps(world) {
    yield decideRead(world.state, { ...ask(world), rid: 'r', budgetMs: 1_000 }, world.context);
  },
});

const works: readonly Work[] = [
  { name: 'sweep', when: '1 s', steps: ({ state, context }) => sweep(state, context) },
  { name: 'news for other partitions', when: '1 s', steps: ({ state }) => outboxLines(state, nowMs) },
  {
    name: 'what has expired',
    when: '1 s',
    *steps({ state }) {
      yield [expired(state, nowMs), expiredOfVpn(state, nowMs)];
    },
  },
  {
    name: 'one member of the network changes, and its tenant’s digest',
    when: 'change',
    *steps({ state, tenant, one }) {
      const spec = { ...one.spec, aliases: one.spec.aliases === undefined ? ['a'] : [] };
      state.put({ ...one, spec });
      yield state.memberSummaryOf(tenant);
      state.put(one);
      yield state.memberSummaryOf(tenant);
    },
  },
  request('one container', ({ tenant, one }) => ({ type: 'container.get', tenant, id: one.id })),
  request('100 containers, newest', ({ tenant }) => ({ type: 'container.list', tenant, limit: 100, before: null })),
  request('100 containers, in the middle', ({ tenant, one: { insertedAtMs, id } }) => {
    return { type: 'container.list', tenant, limit: 100, before: { insertedAtMs, id } };
  }),
  request('overview of 100', ({ tenant }) => ({ type: 'container.overview', tenant, limit: 100, before: null })),
  request('one host of those of the tenant', ({ tenant }) => ({ type: 'tenant.hosts', tenant, limit: 1, after: '' })),
  request('secrets', ({ tenant }) => ({ type: 'secret.list', tenant })),
  request('the first 100 names in the network', ({ tenant }) => ({
    type: 'tenant.names',
    tenant,
    limit: 100,
    after: '',
  })),
];

/** @returns milliseconds of the whole, and of the longest step */
function timed(steps: Iterable<unknown>): { readonly wholeMs: number; readonly longestMs: number } {
  const startMs = performance.now();
  let [lastMs, longestMs] = [startMs, 0];
  for (const _ of steps) {
    const atMs = performance.now();
    longestMs = Math.max(longestMs, atMs - lastMs);
    lastMs = atMs;
  }
  return { wholeMs: lastMs - startMs, longestMs };
}

function measured(world: World, { steps }: Work, runs: number): string {
  // Code is slow until it is compiled.
  for (let run = 0; run < runs; run++) timed(steps(world));
  const all = Array.from({ length: runs }, () => timed(steps(world)));
  const [whole, longest] = [median(all.map(({ wholeMs }) => wholeMs)), median(all.map(({ longestMs }) => longestMs))];
  return longest > whole / 2 ? figure(whole) : `${figure(whole)} (${figure(longest)})`;
}

export const work: Section = {
  name: 'work',
  run: async ({ isShort }) => {
    const [containers, runs] = isShort ? [2_000, 3] : [100_000, 21];
    const columns = shapes.map((shape) => {
      const world = worldOf(shape, containers);
      return works.map((one) => measured(world, one, runs));
    });
    const table: Table = {
      title: `An owner’s work with ${containers.toLocaleString('en')} containers, milliseconds`,
      columns: ['', 'when', ...shapes.map(({ name }) => name)],
      rows: works.map(({ name, when }, at) => [name, when, ...columns.map((cells) => cells[at] ?? '–')]),
      remarks: [
        `Median of ${runs} runs with warm code; in brackets the longest step, where the work has several: it runs in slices of steps.`,
        `${hostCount.toLocaleString('en')} hosts; each container uses the newest of two values of a secret. Nothing is due but what the column says. ${limits.networkMembers.toLocaleString('en')} containers of a tenant are in its network.`,
      ],
    };
    return { tables: [table, await watchTable(worldOf(oneTenant, containers), containers, runs)] };
  },
};
