/**
 * Availability for every tenant. Probes send a read of each tenant to each gateway and a write to
 * its home, at a steady rate whether or not earlier ones were answered; if the home is silent,
 * writes go to the other gateway too. A tenant is served as long as one gateway answers: a load
 * balancer would use that one.
 */
import { createHttpClient } from './client.ts';
import { lengthMs, silences, type Span } from './silence.ts';
import { caps, homeOf, quietTenants, tenants } from './tenants.ts';
import type { Gateway, World } from '../world/world.ts';

export type ProbeKind = 'read' | 'write';

interface Success {
  readonly tenant: string;
  readonly kind: ProbeKind;
  readonly gateway: Gateway['place'];
  readonly sentMs: number;
  readonly answeredMs: number;
}

export interface Gap extends Span {
  readonly tenant: string;
  readonly kind: ProbeKind;
}

export interface Probes {
  /**
   * The longest time within this span in which some tenant got no answer to reads, or none to
   * writes.
   */
  longestGap(span: Span): Gap;
  /** Every tenant got answers to probes sent after this: a read from each gateway, and a write. */
  allServedSince(fromMs: number): boolean;
  stop(): void;
}

/** The resolution of the measured unavailability. */
export const probeEveryMs = 100;
/** After this silence, writes go to the other gateway too. */
const homeSilentMs = 400;
/** Probes of one tenant under way at one gateway. */
const underWayMax = 40;

/**
 * The body of a write that changes nothing: the tenant's current settings. It goes through the
 * journal like any other write.
 */
export const settings = {
  caps: { containers: caps.containers, cpu_millis: caps.cpuMillis, mem_bytes: caps.memBytes, deletes_per_hour: null },
};

export async function startProbes(world: World): Promise<Probes> {
  const successes: Success[] = [];
  const http = createHttpClient(underWayMax);
  const operator = await world.token('ops', 'operator');
  const tokens = new Map<string, string>();
  for (const tenant of tenants) tokens.set(tenant, await world.token(tenant));
  const underWay = new Map<string, number>();

  const probe = async (tenant: string, kind: ProbeKind, { place: gateway, baseUrl }: Gateway): Promise<void> => {
    const key = `${tenant} ${gateway}`;
    const count = underWay.get(key) ?? 0;
    if (count >= underWayMax) return;
    underWay.set(key, count + 1);
    const sentMs = performance.now();
    const heard = await http.send(
      kind === 'read'
        ? { baseUrl, method: 'GET', path: '/api/v2/compute/quota', token: tokens.get(tenant) ?? '' }
        : { baseUrl, method: 'PUT', path: `/api/v2/operator/tenants/${tenant}`, token: operator, body: settings },
    );
    underWay.set(key, (underWay.get(key) ?? 1) - 1);
    if (heard.kind !== 'answer' || heard.status !== 200) return;
    successes.push({ tenant, kind, gateway, sentMs, answeredMs: performance.now() });
    if (kind === 'write' && gateway === homeOfTenant(tenant).place) lastWriteMs.set(tenant, performance.now());
  };

  const homeOfTenant = (tenant: string): Gateway => world.gateways[homeOf(tenant)]!;
  const lastWriteMs = new Map<string, number>();
  const placesFor = (tenant: string, kind: ProbeKind): readonly Gateway[] => {
    const isHomeSilent = performance.now() - (lastWriteMs.get(tenant) ?? 0) > homeSilentMs;
    return kind === 'read' || isHomeSilent ? world.gateways : [homeOfTenant(tenant)];
  };

  let turn = 0;
  const timer = setInterval(() => {
    // Reads and writes alternate, so that each tenant gets one of each in `probeEveryMs`.
    const kind = turn++ % 2 === 0 ? 'read' : 'write';
    const asked = tenants.filter((tenant) => kind === 'read' || !quietTenants.includes(tenant));
    for (const tenant of asked) for (const gateway of placesFor(tenant, kind)) void probe(tenant, kind, gateway);
  }, probeEveryMs / 2);

  const pairs = tenants.flatMap((tenant) => [
    { tenant, kind: 'read' as const },
    ...(quietTenants.includes(tenant) ? [] : [{ tenant, kind: 'write' as const }]),
  ]);
  return {
    longestGap: (span) => {
      let worst: Gap = { fromMs: span.fromMs, toMs: span.fromMs, tenant: '', kind: 'read' };
      for (const { tenant, kind } of pairs) {
        const times = successes
          .filter((each) => each.tenant === tenant && each.kind === kind)
          .map(({ answeredMs }) => answeredMs);
        for (const silence of silences(times, span)) {
          if (lengthMs(silence) > lengthMs(worst)) worst = { ...silence, tenant, kind };
        }
      }
      return worst;
    },
    allServedSince: (fromMs) =>
      pairs.every(({ tenant, kind }) =>
        world.gateways
          .filter(({ place }) => kind === 'read' || place === homeOfTenant(tenant).place)
          .every(({ place }) =>
            successes.some(
              (each) => each.sentMs >= fromMs && each.tenant === tenant && each.kind === kind && each.gateway === place,
            ),
          ),
      ),
    stop: () => {
      clearInterval(timer);
      http.close();
    },
  };
}
