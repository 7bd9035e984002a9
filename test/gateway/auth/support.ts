/** A verifier with one issuer, whose clock a test moves. */
import type { Test } from 'tap';
import type { Algorithm } from '../../../gateway/auth/claims.ts';
import { IssuerKeys, type KeySource } from '../../../gateway/auth/keys.ts';
import { Revocations } from '../../../gateway/auth/revocations.ts';
import { Verifier, type TrustedIssuer } from '../../../gateway/auth/verifier.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import type { Revocation } from '../../../schemas/api/tenant.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { recordingLog } from '../support.ts';
import { createIssuer, nowS, testAlgorithms, type TestIssuer } from '../tokens.ts';

/** The system's clock, which tests can move ahead. */
export function movableClock(): Clock & { advance(ms: number): void } {
  let aheadMs = 0;
  return {
    nowMs: () => Date.now() + aheadMs,
    monotonicMs: () => performance.now() + aheadMs,
    advance: (ms) => {
      aheadMs += ms;
    },
  };
}

export interface Stage {
  readonly issuer: TestIssuer;
  readonly verifier: Verifier;
  readonly revocations: Revocations;
  readonly keys: IssuerKeys;
  readonly clock: ReturnType<typeof movableClock>;
  readonly log: ReturnType<typeof recordingLog>;
  /** The verdict in words. */
  verdictOf(token: string): Promise<string>;
}

export async function stage(
  t: Test,
  options: { source?: (issuer: TestIssuer) => KeySource; algorithms?: readonly Algorithm[]; start?: boolean } = {},
): Promise<Stage> {
  const issuer = await createIssuer(temporaryFolder(t));
  const clock = movableClock();
  const log = recordingLog();
  const source = options.source?.(issuer) ?? { kind: 'file' as const, path: issuer.jwksFile };
  const keys = new IssuerKeys(issuer.name, source, { log, clock });
  if (options.start !== false) await keys.start();
  t.teardown(() => keys.stop());
  const trusted: TrustedIssuer = {
    issuer: issuer.name,
    audience: issuer.audience,
    algorithms: options.algorithms ?? testAlgorithms,
    tenantClaim: 'tenant_id',
    tenants: ['*'],
    operators: true,
    scopes: { claim: undefined, ignore: [] },
    keys,
  };
  const revocations = new Revocations();
  const verifier = new Verifier([trusted], revocations, { clock, log });
  const verdictOf = async (token: string): Promise<string> => {
    const verdict = verifier.recall(token) ?? (await verifier.verify(token));
    return verdict.kind === 'identity' ? `identity ${verdict.identity.tenant}` : `${verdict.kind} ${verdict.why}`;
  };
  return { issuer, verifier, revocations, keys, clock, log, verdictOf };
}

export const revocationOf = (match: Revocation['match'], more: Partial<Revocation> = {}): Revocation => ({
  tenant: 'acme' as TenantId,
  match,
  issuedUntilS: nowS() + 1,
  untilMs: Date.now() + 3_600_000,
  ...more,
});
