/**
 * Counts the messages of each host and tenant in a shared stream, from the subjects that
 * STREAM.INFO lists. A host can write any subject below its own prefix: names of tenants without
 * containers on it, subjects without a tenant, quotes and wildcards. Pure.
 */
import { isHostKey, isTenantId } from '../../schemas/ids.ts';

/**
 * Tenants of a host, which are at most its containers; messages of further ones count for no
 * tenant.
 */
const budgetTenantsPerHost = 1000;

/** The count of one host, or of all tenants in a stream that no host writes to. */
export interface HostCount {
  /** Messages by tenant. */
  readonly tenants: Map<string, number>;
  /** Messages that name no tenant, and those of more tenants than a host can have. */
  nameless: number;
  subjects: number;
}

/** By host; under '' in a stream that no host writes to. */
export type Counts = Map<string, HostCount>;

/** Host and tenant of a subject. No tenant: agents do not write such a subject. */
export interface Owner {
  readonly host: string;
  readonly tenant: string | undefined;
}

export function ownerOfSubject(subject: string): Owner | undefined {
  const tokens = subject.split('.');
  if (tokens[0] === 'event') return tokens[1] === undefined ? undefined : { host: '', tenant: tokens[1] };
  if (tokens[0] === 'audit') return { host: '', tenant: tokens[2] ?? '' };
  if (tokens[0] === 'usage') {
    const [, tenant, , host = ''] = tokens;
    return isHostKey(host) ? { host, tenant } : undefined;
  }
  const [, host = '', , tenant = '', container = ''] = tokens;
  if (!isHostKey(host)) return undefined;
  const isNamed = tokens.length === 5 && isTenantId(tenant) && !/[*>]/.test(container);
  return { host, tenant: isNamed ? tenant : undefined };
}

export function addTo(counts: Counts, subject: string, messages: number): void {
  const owner = ownerOfSubject(subject);
  if (owner === undefined) return;
  const { host, tenant } = owner;
  const count: HostCount = counts.get(host) ?? { tenants: new Map(), nameless: 0, subjects: 0 };
  counts.set(host, count);
  count.subjects += 1;
  const known = tenant === undefined ? undefined : count.tenants.get(tenant);
  const isCrowd = host !== '' && known === undefined && count.tenants.size >= budgetTenantsPerHost;
  if (tenant === undefined || isCrowd) count.nameless += messages;
  else count.tenants.set(tenant, (known ?? 0) + messages);
}
