/** A tenant's quota, settings and revocations. Pure. */
import { timestamp } from '../../../lib/time/timestamp.ts';
import { fill, line } from '../../../lib/fill.ts';
import type { TenantHost } from '../../../schemas/api/host.ts';
import type { Region } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import {
  capsOf,
  defaultTenant,
  isCovered,
  type Revocation,
  type TenantRecord,
  type TenantSummary,
  type TenantView,
} from '../../../schemas/api/tenant.ts';
import type { PartitionView } from '../state.ts';
import { pageByKey, pageOf } from '../page.ts';
import {
  answer,
  conflict,
  data,
  invalid,
  refuse,
  type Changes,
  type HostCondition,
  type Turn,
  type TurnContext,
} from '../turn.ts';
import { regionCaps } from './quota.ts';
import { deletedLately } from './remembered.ts';
import { isStored, type TenantView as KnownTenant } from './state.ts';
import { KiB } from '../../../schemas/limits/units.ts';

/** Size of a page of revocations. */
const revocationPageBytes = 384 * KiB;

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

/**
 * The refusal for a damaged tenant: its caps, regions and revocations are unknown, so asks that
 * depend on them are refused until it is repaired.
 */
export const damagedTenant = refuse(
  'internal',
  'the record of this tenant is damaged; contact support with the request id',
);

const stored = (record: TenantRecord): Changes => ({ records: [record], deletes: [], events: [], effects: [] });

export function quota(state: PartitionView, ask: Of<'tenant.quota'>, context: TurnContext): Turn {
  const tenant = state.tenant(ask.tenant);
  if (tenant.settingsDamaged) return damagedTenant;
  if (ask.region !== '*' && !tenant.record.regions.includes(ask.region as Region)) {
    return invalid({ region: ['is not an allocated region'] });
  }
  const usage = tenant.usage(ask.region);
  if (ask.region !== '*') {
    return answer(data('ok', { region: ask.region, usage, caps: regionCaps(tenant.record, ask.region) }));
  }
  const deletes_per_hour = deletedLately(tenant, context);
  return answer(data('ok', { region: '*', usage: { ...usage, deletes_per_hour }, caps: capsOf(tenant.record.caps) }));
}

/** The hosts that a create may name. */
export function hosts(state: PartitionView, ask: Of<'tenant.hosts'>, { fleet }: TurnContext): Turn {
  const tenant = state.tenant(ask.tenant);
  if (tenant.settingsDamaged) return damagedTenant;
  const all = tenant.record.regions.flatMap((region) =>
    fleet
      .hostsIn(region)
      .filter((key) => isThere(fleet.condition(key)))
      .map((key): TenantHost => ({ key, region })),
  );
  const { limit, after } = ask;
  const maxBytes = limits.answerPartBytes;
  return pageByKey(all, { keyOf: ({ key }) => key, limit, after, maxBytes, render: (host) => JSON.stringify(host) });
}

const isThere = (condition: HostCondition): boolean => condition !== 'removed' && condition !== 'fenced';

const view = (record: TenantRecord): TenantView => ({
  id: record.tenant,
  regions: [...record.regions],
  caps: capsOf(record.caps),
  region_caps: record.regionCaps,
  registries: record.registries == null ? null : [...record.registries],
  region_registries: Object.fromEntries(
    Object.entries(record.regionRegistries ?? {}).map(([region, rules]) => [
      region,
      rules === null ? null : [...rules],
    ]),
  ),
});

export function get(state: PartitionView, ask: Of<'tenant.get'>): Turn {
  const tenant = state.tenant(ask.tenant);
  return tenant.settingsDamaged ? damagedTenant : answer(data('ok', view(tenant.record)));
}

function summary(tenant: KnownTenant): TenantSummary {
  const { record, settingsDamaged } = tenant;
  return {
    id: tenant.tenant,
    regions: settingsDamaged ? null : [...record.regions],
    caps: settingsDamaged ? null : capsOf(record.caps),
    usage: tenant.usage('*'),
  };
}

function* storedAfter(state: PartitionView, after: string): Generator<KnownTenant, void, void> {
  for (const tenant of state.tenantsFrom(after)) if (tenant.tenant !== after && isStored(tenant)) yield tenant;
}

export const list = (state: PartitionView, { limit, after }: Of<'tenant.list'>): Turn =>
  pageOf(storedAfter(state, after), { bytes: limits.answerPartBytes, items: limit }, (tenant) =>
    JSON.stringify(summary(tenant)),
  );

const damagedUntilRepaired = conflict(
  'damaged',
  'the record of this tenant is damaged; send "repair": true to replace it, which revokes every token issued until now',
);

/**
 * A cap below the usage takes nothing away; it only refuses more. A damaged record is replaced only
 * if the operator asks for that: its revocations are lost, so the repair revokes all tokens issued
 * until now.
 */
export function put(state: PartitionView, ask: Of<'tenant.put'>, context: TurnContext): Turn {
  const tenant = state.tenant(ask.tenant);
  const repair = tenant.settingsDamaged ? (ask.repair ?? undefined) : undefined;
  if (tenant.settingsDamaged && repair === undefined) return damagedUntilRepaired;
  const { regions, caps, region_caps, registries, region_registries } = ask.settings;
  const record: TenantRecord = {
    ...tenant.record,
    ...(repair === undefined ? {} : { revocations: [repair] }),
    regions: regions ?? defaultTenant(ask.tenant).regions,
    caps: caps ?? {},
    regionCaps: region_caps ?? {},
    registries: registries ?? null,
    regionRegistries: region_registries ?? {},
    updatedAtMs: context.nowMs,
  };
  return answer(data('ok', view(record)), stored(record));
}

const revocationsFull =
  `this tenant has ${limits.revocationsPerTenant.toLocaleString('en')} revocations of single tokens and subjects, ` +
  'and no more are kept: revoke all its tokens, which replaces those of subjects, and those of tokens that are over ' +
  'a day old. A revocation of a "jti" ends with its token if you send its "exp"';

const isSame = (one: Revocation['match'], other: Revocation['match']): boolean =>
  one.by === 'jti' && other.by === 'jti' && one.value === other.value;

export function revoke(state: PartitionView, ask: Of<'tenant.revoke'>, context: TurnContext): Turn {
  const tenant = state.tenant(ask.tenant);
  if (tenant.settingsDamaged) return damagedTenant;
  const before = tenant.record;
  if (ask.once === true && before.revocations.some(({ match }) => isSame(match, ask.revocation.match))) {
    return refuse('precondition_failed', 'this token is revoked already');
  }
  const alive = stillNeeded(before.revocations, ask.revocation, context);
  const max = limits.revocationsPerTenant;
  // All tokens of the tenant can be revoked always; the next such revocation takes the place of
  // this one.
  if (alive.length >= max && ask.revocation.match.by !== 'tenant') {
    return conflict('too_many', revocationsFull, { max });
  }
  const record = { ...before, revocations: [...alive, ask.revocation], updatedAtMs: context.nowMs };
  const { issuedUntilS, untilMs } = ask.revocation;
  return answer(
    data('created', {
      issued_until: timestamp(issuedUntilS * 1000),
      expires_at: timestamp(untilMs),
    }),
    stored(record),
  );
}

/** Revocations that have not ended, and that the next one does not cover. */
export const stillNeeded = (all: readonly Revocation[], next: Revocation, { expiryMs }: TurnContext): Revocation[] =>
  all.filter((revocation) => revocation.untilMs > expiryMs && !isCovered(revocation, next));

/**
 * The change up to which a gateway knows all, by its cursor; 0 if the cursor is not of this memory.
 */
function changeOf(state: PartitionView, after: string | null): number {
  const [epoch, change] = (after ?? '').split('.').map(Number);
  return epoch === state.epoch && change !== undefined && Number.isSafeInteger(change) ? change : 0;
}

/**
 * The revocations that changed after the cursor, tenant by tenant, a page at a time. A tenant's
 * revocations fit one page: its record, which holds them, is smaller.
 */
export function revocations(state: PartitionView, ask: Of<'revocation.list'>, { expiryMs }: TurnContext): Turn {
  const from = changeOf(state, ask.after);
  const bounds = { bytes: revocationPageBytes };
  const { values, next } = fill(state.revocationChanges(from), bounds, ([change, ofTenant]) => {
    const { tenant, record, settingsDamaged } = ofTenant;
    const alive = settingsDamaged ? [] : record.revocations.filter(({ untilMs }) => untilMs > expiryMs);
    const texts = (settingsDamaged ? [tenant] : alive).map((item) => JSON.stringify(item));
    const bytes = texts.reduce((sum, text) => sum + line(text).bytes, 0);
    return { value: { change, texts, settingsDamaged }, bytes };
  });
  const textsOf = (isUnreadable: boolean): string =>
    values.flatMap(({ texts, settingsDamaged }) => (settingsDamaged === isUnreadable ? texts : [])).join(',');
  const page = `"unreadable":[${textsOf(true)}],"whole":${from === 0},"more":${next !== undefined}`;
  const last = values.at(-1)?.change ?? from;
  return answer({ code: 'ok', body: `{"data":[${textsOf(false)}],${page},"next":"${state.epoch}.${last}"}` });
}
