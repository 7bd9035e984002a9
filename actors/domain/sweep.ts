/**
 * Changes that time alone makes in a partition: containers wait for a host or must leave one, hosts
 * fall silent, jobs that have ended are removed, tombstones and revocations expire.
 * Level-triggered: it looks at one of each kind that may be due, and takes no input but the clock.
 * Pure.
 */
import { keys } from '../../schemas/records/buckets.ts';
import type { ContainerRecord, TombstoneRecord } from '../../schemas/api/container.ts';
import type { ContainerId, HostKey, TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { removal } from './container/decide.ts';
import { removedFromMs } from './container/endings.ts';
import { settle } from './container/observe.ts';
import { silence } from './container/silence.ts';
import { withProof } from './container/updates.ts';
import { lossOf } from './container/view.ts';
import { observeSilence } from './host/decide.ts';
import { tryAgain } from './secret/logins.ts';
import { rollSecrets } from './secret/roll.ts';
import type { PartitionView } from './state.ts';
import { inTurns, type Waiting } from './tenant/turns.ts';
import { noChanges, type Alike, type Changes, type Departure, type TurnContext } from './turn.ts';

/** Records that a sweep visits in one step (lib/time/slices.ts). */
export const sweepStepRecords = 64;

export interface SweepContext extends TurnContext {
  /**
   * Milliseconds for which a host is silent, counted from no earlier than when this process began
   * to listen for it.
   */
  readonly silentMs: (host: HostKey) => number;
  readonly regionIsSilent: (host: HostKey) => boolean;
  readonly hostLostMs: number;
  readonly fenceMarginMs?: number;
  /** `true` if this tenant may get more events: see `Partition.mayTell`. The others wait. */
  readonly mayTell?: (tenant: TenantId) => boolean;
  /** A decision about one container threw (our bug); the others are still decided. */
  readonly onFault: (record: ContainerRecord, error: unknown) => void;
}

/**
 * Each yielded change is decided on the state that the one before it made, so the caller applies
 * them one by one. Turns of others may come in between: each record is read when it is its turn.
 */
export function* sweep(state: PartitionView, context: SweepContext): Generator<Changes, void, void> {
  for (const { key } of [...state.hosts()]) {
    const record = state.host(key);
    if (record === undefined) continue;
    yield observeSilence(record, { ...context, regionIsSilent: () => context.regionIsSilent(record.key) });
  }
  yield* tellSilence(state, context);
  yield* tellLoss(state, context);
  yield* rollSecrets(state, context, context.onFault);
  yield* tryAgain(state, context);
  yield* settleAll(state, state.waitingForHost(), context);
  yield* proveUpdates(state, context);
  yield* removeEndedJobs(state, context);
  yield* noteDepartures(state, context);
  yield* settleAll(state, state.leavers(), context);
}

/** Settles one of each kind first: if it finds no room, or stays, so do all that are alike. */
const settleAll = (
  state: PartitionView,
  waiting: Waiting<Alike>,
  context: SweepContext,
): Generator<Changes, void, void> => inTurns(waiting, (alike) => settling(state, alike, context), limits.sweepChanges);

function* settling(state: PartitionView, alike: Alike, context: SweepContext): Generator<Changes, void, void> {
  if (context.mayTell?.(alike.tenant) === false) return;
  for (const record of alike.containers.values()) {
    let changes: Changes;
    try {
      changes = settle(state, record, context);
    } catch (error) {
      context.onFault(record, error);
      continue;
    }
    yield changes;
    if (changes === noChanges) return;
  }
}

/**
 * Events of the containers of hosts that fell silent or are heard again. Records note each event,
 * so each change makes one, in whichever process owns the partition then.
 */
function* tellSilence(state: PartitionView, context: SweepContext): Generator<Changes, void, void> {
  let budget: number = limits.sweepChanges;
  let passed = 0;
  for (const host of [...state.hostsWithContainers()]) {
    const condition = context.fleet.condition(host);
    const told = state.toldSilent(host);
    const placed = state.placedOn(host);
    const isSilent = condition === 'silent' && told < placed.size;
    if (!isSilent && (condition !== 'up' || told === 0)) continue;
    // Those that were told go behind the others.
    for (const record of placed.values()) {
      const isTold = (record.silentOn === host) === isSilent;
      if (isTold || context.mayTell?.(record.tenant) === false) {
        if (++passed % sweepStepRecords === 0) yield noChanges;
        continue;
      }
      yield silence(record, isSilent ? host : undefined, context);
      if (--budget === 0) return;
    }
  }
}

/** A host that is lost, or back, changes how its containers are shown, and no record. */
function* tellLoss(state: PartitionView, context: SweepContext): Generator<Changes, void, void> {
  for (const host of [...state.hostsWithContainers()]) {
    const loss = lossOf(context.fleet.condition(host));
    if (loss === state.shownLoss(host)) continue;
    const effects = Array.from(
      state.placedOn(host).values(),
      ({ tenant, id }) => ({ kind: 'changed', tenant, id }) as const,
    );
    yield { ...noChanges, heard: { host, loss }, effects };
  }
}

/** Stores that versions have been up for long enough. */
export function* proveUpdates(state: PartitionView, context: TurnContext): Generator<Changes, void, void> {
  let budget: number = limits.sweepChanges;
  let passed = 0;
  for (const record of state.beingProved()) {
    const proved = withProof(record, state.inMemory(record.id).upSinceMs, context);
    if (proved !== record) {
      const changed = { kind: 'changed', tenant: record.tenant, id: record.id } as const;
      yield { ...noChanges, records: [proved], effects: [changed] };
      if (--budget === 0) return;
    } else if (++passed % sweepStepRecords === 0) {
      yield noChanges;
    }
  }
}

/** Removes jobs whose policy says so, once their time after the end is over. */
function* removeEndedJobs(state: PartitionView, context: TurnContext): Generator<Changes, void, void> {
  const isDue = (record: ContainerRecord): boolean => (removedFromMs(record) ?? Infinity) <= context.expiryMs;
  const due: ContainerRecord[] = [];
  for (const { record, dueMs } of state.endedJobs()) {
    if (dueMs > context.expiryMs || due.length === limits.sweepChanges) break;
    due.push(record);
  }
  for (const { tenant, id } of due) {
    // Turns of others come in between.
    const record = state.tenant(tenant).containers.get(id);
    if (record !== undefined && isDue(record)) yield removal(record, context).changes;
  }
}

function departureFrom(host: HostKey, { fleet }: TurnContext): Departure['why'] | undefined {
  const condition = fleet.condition(host);
  if (condition === 'lost' || condition === 'removed') return 'lost';
  return fleet.host(host)?.draining === true ? 'drained' : undefined;
}

/**
 * Hosts that are lost, gone or drained, or are so no more. All containers of such a host are noted
 * once; then its memory notes what becomes of each.
 */
function* noteDepartures(state: PartitionView, context: SweepContext): Generator<Changes, void, void> {
  let looked = 0;
  for (const host of state.hostsWithContainers()) {
    if (++looked % sweepStepRecords === 0) yield noChanges;
    const why = departureFrom(host, context);
    const known = state.departureFrom(host);
    if (known?.why === why && known?.isWhole !== false) continue;
    if (why !== undefined) yield* notingAll(state, host, why);
    else yield { ...noChanges, heard: { host, departure: undefined } };
  }
}

function* notingAll(state: PartitionView, host: HostKey, why: Departure['why']): Generator<Changes, void, void> {
  let of: ContainerRecord[] = [];
  let isFirst = true;
  for (const record of state.wantedOn(host)) {
    of.push(record);
    if (of.length < sweepStepRecords) continue;
    yield { ...noChanges, heard: { host, departure: { why, of, isFirst, isLast: false } } };
    of = [];
    isFirst = false;
  }
  yield { ...noChanges, heard: { host, departure: { why, of, isFirst, isLast: true } } };
}

/**
 * The tombstones that have expired; they are in the order in which they were made. If a partition
 * has more than `most`, also the oldest of the tenant that has the most, which then can't read the
 * logs and events of these containers any more. No other tenant's tombstones end early, and none
 * before an `Idempotency-Key` that it may hold.
 */
export function expired(
  state: PartitionView,
  nowMs: number,
  most: number = limits.goneContainersPerPartition,
): Changes {
  const deletes: string[] = [];
  const forget = (tombstones: Iterable<TombstoneRecord>, ttlMs: number, upTo: number): void => {
    for (const { tenant, id, goneAtMs } of tombstones) {
      if (goneAtMs + ttlMs > nowMs || deletes.length >= upTo) break;
      deletes.push(keys.container(tenant, id));
    }
  };
  forget(state.tombstones(), limits.tombstoneTtlMs, limits.sweepChanges);
  const excess = state.tombstoneCount - most;
  if (deletes.length === 0 && excess > 0) {
    forget(mostTombstones(state).values(), limits.idempotencyTtlMs, Math.min(excess, limits.sweepChanges));
  }
  return deletes.length === 0 ? noChanges : { ...noChanges, deletes };
}

function mostTombstones(state: PartitionView): ReadonlyMap<ContainerId, TombstoneRecord> {
  let largest: ReadonlyMap<ContainerId, TombstoneRecord> = new Map();
  for (const { tombstones } of state.tenants()) if (tombstones.size > largest.size) largest = tombstones;
  return largest;
}

/** Keys whose credentials have all expired. `ttlMs`: the validity of credentials. */
export function expiredKeys(state: PartitionView, nowMs: number, ttlMs: number): Changes {
  const deletes: string[] = [];
  for (const { publicKey, atMs } of state.revokedKeys().values()) {
    if (deletes.length >= limits.sweepChanges) break;
    if (atMs + ttlMs < nowMs) deletes.push(keys.revokedKey(publicKey));
  }
  return deletes.length === 0 ? noChanges : { ...noChanges, deletes };
}

/**
 * Peers that are gone and of which every network knows, and revocations that have outlived their
 * certificates.
 */
export function expiredOfVpn(state: PartitionView, nowMs: number): Changes {
  const deletes: string[] = [];
  const isFull = (): boolean => deletes.length >= limits.sweepChanges;
  for (const { tenant, id } of state.vpn.outlived(nowMs).slice(0, limits.sweepChanges)) {
    deletes.push(keys.peer(tenant, id));
  }
  for (const network of state.vpn.networks()) {
    if (isFull()) break;
    const room = limits.sweepChanges - deletes.length;
    for (const serial of network.outlived(nowMs).slice(0, room)) deletes.push(keys.revoked(network.name, serial));
  }
  return deletes.length === 0 ? noChanges : { ...noChanges, deletes };
}
