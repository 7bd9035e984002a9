/**
 * Whatever is asked, reported, swept or lost, in any order: the invariants of a partition's state
 * hold after every step, and sweeping comes to rest. Decisions are pure, so a step is a function
 * call; fast-check shrinks what fails.
 */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import t from 'tap';
import { decideWrite } from '../../../actors/domain/decide.ts';
import { leavingOf, otherHostsOf, preparationOf } from '../../../actors/domain/container/moving.ts';
import { desiredOf } from '../../../actors/domain/desired.ts';
import { observe, settle } from '../../../actors/domain/container/observe.ts';
import { membersOf } from '../../../actors/domain/members.ts';
import { Fleet } from '../../../actors/endpoints/fleet.ts';
import { directoryEntry } from '../../../actors/domain/host/decide.ts';
import { PartitionState } from '../../../actors/domain/state.ts';
import { amountsOf, isStored } from '../../../actors/domain/tenant/state.ts';
import { expired, sweep } from '../../../actors/domain/sweep.ts';
import { regionCaps } from '../../../actors/domain/tenant/quota.ts';
import { capsOf } from '../../../schemas/api/tenant.ts';
import { isEmpty, type Changes, type TurnContext } from '../../../actors/domain/turn.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import { quotaDimensions } from '../../../schemas/errors.ts';
import {
  updatePhases,
  type ContainerRecord,
  type ContainerStatus,
  type ObservationOrder,
  type UpdatePhase,
} from '../../../schemas/api/container.ts';
import type { HostRecord } from '../../../schemas/api/host.ts';
import type { ContainerId, HostKey, Region, TenantId } from '../../../schemas/ids.ts';
import type { WriteAsk } from '../../../schemas/wire/asks.ts';
import { digestOfMembers } from '../../../schemas/wire/members.ts';
import { labelOf } from '../../../schemas/tenant-network.ts';
import { basisOf } from '../../../schemas/wire/set-digest.ts';
import { containerId, operation, specOf } from '../support.ts';
import { apply, h1, h2, h3, hostRecord, observation, waitingIn } from '../support/records.ts';

const tenants = ['acme', 'bolt'] as TenantId[];
const hosts = [h1, h2, h3];
const regions = ['default', 'eu'] as Region[];
const regionOf = (host: HostKey): Region => (host === h3 ? 'eu' : 'default') as Region;
const small = { cpu_millis: 300, mem_bytes: 64 * 1024 ** 2, containers: 3 };

type Step =
  | { do: 'create'; tenant: number; name: number; host: number | null; cpu: string; key: number | null }
  | { do: 'start' | 'stop' | 'delete' | 'operate'; which: number }
  | { do: 'update'; which: number; cpu: string; tag: string }
  | {
      do: 'report';
      which: number;
      host: number;
      back: number;
      session: number;
      seq: number;
      status: string;
      update: UpdatePhase | null;
    }
  | { do: 'host'; host: number; to: 'up' | 'lost' | 'removed' | 'cordoned' | 'draining' }
  | {
      do: 'caps';
      tenant: number;
      containers: number | null;
      cpu: number | null;
      eu: number | null;
      regions: number;
    }
  | { do: 'sweep' | 'pass' };

const index = fc.nat({ max: 20 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('create' as const),
      tenant: fc.nat({ max: 1 }),
      name: fc.nat({ max: 5 }),
      host: fc.option(fc.nat({ max: 2 }), { freq: 3 }),
      cpu: fc.constantFrom('0.1', '0.2', '0.5'),
      key: fc.option(fc.nat({ max: 2 }), { freq: 2 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('start' as const, 'stop' as const, 'delete' as const, 'operate' as const),
      which: index,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('update' as const),
      which: index,
      cpu: fc.constantFrom('0.1', '0.2', '0.3', '0.5'),
      tag: fc.constantFrom('1', '2'),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('report' as const),
      which: index,
      host: fc.nat({ max: 2 }),
      back: fc.constantFrom(0, 0, 0, 1, -1),
      session: fc.nat({ max: 3 }),
      seq: fc.nat({ max: 5 }),
      status: fc.constantFrom('running', 'failed', 'stopped', 'backoff', 'lost', 'gone', 'gone', 'rejected'),
      update: fc.option(fc.constantFrom(...updatePhases), { freq: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('host' as const),
      host: fc.nat({ max: 2 }),
      to: fc.constantFrom(
        'up' as const,
        'up' as const,
        'lost' as const,
        'removed' as const,
        'cordoned' as const,
        'draining' as const,
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('caps' as const),
      tenant: fc.nat({ max: 1 }),
      containers: fc.option(fc.nat({ max: 6 })),
      cpu: fc.option(fc.integer({ min: 300, max: 1000 }), { freq: 1 }),
      eu: fc.option(fc.nat({ max: 2 })),
      regions: fc.nat({ max: 2 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('sweep' as const, 'pass' as const) }) },
);

function createWorld() {
  let nowMs = 1_000_000;
  const clock: Clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
  const fleet = new Fleet({ clock, partitions: 1, hostUnknownMs: 10 ** 12 });
  const state = new PartitionState(fleet.placements);
  const entries = new Map<HostKey, HostRecord>(
    hosts.map((key) => [key, hostRecord(key, { region: regionOf(key), capacity: small })]),
  );
  let revision = 0;
  const tell = (): void => {
    fleet.learn({
      partition: 0,
      epoch: 1,
      revision: ++revision,
      changes: revision,
      full: true,
      entries: [...entries.values()].map(directoryEntry),
      removed: [],
      unreadable: [],
    });
  };
  tell();
  const context = (): TurnContext => ({
    cluster: 'c',
    nowMs,
    expiryMs: nowMs,
    servedMs: nowMs,
    fleet,
    requestId: null,
  });
  const all = (): ContainerRecord[] => [...state.tenants()].flatMap(({ containers }) => [...containers.values()]);

  const write = (ask: Record<string, unknown>) => {
    const turn = decideWrite(
      state,
      { rid: 'r', budgetMs: 1, op: operation(), ...ask } as unknown as WriteAsk,
      context(),
      undefined,
    );
    apply(state, turn.changes);
    return turn;
  };

  function sweepAll(): number {
    let changed = 0;
    const silence = { silentMs: () => 0, regionIsSilent: () => false, hostLostMs: 1 };
    const onFault = (_: ContainerRecord, error: unknown): never => {
      throw error;
    };
    for (const changes of sweep(state, { ...context(), ...silence, onFault })) {
      apply(state, changes);
      if (isEmpty(changes)) continue;
      changed++;
      checkCapsOf(changes);
    }
    const old = expired(state, nowMs);
    apply(state, old);
    return changed + old.deletes.length;
  }

  /** Checks that containers just placed in a region are within its caps. */
  function checkCapsOf({ records }: Changes): void {
    for (const record of records) {
      if (record.kind !== 'container' || record.placement.phase !== 'placed') continue;
      const tenant = state.tenant(record.tenant);
      const before = lastRegion.get(record.id);
      if (before === record.placement.region) continue;
      const caps = regionCaps(tenant.record, record.placement.region);
      const usage = tenant.usage(record.placement.region);
      for (const dimension of quotaDimensions) {
        const cap = caps[dimension];
        if (cap !== null && usage[dimension] > cap) throw new Error(`${dimension} of ${record.placement.region} over`);
      }
    }
  }
  const lastRegion = new Map<ContainerId, Region>();

  function take(next: Step): void {
    const which = 'which' in next ? all()[next.which % Math.max(1, all().length)] : undefined;
    switch (next.do) {
      case 'create': {
        const tenant = tenants[next.tenant] as TenantId;
        const idempotency = next.key === null ? null : { key: `k${next.key}`, bodyHash: String(next.name) };
        const host = next.host === null ? null : (hosts[next.host] as HostKey);
        const spec = specOf(`c${next.name}`, { cpu_limit: next.cpu, host_key: host });
        const turn = write({ type: 'container.create', tenant, id: containerId(), spec, idempotency });
        if (isEmpty(turn.changes)) return;
        const { record, usage } = state.tenant(tenant);
        const used = state.tenant(tenant).usage('*');
        for (const dimension of quotaDimensions) {
          const cap = capsOf(record.caps)[dimension];
          if (cap !== null && used[dimension] > cap) throw new Error(`${dimension} over: ${usage.name}`);
        }
        checkCapsOf(turn.changes);
        return;
      }
      case 'start':
      case 'stop':
      case 'delete':
      case 'operate':
        if (which === undefined) return;
        checkCapsOf(
          write({
            type: `container.${next.do}`,
            tenant: which.tenant,
            id: which.id,
            fields: { pull_policy: 'always' },
          }).changes,
        );
        return;
      case 'update': {
        if (which === undefined) return;
        const { tenant, id } = which;
        const view = state.tenant(tenant);
        const before = view.usage('*');
        const patch = { cpu_limit: next.cpu, tag: next.tag };
        const { changes } = write({ type: 'container.update', tenant, id, patch });
        const cap = capsOf(view.record.caps).cpu_millis;
        const { cpu_millis: after } = view.usage('*');
        if (cap !== null && after > cap && after > before.cpu_millis) throw new Error('an update is over the cap');
        checkCapsOf(changes);
        return;
      }
      case 'report': {
        if (which === undefined) return;
        const isGone = next.status === 'gone' || next.status === 'rejected';
        const seen = next.status === 'rejected' ? observation('failed', { reason: 'rejected' }) : undefined;
        const item = {
          tenant: which.tenant,
          id: which.id,
          generation: Math.max(0, which.generation - next.back),
          seq: next.seq,
          gone: isGone,
          ...(next.update === null
            ? {}
            : { update: { since: which.update?.since ?? 0, phase: next.update, reason: null, message: null } }),
          observation: seen ?? observation((isGone ? 'stopped' : next.status) as ContainerStatus),
        };
        const changes = observe(state, hosts[next.host] as HostKey, next.session, item, context());
        apply(state, changes);
        checkCapsOf(changes);
        return;
      }
      case 'host': {
        const key = hosts[next.host] as HostKey;
        if (next.to === 'removed') entries.delete(key);
        else {
          entries.set(
            key,
            hostRecord(key, {
              region: regionOf(key),
              capacity: small,
              lostSinceMs: next.to === 'lost' ? 1 : null,
              cordoned: next.to === 'cordoned' || next.to === 'draining',
              draining: next.to === 'draining',
            }),
          );
        }
        tell();
        return;
      }
      case 'caps':
        write({
          type: 'tenant.put',
          tenant: tenants[next.tenant],
          settings: {
            regions: regions.slice(next.regions % 2, 2),
            caps: { containers: next.containers, cpu_millis: next.cpu },
            region_caps: { eu: { containers: next.eu } },
          },
        });
        return;
      case 'sweep':
        sweepAll();
        return;
      case 'pass':
        nowMs += 200_000;
        return;
    }
  }

  const orders = new Map<ContainerId, ObservationOrder & { readonly wanted: number }>();
  const isBack = (order: ObservationOrder, before: ObservationOrder): boolean =>
    order.generation !== before.generation
      ? order.generation < before.generation
      : order.session !== before.session
        ? order.session < before.session
        : order.seq < before.seq;

  function check(): void {
    const fail = (what: string): never => {
      throw new Error(what);
    };
    const used = new Map<HostKey, { cpu: number; mem: number; containers: number }>();
    for (const tenant of state.tenants()) {
      const names = new Set<string>();
      const sums = new Map<string, [number, number, number]>();
      let lastOrder = '';
      for (const record of tenant.containers.values()) {
        const { cpuMillis, memBytes } = amountsOf(record);
        const { placement } = record;
        for (const region of ['*', ...(placement.phase === 'placed' ? [placement.region] : [])]) {
          const [count, cpu, mem] = sums.get(region) ?? [0, 0, 0];
          sums.set(region, [count + 1, cpu + cpuMillis, mem + memBytes]);
        }
        if (names.has(record.spec.name)) fail(`two named ${record.spec.name}`);
        names.add(record.spec.name);
        if (tenant.names.get(record.spec.name) !== record.id) fail(`the name ${record.spec.name} is not its own`);
        const order = `${String(record.insertedAtMs).padStart(15, '0')} ${record.id}`;
        if (order <= lastOrder) fail('the list is out of order');
        lastOrder = order;

        const before = orders.get(record.id);
        if (before !== undefined && isBack(record.observedOrder, before)) fail('an observation went back');
        if (before !== undefined && record.generation < before.wanted) fail('the generation went back');
        orders.set(record.id, { ...record.observedOrder, wanted: record.generation });

        const desiredOn = hosts.flatMap((host) =>
          [...desiredOf(state.wantedOn(host), host)]
            .filter(({ id }) => id === record.id)
            .map((one) => ({ host, ...one })),
        );
        const placedAt = placement.phase === 'placed' ? [placement.host] : [];
        const expected = [...new Set([...placedAt, ...otherHostsOf(record)])].sort().join();
        const told = desiredOn.map(({ host }) => host).join();
        if (told !== expected) fail(`desired on ${told}, placed on ${expected}`);
        const running = desiredOn.filter(({ desired }) => desired === 'running').map(({ host }) => host);
        if (running.length > 1) fail(`to run on ${running.join()}`);
        if (leavingOf(record) !== undefined && running.length > 0) fail('starts before it has stopped elsewhere');
        const preparing = preparationOf(record);
        if (preparing !== undefined) {
          const sum = used.get(preparing.host) ?? { cpu: 0, mem: 0, containers: 0 };
          used.set(preparing.host, {
            cpu: sum.cpu + cpuMillis,
            mem: sum.mem + memBytes,
            containers: sum.containers + 1,
          });
        }
        if (placement.phase === 'placed') {
          lastRegion.set(record.id, placement.region);
          const sum = used.get(placement.host) ?? { cpu: 0, mem: 0, containers: 0 };
          used.set(placement.host, {
            cpu: sum.cpu + cpuMillis,
            mem: sum.mem + memBytes,
            containers: sum.containers + 1,
          });
        } else lastRegion.delete(record.id);
        if (tenant.tombstones.has(record.id)) fail('alive and gone');
        const isUnderWay = record.update?.phase === 'preparing' || record.update?.phase === 'verifying';
        if (isUnderWay !== (record.update?.previous !== undefined)) fail('an update that cannot go back');
        if (isUnderWay && record.desired !== 'running') fail('an update of what is not to run');
      }
      if (!isStored(tenant) && tenant.secrets.floor === 0) fail('a tenant of which nothing is stored');
      if (names.size !== tenant.names.size) fail('a name is held by nobody');
      for (const region of ['*', ...regions]) {
        const [containers, cpu, mem] = sums.get(region) ?? [0, 0, 0];
        const usage = tenant.usage(region);
        if (usage.containers !== containers || usage.cpu_millis !== cpu || usage.mem_bytes !== mem) {
          fail(`usage of ${region}: ${JSON.stringify(usage)}`);
        }
      }
      const members = [...membersOf(tenant)];
      const summary = state.memberSummaryOf(tenant.tenant);
      if (summary.digest !== digestOfMembers(basisOf(0), members)) fail('the digest of the members');
      const labels = members.flatMap((member) => ('host' in member ? (labelOf(member.name) ?? []) : []));
      const shown = [...tenant.memberNames.after('')].flatMap(({ kind, name }) => (kind === 'name' ? name : []));
      if (shown.join() !== [...new Set(labels)].sort().join()) fail('the names of the members');
      const hostsOfMembers = new Set(members.flatMap((member) => ('host' in member ? (member.host ?? []) : [])));
      if (!isDeepStrictEqual(new Set(summary.hosts), hostsOfMembers)) fail('the hosts of the members');
      for (const [key, id] of tenant.idempotency) {
        const holder = tenant.containers.get(id) ?? tenant.tombstones.get(id);
        if (holder?.idempotency?.key !== key) fail(`the key ${key} is held by ${id}`);
      }
    }
    for (const host of hosts) {
      const sum = used.get(host) ?? { cpu: 0, mem: 0, containers: 0 };
      const told = fleet.host(host)?.used;
      if (told === undefined) continue;
      if (told.cpu_millis !== sum.cpu || told.mem_bytes !== sum.mem || told.containers !== sum.containers) {
        fail(`the ledger of ${host}: ${JSON.stringify(told)}`);
      }
    }
    const waiting = all().filter(
      ({ placement, desired }) => placement.phase === 'unplaced' && desired === 'running',
    ).length;
    if (waitingIn(state) !== waiting) fail('what waits for a host');
  }

  /** A look at each container finds nothing that the looks of sweeps have missed. */
  function checkRest(): void {
    for (const record of all()) {
      if (!isEmpty(settle(state, record, context()))) throw new Error(`${record.spec.name} is not settled`);
    }
  }

  return { take, check, checkRest, sweepAll, all };
}

t.test('any order of asks, reports, sweeps and losses keeps the invariants, and comes to rest', (t) => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 80, size: 'max' }), (steps) => {
      const world = createWorld();
      for (const next of steps) {
        world.take(next);
        world.check();
      }
      const bound = world.all().length + 2;
      let sweeps = 0;
      while (world.sweepAll() > 0) {
        world.check();
        if (++sweeps > bound) throw new Error('sweeping does not come to rest');
      }
      world.checkRest();
    }),
    { numRuns: 1000 },
  );
  t.pass('1000 walks');
  t.end();
});
