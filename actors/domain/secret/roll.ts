/**
 * Brings containers to the current values of their secrets, and forgets values that no container
 * needs any more. Level-triggered, as the sweep that calls it: it looks only at secrets with such a
 * container or value. Pure.
 */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import { limits } from '../../../schemas/limits.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import { changed, eventOf, updated } from '../container/transitions.ts';
import { versionOf } from '../container/updates.ts';
import type { PartitionView } from '../state.ts';
import type { TenantView } from '../tenant/state.ts';
import { noChanges, type Changes, type SecretOf, type TurnContext } from '../turn.ts';
import { inTurns } from '../tenant/turns.ts';
import { unusedOf } from './secrets.ts';
import { currentOf, isStaged } from './state.ts';
import { isBehind, newest } from './versions.ts';

/** A decision about one container threw (our bug); the others are still decided. */
export type OnFault = (record: ContainerRecord, error: unknown) => void;

export const rollSecrets = (
  state: PartitionView,
  context: TurnContext,
  onFault: OnFault,
): Generator<Changes, void, void> =>
  inTurns(state.secretsToSettle(), (secret) => settling(state, secret, context, onFault), limits.secretRollsPerSweep);

/** One container in each turn, and then the values that no container needs any more. */
function* settling(
  state: PartitionView,
  { tenant: id, name }: SecretOf,
  context: TurnContext,
  onFault: OnFault,
): Generator<Changes, void, void> {
  const tenant = state.tenant(id);
  const values = tenant.secrets.values.get(name);
  const version = currentOf(values);
  if (version === undefined) return;
  for (const user of isStaged(values) ? [] : tenant.secrets.users(name).behind(version)) {
    // Another turn may have changed it since.
    const record = tenant.containers.get(user);
    if (record === undefined || !isBehind(record, name, version)) yield noChanges;
    else yield rolled(state, record, context, onFault);
  }
  yield forget(tenant, name);
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
