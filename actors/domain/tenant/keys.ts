/** The keys of a tenant's programs. Owners keep their names and scopes, never a token. Pure. */
import { timestamp } from '../../../lib/time/timestamp.ts';
import { keysFull, type KeyRecord, type KeyView } from '../../../schemas/api/keys/key.ts';
import { matchesToken, type Revocation } from '../../../schemas/api/tenant.ts';
import type { KeyId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import type { PartitionView } from '../state.ts';
import { answer, conflict, data, invalid, noChanges, refuse, type Turn, type TurnContext } from '../turn.ts';
import { damagedTenant, stillNeeded } from './decide.ts';
import type { TenantView } from './state.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

const isRevoked = ({ record }: TenantView, { id, subject, issuedAtS }: KeyRecord): boolean =>
  record.revocations.some((revocation) => matchesToken(revocation, { tokenId: id, subject, issuedAtS }));

const damagedView = { name: null, scopes: null, subject: null, inserted_at: null, expires_at: null, revoked: false };

function viewOf(tenant: TenantView, id: KeyId, record: KeyRecord | null): KeyView {
  if (record === null) return { id, ...damagedView };
  const { name, scopes, subject, issuedAtS, expiresAtS } = record;
  return {
    id,
    name,
    scopes: [...scopes],
    subject,
    inserted_at: timestamp(issuedAtS * 1000),
    expires_at: timestamp(expiresAtS * 1000),
    revoked: isRevoked(tenant, record),
  };
}

/** All of them, newest first: there are few. An id begins with the time that it was made at. */
export function list(state: PartitionView, ask: Of<'key.list'>): Turn {
  const tenant = state.tenant(ask.tenant);
  if (tenant.settingsDamaged) return damagedTenant;
  const newestFirst = [...tenant.keys].sort(([one], [other]) => (one < other ? 1 : -1));
  return answer(
    data(
      'ok',
      newestFirst.map(([id, record]) => viewOf(tenant, id, record)),
    ),
  );
}

const revocationsFull =
  'this tenant has so many revoked tokens that a new key could not be revoked any more; ask an operator to revoke ' +
  'all tokens of the tenant, which replaces those revocations within a day';

/** Keys that have ended give way. Each key has room for its revocation. */
export function create(state: PartitionView, ask: Of<'key.create'>, { expiryMs }: TurnContext): Turn {
  const tenant = state.tenant(ask.tenant);
  if (tenant.settingsDamaged) return damagedTenant;
  const ended = [...tenant.keys].flatMap(([id, record]) =>
    record !== null && record.expiresAtS * 1000 <= expiryMs ? [id] : [],
  );
  const isAlive = (id: KeyId): boolean => !ended.includes(id);
  for (const [id, record] of tenant.keys) {
    if (isAlive(id) && record?.name === ask.made.name) return invalid({ name: ['has already been taken'] });
  }
  const count = tenant.keys.size - ended.length;
  if (count >= limits.keysPerTenant) return conflict('too_many', keysFull, { max: limits.keysPerTenant });
  const revocations = tenant.record.revocations.filter(({ untilMs }) => untilMs > expiryMs).length;
  if (revocations + count >= limits.revocationsPerTenant) return conflict('too_many', revocationsFull);
  const record: KeyRecord = { kind: 'key', tenant: ask.tenant, ...ask.made };
  const deletes = ended.map((id) => keys.key(ask.tenant, id));
  return answer(data('created', viewOf(tenant, record.id, record)), { ...noChanges, records: [record], deletes });
}

/**
 * Deletes the key and revokes its token, in one commit. The revocation ends with the token; that of
 * a damaged key when any token has ended.
 */
export function remove(state: PartitionView, ask: Of<'key.remove'>, context: TurnContext): Turn {
  const tenant = state.tenant(ask.tenant);
  if (tenant.settingsDamaged) return damagedTenant;
  const before = tenant.keys.get(ask.key);
  if (before === undefined) return refuse('not_found');
  const untilMs = before === null ? ask.revocation.untilMs : before.expiresAtS * 1000;
  const revocation: Revocation = { ...ask.revocation, untilMs };
  const revocations = [...stillNeeded(tenant.record.revocations, revocation, context), revocation];
  const records = [{ ...tenant.record, revocations, updatedAtMs: context.nowMs }];
  const deletes = [keys.key(ask.tenant, ask.key)];
  return answer(data('ok', { untilMs }), { ...noChanges, records, deletes });
}
