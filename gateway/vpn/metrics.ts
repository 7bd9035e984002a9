/**
 * `/metrics/forage`: metrics of the VPN area, on the API's own listener. Counters are this
 * gateway's; peers and certificates come from their owners, and are absent while an owner is away.
 * No label holds a peer, a tenant or a token.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { limits } from '../../schemas/limits.ts';
import { wholeSeconds } from '../../schemas/quantity.ts';
import { peerStates } from '../../schemas/api/peer.ts';
import type { Asker, VpnActors } from './service/actors.ts';
import type { BuildTimer } from './service/artifacts.ts';

export interface ForageMeters {
  readonly registry: Registry;
  /** `result`: the outcome's code. */
  request(artifact: string, format: string, result: string): void;
  authFailure(endpoint: string, reason: 'none' | 'token' | 'session'): void;
  readonly timed: BuildTimer;
  /** The text of one scrape. */
  scrape(asker: Asker, actors: VpnActors): Promise<string>;
}

export function createForageMeters(version: string, nowSeconds: () => number): ForageMeters {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: 'forage_artifact_requests_total',
    help: 'Downloads of VPN files, by file, format and outcome.',
    labelNames: ['artifact', 'format', 'result'],
    registers,
  });
  const building = new Histogram({
    name: 'forage_artifact_build_duration_seconds',
    help: 'Time to make a QR code or a bundle, the wait for a thread included; cached ones are not counted.',
    labelNames: ['artifact'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const peers = new Gauge({
    name: 'forage_peers',
    help: 'VPN peers of all tenants, by state.',
    labelNames: ['state'],
    registers,
  });
  const expiry = new Gauge({
    name: 'forage_certificate_expiry_timestamp_seconds',
    help: 'When a certificate expires: that of the authority (ca) and of the server of each network, and that of the active client that expires first.',
    labelNames: ['cert'],
    registers,
  });
  const authFailures = new Counter({
    name: 'forage_auth_failures_total',
    help: 'Requests for VPN files answered 401, by endpoint and reason.',
    labelNames: ['endpoint', 'reason'],
    registers,
  });
  new Gauge({ name: 'forage_build_info', help: 'Always 1.', labelNames: ['version'], registers })
    .labels(version)
    .set(1);

  /**
   * Asks every partition; rejects unless all answer, because sums over some partitions would be
   * wrong. The result sets all gauges at once.
   */
  async function ask(asker: Asker, actors: VpnActors): Promise<() => void> {
    const [counted, listed] = await Promise.all([actors.countPeers(asker), actors.networks(asker)]);
    return () => {
      for (const state of peerStates) peers.labels(state).set(counted.reduce((sum, count) => sum + count[state], 0));
      const earliest = counted.flatMap(({ earliest: ends }) => (ends === null ? [] : [ends]));
      if (earliest.length > 0) expiry.labels('client').set(wholeSeconds(Math.min(...earliest)));
      for (const { name, ca_certificate, server_certificate } of listed) {
        expiry.labels(`${name}/ca`).set(wholeSeconds(Date.parse(ca_certificate.not_after)));
        expiry.labels(`${name}/server`).set(wholeSeconds(Date.parse(server_certificate.not_after)));
      }
    };
  }

  async function refresh(asker: Asker, actors: VpnActors): Promise<void> {
    const tell = await ask(asker, actors).catch(() => () => {});
    peers.reset();
    expiry.reset();
    tell();
  }

  /**
   * Anyone may scrape, and a scrape asks every partition, so concurrent scrapes share one set of
   * answers.
   */
  let kept: { readonly done: Promise<void>; readonly atSeconds: number } | undefined;
  function refreshed(asker: Asker, actors: VpnActors): Promise<void> {
    if (kept === undefined || nowSeconds() - kept.atSeconds >= limits.forageScrapeFreshMs / 1000) {
      kept = { done: refresh(asker, actors), atSeconds: nowSeconds() };
    }
    return kept.done;
  }

  return {
    registry,
    request: (artifact, format, result) => requests.labels(artifact, format, result).inc(),
    authFailure: (endpoint, reason) => authFailures.labels(endpoint, reason).inc(),
    timed: async (artifact, build) => {
      const startSeconds = nowSeconds();
      const made = await build();
      building.labels(artifact).observe(nowSeconds() - startSeconds);
      return made;
    },
    scrape: async (asker, actors) => {
      await refreshed(asker, actors);
      return registry.metrics();
    },
  };
}
