/**
 * Decides what a tenant asks of its secrets. Owners keep only sealed values: a gateway seals a
 * value for the version that it asked for, and opens the one before to see whether it changes.
 * Pure.
 */
import { timestamp } from '../../../lib/time/timestamp.ts';
import { type SecretFloorRecord, type SecretRecord, type SecretView } from '../../../schemas/api/secret.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import type { PartitionView } from '../state.ts';
import type { TenantView } from '../tenant/state.ts';
import { answer, conflict, data, invalid, noChanges, refuse, type Turn, type TurnContext } from '../turn.ts';
import { currentOf, type Values } from './state.ts';
import { nextVersion } from './versions.ts';

/** Values of one secret that are kept, because containers are made from them or may go back. */
const secretVersions = 4;

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

const timeOf = (ms: number | undefined): string | null => (ms === undefined ? null : timestamp(ms));

function viewOf(
  tenant: TenantView,
  name: string,
  version: number,
  record: SecretRecord | null | undefined,
): SecretView {
  const users = tenant.secrets.users(name);
  const used_by = firstOf(users.ids, limits.secretUsersShown);
  const shown = { name, version, updated_at: timeOf(record?.updatedAtMs), used_by };
  if (record?.staged === true) {
    return { ...shown, staged: true, behind: firstOf(users.madeFromOthers(version), limits.secretUsersShown) };
  }
  const behind = firstOf(users.keeping(version), limits.secretUsersShown);
  return behind.length === 0 ? shown : { ...shown, behind };
}

function firstOf<T>(items: Iterable<T>, most: number): T[] {
  const first: T[] = [];
  for (const item of items) {
    if (first.length === most) break;
    first.push(item);
  }
  return first;
}

const shownAt = (tenant: TenantView, name: string, values: Values): SecretView => {
  const version = currentOf(values) ?? 0;
  return viewOf(tenant, name, version, values.get(version));
};

/** All of them, by name: there are few. */
export function list(state: PartitionView, ask: Of<'secret.list'>): Turn {
  const tenant = state.tenant(ask.tenant);
  const names = [...tenant.secrets.values].sort(([one], [other]) => (one < other ? -1 : 1));
  return answer(
    data(
      'ok',
      names.map(([name, values]) => shownAt(tenant, name, values)),
    ),
  );
}

/** The next version and the current value, for the gateway that is to seal a new value. */
export function material(state: PartitionView, ask: Of<'secret.material'>): Turn {
  const tenant = state.tenant(ask.tenant);
  const values = tenant.secrets.values.get(ask.name);
  const version = currentOf(values);
  const next = nextVersion(version, tenant.secrets.floor, state.vpn.incarnation);
  if (values === undefined || version === undefined) return answer(data('ok', { next, current: null }));
  const sealed = values.get(version)?.sealed ?? null;
  return answer(data('ok', { next, current: { version, sealed, view: shownAt(tenant, ask.name, values) } }));
}

const changedMeanwhile = 'the secret has changed meanwhile';

/**
 * Another value. The containers that use it follow one by one (roll.ts).
 * `precondition_failed`: the version is not the next one any more.
 */
export function put(state: PartitionView, ask: Of<'secret.put'>, context: TurnContext): Turn {
  const { name, version, sealed, binary } = ask;
  const tenant = state.tenant(ask.tenant);
  const { secrets } = tenant;
  const values = secrets.values.get(name);
  const current = currentOf(values);
  if (ask.stage === 'over') return unstaged(tenant, ask, values?.get(current ?? 0));
  if (version !== nextVersion(current, secrets.floor, state.vpn.incarnation))
    return refuse('precondition_failed', changedMeanwhile);
  if (values === undefined && secrets.values.size >= limits.secretsPerTenant)
    return conflict(
      'too_many',
      `there are already ${limits.secretsPerTenant} secrets, which is the most: delete one first`,
      { max: limits.secretsPerTenant },
    );
  const users = secrets.users(name);
  if (binary === true && users.isVariable)
    return invalid({ value: ['must be text without NUL: a container has it in an environment variable'] });
  if (users.versions >= secretVersions)
    return conflict('too_many', 'updates to earlier values are under way: wait until they have ended');
  const record: SecretRecord = {
    kind: 'secret',
    tenant: ask.tenant,
    name,
    version,
    sealed,
    ...(binary === true ? { binary } : {}),
    ...(ask.stage === 'only' ? { staged: true } : {}),
    updatedAtMs: context.nowMs,
  };
  const deletes = unusedOf(tenant, name).map((old) => keys.secret(ask.tenant, name, old));
  const code = current === undefined ? 'created' : 'ok';
  return answer(data(code, viewOf(tenant, name, version, record)), { ...noChanges, records: [record], deletes });
}

/** The current value, to which the containers come by themselves from now on. */
function unstaged(tenant: TenantView, { name, version }: Of<'secret.put'>, current: SecretRecord | null | undefined) {
  if (current?.version !== version) return refuse('precondition_failed', changedMeanwhile);
  const { staged: _, ...record } = current;
  return answer(data('ok', viewOf(tenant, name, version, record)), { ...noChanges, records: [record] });
}

/** Versions that no container needs, the current one among them. */
export function unusedOf(tenant: TenantView, name: string): readonly number[] {
  // The version of a damaged container is unknown.
  if (tenant.damaged.size > 0) return [];
  const users = tenant.secrets.users(name);
  return [...(tenant.secrets.values.get(name)?.keys() ?? [])].filter((version) => !users.need(version));
}

export function remove(state: PartitionView, ask: Of<'secret.remove'>, context: TurnContext): Turn {
  const tenant = state.tenant(ask.tenant);
  const values = tenant.secrets.values.get(ask.name);
  if (values === undefined) return refuse('not_found');
  if (tenant.damaged.size > 0)
    return conflict('damaged', 'a container that may use this secret has a damaged record; contact support');
  const users = tenant.secrets.users(ask.name).ids;
  if (users.size > 0)
    return conflict('in_use', usedBy(tenant, users), { containers: firstOf(users, limits.secretUsersShown) });
  const deletes = [...values.keys()].map((version) => keys.secret(ask.tenant, ask.name, version));
  const records = [floorAbove(tenant, currentOf(values) ?? 0, context)];
  return answer({ code: 'no_content', body: '' }, { ...noChanges, records, deletes });
}

function usedBy({ containers }: TenantView, users: ReadonlySet<ContainerId>): string {
  const shown = firstOf(users, limits.secretUsersNamed).map((id) => containers.get(id)?.spec.name ?? id);
  const more = users.size - shown.length;
  return `it is used by ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}: take it out of their secrets first`;
}

/** Remembers a version that is deleted. */
export const floorAbove = (
  { tenant, secrets }: TenantView,
  version: number,
  context: TurnContext,
): SecretFloorRecord => ({
  kind: 'secret_floor',
  tenant,
  version: Math.max(secrets.floor, version),
  updatedAtMs: context.nowMs,
});
