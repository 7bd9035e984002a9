/**
 * `/metrics/forage`: metrics of the VPN area, on the API's own listener. Counters are this
 * gateway's; peers and certificates come from their owners, and are absent while an owner is away.
 * No label holds a peer, a tenant or a token.
 */
import { Registry } from 'prom-client';
import { counter, histogram, label, reading, readAtScrapes, record } from '../../lib/metric-table.ts';
import { wholeSeconds } from '../../schemas/quantity.ts';
import { peerStates } from '../../schemas/api/peer.ts';
import type { Asker, VpnActors } from './service/actors.ts';
import type { BuildTimer } from './service/artifacts.ts';
import { seconds } from '../../schemas/limits/units.ts';

/** Greatest age of the counts of peers and the ends of certificates in /metrics/forage. */
const forageScrapeFreshMs = 1 * seconds;

export interface ForageMeters {
  readonly registry: Registry;
  /** `result`: the outcome's code. */
  request(artifact: string, format: string, result: string): void;
  authFailure(endpoint: string, reason: 'none' | 'token' | 'session'): void;
  readonly timed: BuildTimer;
  /** The text of one scrape. */
  scrape(asker: Asker, actors: VpnActors): Promise<string>;
}

export const foragePrefix = 'forage_';

export const forageMetrics = {
  request: counter('artifact_requests_total', {
    help: 'Downloads of VPN files, by file, format and outcome.',
    watch:
      'By `artifact`, `format` and `result`. `unavailable` is a failure of the control plane; `not_found` and `conflict` are removed or disabled peers.',
    labels: [label('artifact'), label('format'), label('result')],
  }),
  building: histogram('artifact_build_duration_seconds', {
    help: 'Time to make a QR code or a bundle, the wait for a thread included; cached ones are not counted.',
    watch: 'The 99th percentile over a second: keys and bundles wait for a thread; add cores or gateways.',
    labels: [label('artifact')],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  }),
  authFailure: counter('auth_failures_total', {
    help: 'Requests for VPN files answered 401, by endpoint and reason.',
    watch:
      'By `endpoint` and `reason`: no credentials, an invalid token, an invalid session. A burst of `token` is an attack.',
    labels: [label('endpoint'), label('reason', 'none', 'token', 'session')],
  }),
};

/** The newest readings of the owners; empty while one of them is away. */
interface ForageReadings {
  readonly version: string;
  peers: readonly (readonly [state: string, count: number])[];
  /** Seconds since 1970. */
  expiries: readonly (readonly [certificate: string, at: number])[];
}

const read = reading<ForageReadings>();

export const forageGauges = {
  peers: read('gauge', 'peers', {
    help: 'VPN peers of all tenants, by state.',
    watch: 'By `state`: active, disabled, expired.',
    labels: [label('state')],
    read: ({ peers }) => peers,
  }),
  expiry: read('gauge', 'certificate_expiry_timestamp_seconds', {
    help: 'When a certificate expires: that of the authority (ca) and of the server of each network, and that of the active client that expires first.',
    watch:
      'Less than a quarter of a year away for `<network>/server`: the VPN server does not fetch its files. For `client`: a device should fetch its bundle again.',
    labels: [label('cert')],
    read: ({ expiries }) => expiries,
  }),
  build: read('gauge', 'build_info', {
    help: 'Build information: 1 for the version that answers.',
    watch: 'Which version answers.',
    labels: [label('version')],
    read: ({ version }) => [[version, 1]],
  }),
};

export function createForageMeters(version: string, nowSeconds: () => number): ForageMeters {
  const registry = new Registry();
  const { request, building, authFailure } = record(registry, foragePrefix, forageMetrics);
  const readings: ForageReadings = { version, peers: [], expiries: [] };
  readAtScrapes(registry, foragePrefix, forageGauges, readings);

  /**
   * Asks every partition; rejects unless all answer, because sums over some partitions would be
   * wrong.
   */
  async function ask(asker: Asker, actors: VpnActors): Promise<Pick<ForageReadings, 'peers' | 'expiries'>> {
    const [counted, listed] = await Promise.all([actors.countPeers(asker), actors.networks(asker)]);
    const earliest = counted.flatMap(({ earliest: ends }) => (ends === null ? [] : [ends]));
    return {
      peers: peerStates.map((state) => [state, counted.reduce((sum, count) => sum + count[state], 0)]),
      expiries: [
        ...(earliest.length > 0 ? [['client', wholeSeconds(Math.min(...earliest))] as const] : []),
        ...listed.flatMap(({ name, ca_certificate, server_certificate }) => [
          [`${name}/ca`, wholeSeconds(Date.parse(ca_certificate.not_after))] as const,
          [`${name}/server`, wholeSeconds(Date.parse(server_certificate.not_after))] as const,
        ]),
      ],
    };
  }

  async function refresh(asker: Asker, actors: VpnActors): Promise<void> {
    Object.assign(readings, await ask(asker, actors).catch(() => ({ peers: [], expiries: [] })));
  }

  /**
   * Anyone may scrape, and a scrape asks every partition, so concurrent scrapes share one set of
   * answers.
   */
  let kept: { readonly done: Promise<void>; readonly atSeconds: number } | undefined;
  function refreshed(asker: Asker, actors: VpnActors): Promise<void> {
    if (kept === undefined || nowSeconds() - kept.atSeconds >= forageScrapeFreshMs / 1000) {
      kept = { done: refresh(asker, actors), atSeconds: nowSeconds() };
    }
    return kept.done;
  }

  return {
    registry,
    request,
    authFailure,
    timed: async (artifact, build) => {
      const startSeconds = nowSeconds();
      const made = await build();
      building(artifact, nowSeconds() - startSeconds);
      return made;
    },
    scrape: async (asker, actors) => {
      await refreshed(asker, actors);
      return registry.metrics();
    },
  };
}
