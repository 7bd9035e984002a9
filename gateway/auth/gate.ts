/** Who a request is from: credentials, verdict, and how often one address may be wrong. */
import type { BlockList } from 'node:net';
import { isIPv6 } from 'node:net';
import type { TenantId } from '../../schemas/ids.ts';
import type { PeerGrant } from '../../schemas/peer.ts';
import type { RequestHead } from '../http/engine.ts';
import type { Meters } from '../metrics.ts';
import type { RateLimiter } from '../rate-limits.ts';
import { failure, rateLimited, type Result } from '../respond.ts';
import type { Identity } from './claims.ts';
import { credentialsOf, isCrossSite } from './credentials.ts';
import type { Knowledge } from './revocation-feed.ts';
import type { Verdict, Verifier } from './verifier.ts';

export type Admission =
  /** `crossSite`: made by another site with the user's cookie; refused after everything else was looked at. */
  | { readonly kind: 'admitted'; readonly identity: Identity; readonly crossSite: boolean }
  /** By a token in the URL, which is good for the files of one peer. */
  | { readonly kind: 'granted'; readonly grant: PeerGrant }
  | { readonly kind: 'refused'; readonly result: Result };

export interface GateOptions {
  readonly verifier: Verifier;
  readonly tenantRates: RateLimiter;
  readonly failureRates: RateLimiter;
  readonly trustedProxies: BlockList;
  readonly meters: Meters;
  /** Whether it is known which of a tenant's tokens are revoked. */
  readonly knowledgeOf: (tenant: TenantId) => Knowledge;
}

export const unauthenticated: Admission = { kind: 'refused', result: failure('unauthenticated') };
const unavailable: Admission = { kind: 'refused', result: failure('unavailable') };
/** Nobody can tell whether the token is revoked: no 401, for it may be good. */
const unknown: Readonly<Record<Exclude<Knowledge, 'known'>, Admission>> = {
  unheard: unavailable,
  damaged: {
    kind: 'refused',
    result: failure(
      'unavailable',
      'the record of this tenant is damaged, so it is unknown which of its tokens are revoked; contact support with the request id',
    ),
  },
  too_many: {
    kind: 'refused',
    result: failure(
      'unavailable',
      'more tokens of this tenant are revoked than are kept; an operator can revoke all tokens of the tenant instead',
    ),
  },
};

/**
 * The client's address: of the socket, or where a trusted proxy is at its other end, the last one in X-Forwarded-For that
 * is none of ours. What stands before it anybody may have written.
 */
export function clientAddress({ address, headers }: RequestHead, trusted: BlockList): string {
  const isTrusted = (candidate: string): boolean => trusted.check(candidate, isIPv6(candidate) ? 'ipv6' : 'ipv4');
  if (headers.forwardedFor === undefined || !isTrusted(address)) return address;
  const hops = headers.forwardedFor.split(',').map((hop) => hop.trim());
  return hops.findLast((hop) => !isTrusted(hop)) ?? address;
}

export class Gate {
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** At once for a token that is remembered. */
  admit(head: RequestHead): Admission | Promise<Admission> {
    const { verifier, meters } = this.#options;
    const credentials = credentialsOf(head.headers);
    switch (credentials.kind) {
      case 'none':
        meters.authFailure('none');
        return unauthenticated;
      case 'malformed':
        return this.#refuse(head, 'malformed');
      case 'token': {
        const recalled = verifier.recall(credentials.token);
        if (recalled !== undefined) return this.#conclude(head, credentials.from, recalled);
        const limited = this.limitedByFailures(head);
        if (limited !== undefined) return limited;
        const verdict = verifier.verify(credentials.token);
        return verdict instanceof Promise
          ? verdict.then((later) => this.#conclude(head, credentials.from, later))
          : this.#conclude(head, credentials.from, verdict);
      }
    }
  }

  /** A refusal where this address was wrong too often of late. */
  limitedByFailures(head: RequestHead): Admission | undefined {
    const { failureRates, meters, trustedProxies } = this.#options;
    const retryAfter = failureRates.peek(clientAddress(head, trustedProxies));
    if (retryAfter === 0) return undefined;
    meters.rateLimited('address');
    return { kind: 'refused', result: rateLimited(retryAfter) };
  }

  /** A refusal where the tenant asks too much; otherwise this request is counted. */
  limitedByTenant(tenant: TenantId): Admission | undefined {
    const retryAfter = this.#options.tenantRates.take(tenant);
    if (retryAfter === 0) return undefined;
    this.#options.meters.rateLimited('tenant');
    return { kind: 'refused', result: rateLimited(retryAfter) };
  }

  countFailure(head: RequestHead): void {
    this.#options.failureRates.take(clientAddress(head, this.#options.trustedProxies));
  }

  #refuse(head: RequestHead, why: string): Admission {
    this.#options.meters.authFailure(why);
    this.countFailure(head);
    return unauthenticated;
  }

  #conclude(head: RequestHead, from: 'bearer' | 'cookie', verdict: Verdict): Admission {
    const { meters, knowledgeOf } = this.#options;
    switch (verdict.kind) {
      case 'refused':
        return this.#refuse(head, verdict.why);
      case 'unavailable':
        meters.authFailure('unavailable');
        return unavailable;
      case 'identity': {
        const { identity } = verdict;
        const knowledge = knowledgeOf(identity.tenant);
        if (knowledge !== 'known') {
          meters.authFailure('revocations unknown');
          return unknown[knowledge];
        }
        return (
          this.limitedByTenant(identity.tenant) ?? {
            kind: 'admitted',
            identity,
            crossSite: isCrossSite(head.method, from, head.headers),
          }
        );
      }
    }
  }
}
