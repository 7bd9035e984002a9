/**
 * What time alone changes in a partition: containers wait for a host or must leave one, hosts fall silent, tombstones and
 * revocations expire. Level-triggered: it looks at all that may want something and takes no input but the clock. Pure.
 */
import { keys } from '../schemas/buckets.ts';
import type { HostKey } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import { settle } from './container/observe.ts';
import { observeSilence } from './host/decide.ts';
import type { PartitionView } from './state.ts';
import { noChanges, type Changes, type TurnContext } from './turn.ts';

export interface SweepContext extends TurnContext {
  /** How long a host is silent, counted from no earlier than when this process began to listen for it. */
  readonly silentMs: (host: HostKey) => number;
  readonly regionIsSilent: (host: HostKey) => boolean;
  readonly hostLostMs: number;
}

/** Each yielded change is decided on the state that the one before it made, so the caller applies them one by one. */
export function* sweep(state: PartitionView, context: SweepContext): Generator<Changes, void, void> {
  for (const record of [...state.hosts()]) {
    yield observeSilence(
      record,
      context.silentMs(record.key),
      { lostMs: context.hostLostMs, regionIsSilent: context.regionIsSilent(record.key) },
      context,
    );
  }
  let budget: number = limits.sweepChanges;
  // What found no room a moment ago finds none now: ten thousand that wait cost one look for each kind of them.
  const noRoom = new Set<string>();
  for (const record of unsettled(state, context)) {
    if (budget === 0) return;
    const kind = `${record.tenant} ${record.spec.cpu_limit} ${record.spec.mem_limit} ${record.placement.phase}`;
    if (noRoom.has(kind)) continue;
    const changes = settle(state, record, context);
    if (changes !== noChanges) budget--;
    else if (record.rejections.length === 0 && record.placement.phase === 'unplaced') noRoom.add(kind);
    yield changes;
  }
}

function unsettled(state: PartitionView, context: TurnContext) {
  const records = [...state.unplaced()].filter(({ desired }) => desired === 'running');
  for (const host of state.hostsWithContainers()) {
    const standing = context.fleet.standing(host);
    const leaves = standing === 'lost' || standing === 'removed' || context.fleet.host(host)?.draining === true;
    if (leaves) records.push(...state.placedOn(host).values());
  }
  return records;
}

/** Tombstones whose time has come; looked for less often than the rest. */
export function expired(state: PartitionView, nowMs: number): Changes {
  const deletes: string[] = [];
  for (const tenant of state.tenants()) {
    for (const tombstone of tenant.tombstones.values()) {
      if (tombstone.goneAtMs + limits.tombstoneTtlMs > nowMs) break;
      deletes.push(keys.container(tombstone.tenant, tombstone.id));
      if (deletes.length >= limits.sweepChanges) return { ...noChanges, deletes };
    }
  }
  return deletes.length === 0 ? noChanges : { ...noChanges, deletes };
}
