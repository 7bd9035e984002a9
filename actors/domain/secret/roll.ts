/**
 * Brings containers to the current values of their secrets, and forgets values that none needs any
 * more. Level-triggered, as the sweep that calls it: it looks only at secrets that have more than
 * one value. Pure.
 */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import { changed, eventOf, updated } from '../container/transitions.ts';
import { isOnItsOnlyRun } from '../container/endings.ts';
import { isUpdating, versionOf } from '../container/updates.ts';
import type { PartitionView } from '../state.ts';
import type { TenantView } from '../tenant/state.ts';
import { noChanges, type Changes, type TurnContext } from '../turn.ts';
import { unusedOf } from './secrets.ts';
import { currentOf } from './state.ts';
import { isBehind, newest, usersOf } from './versions.ts';

/** A decision about one container threw (our bug); the others are still decided. */
export type OnFault = (record: ContainerRecord, error: unknown) => void;

/** One container of each secret in turn, so that no secret waits for another. */
export function* rollSecrets(
  state: PartitionView,
  context: TurnContext,
  onFault: OnFault,
): Generator<Changes, void, void> {
  const unsettled = [...state.secretsWithOldValues()];
  let budget: number = limits.secretRollsPerSweep;
  let queues = unsettled.map(({ tenant, name }) => behind(state, tenant, name));
  while (queues.length > 0 && budget > 0) {
    const left: typeof queues = [];
    for (const queue of queues) {
      const { value: record, done } = queue.next();
      if (done === true) continue;
      left.push(queue);
      if (record === undefined) yield noChanges;
      else if (budget-- > 0) yield rolled(state, record, context, onFault);
    }
    queues = left;
  }
  for (const { tenant, name } of unsettled) yield forget(state.tenant(tenant), name);
}

/** Containers to update; undefined: a step, because the caller runs this in slices. */
function* behind(state: PartitionView, id: TenantId, name: string): Generator<ContainerRecord | undefined, void, void> {
  const tenant = state.tenant(id);
  const version = currentOf(tenant.secrets.values.get(name));
  let passed = 0;
  for (const { id: user } of [...usersOf(tenant, name)]) {
    if (++passed % limits.sweepStepRecords === 0) yield undefined;
    // It may have changed since the sweep began.
    const record = tenant.containers.get(user);
    if (record === undefined) continue;
    // One update after another: one that fails takes back what it brought, and nothing else.
    const mayChange = !isUpdating(record) && !isOnItsOnlyRun(record);
    if (version !== undefined && mayChange && isBehind(record, name, version)) yield record;
  }
}

function rolled(state: PartitionView, record: ContainerRecord, context: TurnContext, onFault: OnFault): Changes {
  try {
    return roll(state.tenant(record.tenant), record, context);
  } catch (error) {
    onFault(record, error);
    return noChanges;
  }
}

/** The same limits as before: no cap and no host's room is exceeded. */
function roll(tenant: TenantView, record: ContainerRecord, context: TurnContext): Changes {
  const next = updated(record, { ...versionOf(record), secrets: newest(tenant, record) }, context);
  return changed(next, [eventOf('secret_changed', next, context)]);
}

function forget(tenant: TenantView, name: string): Changes {
  const current = currentOf(tenant.secrets.values.get(name));
  const old = unusedOf(tenant, name).filter((version) => version !== current);
  return { ...noChanges, deletes: old.map((version) => keys.secret(tenant.tenant, name, version)) };
}
