/** A tenant's quota, settings and revocations. Pure. */
import { quotaDimensions } from '../../schemas/errors.ts';
import type { Region } from '../../schemas/ids.ts';
import { defaultCaps } from '../../schemas/limits.ts';
import type { Ask } from '../../schemas/messages.ts';
import { defaultTenant, type Caps, type QuotaCaps, type TenantRecord, type TenantView } from '../../schemas/tenant.ts';
import type { PartitionView } from '../state.ts';
import { answer, data, invalid, refuse, type Changes, type Turn, type TurnContext } from '../turn.ts';
import { regionCaps } from './quota.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

/** How many revocations a tenant may have at once; they go when the tokens that they meet have expired. */
const revocationsMax = 1000;

const stored = (record: TenantRecord): Changes => ({ records: [record], deletes: [], events: [], effects: [] });

export function quota(state: PartitionView, ask: Of<'tenant.quota'>): Turn {
  const tenant = state.tenant(ask.tenant);
  if (ask.region !== '*' && !tenant.record.regions.includes(ask.region as Region)) {
    return invalid({ region: ['is not an allocated region'] });
  }
  const caps = ask.region === '*' ? tenant.record.caps : regionCaps(tenant.record, ask.region);
  return answer(data('ok', { region: ask.region, usage: tenant.usage(ask.region), caps }));
}

const view = (record: TenantRecord): TenantView => ({
  id: record.tenant,
  regions: [...record.regions],
  caps: record.caps,
  region_caps: record.regionCaps,
});

export const get = (state: PartitionView, ask: Of<'tenant.get'>): Turn =>
  answer(data('ok', view(state.tenant(ask.tenant).record)));

const capsOf = (caps: Caps | undefined): QuotaCaps =>
  Object.fromEntries(
    quotaDimensions.map((dimension) => {
      const cap = caps?.[dimension];
      return [dimension, cap === undefined ? defaultCaps[dimension] : cap];
    }),
  ) as unknown as QuotaCaps;

/** A cap below what is in use takes nothing away; it only refuses more. */
export function put(state: PartitionView, ask: Of<'tenant.put'>, context: TurnContext): Turn {
  const before = state.tenant(ask.tenant).record;
  const { regions, caps, region_caps } = ask.settings;
  const record: TenantRecord = {
    ...before,
    regions: regions ?? defaultTenant(ask.tenant).regions,
    caps: capsOf(caps),
    regionCaps: region_caps ?? {},
    updatedAtMs: context.nowMs,
  };
  return answer(data('ok', view(record)), stored(record));
}

export function revoke(state: PartitionView, ask: Of<'tenant.revoke'>, context: TurnContext): Turn {
  const before = state.tenant(ask.tenant).record;
  const alive = before.revocations.filter(({ untilMs }) => untilMs > context.nowMs);
  if (alive.length >= revocationsMax) {
    return refuse('conflict', `${revocationsMax} revocations are in force; revoke the whole tenant's tokens instead`);
  }
  const record = { ...before, revocations: [...alive, ask.revocation], updatedAtMs: context.nowMs };
  const { issuedUntilS, untilMs } = ask.revocation;
  return answer(
    data('created', {
      issued_until: new Date(issuedUntilS * 1000).toISOString(),
      expires_at: new Date(untilMs).toISOString(),
    }),
    stored(record),
  );
}

export function revocations(state: PartitionView, context: TurnContext): Turn {
  const all = [];
  for (const { record } of state.tenants()) {
    for (const revocation of record.revocations) if (revocation.untilMs > context.nowMs) all.push(revocation);
  }
  return answer(data('ok', all));
}
