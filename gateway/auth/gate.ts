/** Admission: checks credentials, and limits how many failures one client may have. */
import { needsTwin } from '../../schemas/api/keys/session-id.ts';
import type { TenantId } from '../../schemas/ids.ts';
import type { OwnToken } from '../../schemas/routes.ts';
import type { RequestHead } from '../http/engine/engine.ts';
import type { Meters } from '../metrics.ts';
import type { RateLimiter } from './rate-limits.ts';
import { failure, rateLimited, type Result } from '../http/respond.ts';
import type { Identity, TokenGrant } from './claims.ts';
import type { ClientAddresses } from './client-address.ts';
import { credentialsOf, isCrossSite, isOwnOrigin, type Credentials, type Source } from './credentials.ts';
import type { Knowledge } from './revocation-feed.ts';
import type { Verdict, Verifier } from './verifier.ts';

export type Admission =
  /**
   * `crossSite`: another site made the request with the user's cookie; that is refused last.
   * `isOfOurs`: a page of our own made it, or a client without a cookie.
   */
  | {
      readonly kind: 'admitted';
      readonly identity: Identity;
      readonly crossSite: boolean;
      readonly isOfOurs: boolean;
    }
  /** Admitted by a token in the URL, which opens the files of one peer. */
  | { readonly kind: 'granted'; readonly grant: TokenGrant }
  | Refusal;

export interface Refusal {
  readonly kind: 'refused';
  readonly result: Result;
}

export interface GateOptions {
  readonly verifier: Verifier;
  readonly tenantRates: RateLimiter;
  readonly failureRates: RateLimiter;
  readonly publicRates: RateLimiter;
  readonly clients: ClientAddresses;
  readonly meters: Meters;
  /** The state of a tenant's revocations at this gateway. */
  readonly knowledgeOf: (tenant: TenantId) => Knowledge;
}

export const unauthenticated: Admission = { kind: 'refused', result: failure('unauthenticated') };
const unavailable: Admission = { kind: 'refused', result: failure('unavailable') };
/** It is unknown whether the token is revoked: 503 and not 401, because it may be valid. */
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
      'this tenant has more revoked tokens than the gateway keeps; ask an operator to revoke all tokens of the tenant instead',
    ),
  },
};

/**
 * The budget that a failure counts against, besides the client's. Each kind has its own budget, so
 * that junk of one kind does not lock out others behind a shared address. `key <id>`: wrong
 * signatures that name this published key. `url token <hash>`: a token that was valid before.
 */
export type FailureKind = `key ${string}` | 'url token' | `url token ${string}` | OwnToken;

export class Gate {
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** Synchronous for a cached token. */
  admit(head: RequestHead): Admission | Promise<Admission> {
    const credentials = credentialsOf(head.headers);
    switch (credentials.kind) {
      case 'none':
        return this.#refuse('none');
      case 'malformed':
        return this.#refuse('malformed');
      case 'token':
        return this.#byToken(head, credentials);
    }
  }

  /**
   * Refusing a token without a key is cheap and has no limit. Verifying a signature is not, so a
   * client that sends wrong ones is limited; but never a token that this gateway verified before.
   */
  #byToken(
    head: RequestHead,
    { token, from }: Extract<Credentials, { readonly kind: 'token' }>,
  ): Admission | Promise<Admission> {
    const { verifier } = this.#options;
    const recalled = verifier.recall(token);
    if (recalled !== undefined) return this.#conclude(head, from, recalled);
    const glance = verifier.glance(token);
    if (glance.kind === 'refused') return this.#refuse(glance.why);
    const limited = verifier.provedBefore(token) ? undefined : this.limitedByFailures(head, `key ${glance.keyId}`);
    if (limited !== undefined) return limited;
    const verdict = verifier.verify(token, glance);
    return verdict instanceof Promise
      ? verdict.then((later) => this.#conclude(head, from, later))
      : this.#conclude(head, from, verdict);
  }

  /** The name under which this request counts against client limits. */
  clientOf(head: RequestHead): string {
    return this.#options.clients.clientOf(head);
  }

  /** A refusal if this client has had too many failures recently. */
  limitedByFailures(head: RequestHead, kind: FailureKind): Refusal | undefined {
    const retryAfter = this.#options.failureRates.peek(this.#bucketOf(head, kind));
    if (retryAfter === 0) return undefined;
    this.#options.meters.rateLimited('address');
    return { kind: 'refused', result: rateLimited(retryAfter) };
  }

  /** A refusal if the tenant is over its rate; otherwise counts this request. */
  limitedByTenant(tenant: TenantId): Admission | undefined {
    const retryAfter = this.#options.tenantRates.take(tenant);
    if (retryAfter === 0) return undefined;
    this.#options.meters.rateLimited('tenant');
    return { kind: 'refused', result: { ...rateLimited(retryAfter), headers: this.rateHeaders(tenant) } };
  }

  /** Headers about the tenant's rate (draft-ietf-httpapi-ratelimit-headers). */
  rateHeaders(tenant: TenantId): readonly string[] {
    const { left, quota, windowS, fullS } = this.#options.tenantRates.budget(tenant);
    const policy = `"tenant";q=${quota};w=${windowS}`;
    return ['ratelimit-policy', policy, 'ratelimit', `"tenant";r=${left};t=${fullS}`];
  }

  /**
   * A refusal if this client is over the rate of public requests; otherwise counts this request.
   */
  limitedByAddress(head: RequestHead): Refusal | undefined {
    const { publicRates, meters } = this.#options;
    const retryAfter = publicRates.take(this.clientOf(head));
    if (retryAfter === 0) return undefined;
    meters.rateLimited('address');
    return { kind: 'refused', result: rateLimited(retryAfter) };
  }

  /** The client's address, for the log. */
  addressOf(head: RequestHead): string {
    return this.#options.clients.addressOf(head);
  }

  countFailure(head: RequestHead, kind: FailureKind): void {
    this.#options.failureRates.take(this.#bucketOf(head, kind));
  }

  #bucketOf(head: RequestHead, kind: FailureKind): string {
    return `${this.clientOf(head)} ${kind}`;
  }

  #refuse(why: string): Admission {
    this.#options.meters.authFailure(why);
    return unauthenticated;
  }

  #conclude(head: RequestHead, from: Source, verdict: Verdict): Admission {
    const { meters, knowledgeOf, verifier } = this.#options;
    switch (verdict.kind) {
      case 'refused':
        if (verdict.forgedFor !== undefined) this.countFailure(head, `key ${verdict.forgedFor}`);
        return this.#refuse(verdict.why);
      case 'unavailable':
        meters.authFailure('unavailable');
        return unavailable;
      case 'identity': {
        const { identity } = verdict;
        if (from === 'cookie' && needsTwin(identity.tokenId)) return this.#refuse('planted cookie');
        const knowledge = knowledgeOf(identity.tenant);
        if (knowledge !== 'known') {
          meters.authFailure('revocations unknown');
          return unknown[knowledge];
        }
        // A revocation may have arrived while the signature was being verified.
        if (!verifier.stillGood(identity)) return this.#refuse('revoked');
        return (
          this.limitedByTenant(identity.tenant) ?? {
            kind: 'admitted',
            identity,
            crossSite: isCrossSite(head.method, from, head.headers),
            isOfOurs: from === 'bearer' || isOwnOrigin(head.headers),
          }
        );
      }
    }
  }
}
