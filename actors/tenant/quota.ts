/** Caps and what is used of them. Pure. */
import type { ErrorBody, QuotaDimension } from '../../schemas/errors.ts';
import { quotaDimensions } from '../../schemas/errors.ts';
import type { Region } from '../../schemas/ids.ts';
import type { QuotaAmounts, QuotaCaps, TenantRecord } from '../../schemas/tenant.ts';
import type { TenantView } from '../state.ts';

export const noCaps: QuotaCaps = { containers: null, cpu_millis: null, mem_bytes: null, vpn_peers: null };

export const regionCaps = (tenant: TenantRecord, region: string): QuotaCaps => ({
  ...noCaps,
  ...tenant.regionCaps[region],
});

export interface Excess {
  readonly dimension: QuotaDimension;
  readonly requested: number;
  readonly max: number;
}

/** The first cap, in the order of `quotaDimensions`, that usage and request together would exceed. */
export function excess(usage: QuotaAmounts, caps: QuotaCaps, more: Partial<QuotaAmounts>): Excess | undefined {
  for (const dimension of quotaDimensions) {
    const max = caps[dimension];
    const wanted = more[dimension] ?? 0;
    const requested = usage[dimension] + wanted;
    if (max !== null && wanted > 0 && requested > max) return { dimension, requested, max };
  }
  return undefined;
}

export const excessInTenant = (tenant: TenantView, more: Partial<QuotaAmounts>): Excess | undefined =>
  excess(tenant.usage('*'), tenant.record.caps, more);

export const excessInRegion = (tenant: TenantView, region: Region, more: Partial<QuotaAmounts>): Excess | undefined =>
  excess(tenant.usage(region), regionCaps(tenant.record, region), more);

export const overQuotaBody = (detail: Excess): string =>
  JSON.stringify({ error: 'over_quota', detail: { ...detail } } satisfies ErrorBody);
