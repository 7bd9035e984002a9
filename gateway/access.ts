/** Builds everything that decides which requests are admitted, from the configuration. */
import type { Clock } from '../lib/time/clock.ts';
import type { Log } from '../lib/log.ts';
import type { IssuerSetting } from './configuration/issuers.ts';
import { trustedProxies } from './configuration/proxies.ts';
import type { GatewayConfiguration } from './configuration/settings.ts';
import type { Meters } from './metrics.ts';
import { ClientAddresses } from './auth/client-address.ts';
import { Gate, type GateOptions } from './auth/gate.ts';
import { IssuerKeys } from './auth/keys.ts';
import { RateLimiter } from './auth/rate-limits.ts';
import { Revocations } from './auth/revocations.ts';
import { Verifier, type TrustedIssuer } from './auth/verifier.ts';

export interface AccessOptions {
  readonly configuration: GatewayConfiguration;
  readonly issuers: readonly IssuerSetting[];
  /** The cluster itself, which signs tokens too. */
  readonly ownIssuer: TrustedIssuer;
  readonly knowledgeOf: GateOptions['knowledgeOf'];
  readonly clock: Clock;
  readonly log: Log;
  readonly meters: Meters;
}

export interface Access {
  readonly gate: Gate;
  readonly verifier: Verifier;
  readonly revocations: Revocations;
  readonly tenantRates: RateLimiter;
  readonly clients: ClientAddresses;
  startKeys(): void;
  stopKeys(): void;
  /** True once the keys of every issuer have been read. */
  keysLoaded(): boolean;
}

export function createAccess(options: AccessOptions): Access {
  const { configuration, knowledgeOf, clock, log, meters } = options;
  const rate = (perSecond: number, burst: number, isShared = false) =>
    new RateLimiter({ perSecond, burst }, clock, { shared: isShared });
  const tenantRates = rate(
    configuration.RATE_LIMIT_TENANT_PER_SECOND,
    configuration.RATE_LIMIT_TENANT_BURST,
    configuration.REDIS_URL !== undefined,
  );
  const issuers = options.issuers.map((issuer) => ({
    ...issuer,
    keys: new IssuerKeys(issuer.issuer, issuer.source, { log, clock }),
  }));
  const revocations = new Revocations();
  const verifier = new Verifier([...issuers, options.ownIssuer], revocations, {
    clock,
    log,
    tokenLifeMaxMs: configuration.AUTH_TOKEN_LIFE_MAX,
    counted: (result) => meters.token(result),
  });
  const clients = new ClientAddresses(trustedProxies(configuration.TRUSTED_PROXIES), { clock, log });
  const gate = new Gate({
    verifier,
    tenantRates,
    failureRates: rate(configuration.RATE_LIMIT_AUTH_FAILURES_PER_SECOND, configuration.RATE_LIMIT_AUTH_FAILURES_BURST),
    publicRates: rate(configuration.RATE_LIMIT_PUBLIC_PER_SECOND, configuration.RATE_LIMIT_PUBLIC_BURST),
    clients,
    meters,
    knowledgeOf,
  });
  return {
    gate,
    verifier,
    revocations,
    tenantRates,
    clients,
    startKeys: () => issuers.forEach(({ keys }) => void keys.start()),
    stopKeys: () => issuers.forEach(({ keys }) => keys.stop()),
    keysLoaded: () => issuers.every(({ keys }) => keys.loaded()),
  };
}
