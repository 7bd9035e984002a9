/** Caps and what is used of them. Pure. */
import { errorBody, quotaDimensions, type QuotaDimension } from '../../../schemas/errors.ts';
import type { Region } from '../../../schemas/ids.ts';
import { capsOf, type QuotaAmounts, type QuotaCaps, type TenantRecord } from '../../../schemas/api/tenant.ts';
import type { TenantView } from './state.ts';
import { noChanges, refuse, type Turn } from '../turn.ts';

export const noCaps: QuotaCaps = {
  containers: null,
  cpu_millis: null,
  mem_bytes: null,
  vpn_peers: null,
  ports: null,
  disk_bytes: null,
};

export const regionCaps = (tenant: TenantRecord, region: string): QuotaCaps => ({
  ...noCaps,
  ...tenant.regionCaps[region],
});

export type Excess =
  | { readonly dimension: QuotaDimension; readonly requested: number; readonly max: number }
  /** A damaged record uses an unknown amount of this: the cap can't be kept. */
  | { readonly dimension: QuotaDimension; readonly isUnknown: true };

/**
 * Amounts of a damaged container that are unknown: its record has them, and so is its region. Of
 * ports and disk it counts as the maximum (`TenantView.usage`).
 */
const unknownOfDamaged: ReadonlySet<QuotaDimension> = new Set(['cpu_millis', 'mem_bytes']);
const unknownInRegion: ReadonlySet<QuotaDimension> = new Set([
  'containers',
  'cpu_millis',
  'mem_bytes',
  'ports',
  'disk_bytes',
]);
const none: ReadonlySet<QuotaDimension> = new Set();

/**
 * The first cap, in the order of `quotaDimensions`, that usage and request together would exceed,
 * or may exceed where the usage is unknown.
 */
export function excess(
  usage: QuotaAmounts,
  caps: QuotaCaps,
  more: Partial<QuotaAmounts>,
  unknown: ReadonlySet<QuotaDimension> = none,
): Excess | undefined {
  for (const dimension of quotaDimensions) {
    const max = caps[dimension];
    const wanted = more[dimension] ?? 0;
    if (max === null || wanted === 0) continue;
    const requested = usage[dimension] + wanted;
    if (requested > max) return { dimension, requested, max };
    if (unknown.has(dimension)) return { dimension, isUnknown: true };
  }
  return undefined;
}

export const excessInTenant = (tenant: TenantView, more: Partial<QuotaAmounts>): Excess | undefined =>
  excess(tenant.usage('*'), capsOf(tenant.record.caps), more, tenant.damaged.size > 0 ? unknownOfDamaged : none);

export const excessInRegion = (tenant: TenantView, region: Region, more: Partial<QuotaAmounts>): Excess | undefined => {
  const caps = regionCaps(tenant.record, region);
  return excess(tenant.usage(region), caps, more, tenant.damaged.size > 0 ? unknownInRegion : none);
};

export function refuseExcess(detail: Excess): Turn {
  if ('isUnknown' in detail) {
    const what = `a record of this tenant is damaged, so its use of ${detail.dimension} is unknown`;
    return refuse('internal', `${what}; contact support with the request id`);
  }
  const body = errorBody({ error: 'over_quota', detail: { ...detail } });
  return { reply: { code: 'over_quota', body }, changes: noChanges };
}
