/**
 * Verifies tokens and returns the identity that each proves. A verified token is cached under its
 * SHA-256 for at most a minute; expiry and revocation are checked at every use. Failures are not
 * cached, so they cannot fill the cache.
 */
import { hash } from 'node:crypto';
import { errors, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import {
  claimsOf,
  clockToleranceS,
  identityOf,
  namesOf,
  preview,
  type Identity,
  type Issuer,
  type Preview,
} from './claims.ts';
import type { KeyFinder } from './keys.ts';
import type { Revocations } from './revocations.ts';
import { isScope } from './scopes.ts';

/** Unknown scopes of tokens that the log names, and the characters that it shows of each. */
export const scopesLogged = 1000;
export const scopeLoggedChars = 64;
/** Signatures that are being verified at a time. */
const tokensVerifying = 256;

export type Verdict =
  | { readonly kind: 'identity'; readonly identity: Identity }
  /** `forgedFor`: the id of the key that the token names, but that did not sign it. */
  | { readonly kind: 'refused'; readonly why: string; readonly forgedFor?: string }
  /** The verdict needs keys that are unavailable. */
  | { readonly kind: 'unavailable'; readonly why: string };

export interface TrustedIssuer extends Issuer {
  readonly keys: KeyFinder;
}

interface Cached {
  readonly verdict: Verdict & { readonly kind: 'identity' };
  readonly untilMs: number;
}

const keyOf = (token: string): string => hash('sha256', token, 'base64');
/** The beginning of a token's hash: enough to tell two tokens apart in a log. */
export const shortHash = (key: string): string => key.slice(0, 12);
const refused = (why: string): Verdict => ({ kind: 'refused', why });
const expired = refused('expired');
const revoked = refused('revoked');
const tooMany: Verdict = { kind: 'unavailable', why: 'too many tokens are being verified' };

export class Verifier {
  readonly #issuers: readonly TrustedIssuer[];
  readonly #revocations: Revocations;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #lifeMaxS: number;
  readonly #cache = new LRUCache<string, Cached>({ max: limits.tokenCacheEntries });
  readonly #verifying = new Map<string, Promise<Verdict>>();
  /** Unknown words in scopes, each of which is logged once. */
  readonly #toldScopes = new Set<string>();
  readonly #counted: (result: 'hit' | 'miss') => void;

  constructor(
    issuers: readonly TrustedIssuer[],
    revocations: Revocations,
    dependencies: {
      clock: Clock;
      log: Log;
      tokenLifeMaxMs?: number;
      counted?: (result: 'hit' | 'miss') => void;
    },
  ) {
    this.#issuers = issuers;
    this.#revocations = revocations;
    this.#clock = dependencies.clock;
    this.#log = dependencies.log;
    this.#lifeMaxS = (dependencies.tokenLifeMaxMs ?? limits.tokenLifeMaxMs) / 1000;
    this.#counted = dependencies.counted ?? (() => {});
  }

  cacheEntries(): number {
    return this.#cache.size;
  }

  /** The cached verdict on a token; undefined if it must be verified. */
  recall(token: string): Verdict | undefined {
    const cached = this.#cache.get(keyOf(token));
    if (cached === undefined || this.#clock.nowMs() >= cached.untilMs) {
      this.#counted('miss');
      return undefined;
    }
    this.#counted('hit');
    return this.stillGood(cached.verdict.identity) ? cached.verdict : this.#whyNot(cached.verdict.identity);
  }

  /** True if this gateway verified the signature before, even if it must verify it again by now. */
  provedBefore(token: string): boolean {
    return this.#cache.peek(keyOf(token)) !== undefined;
  }

  /** The verdict that needs no key. */
  glance(token: string): Preview {
    return preview(token, this.#issuers, { nowS: this.#clock.nowMs() / 1000, lifeMaxS: this.#lifeMaxS });
  }

  /** Synchronous if the token can be refused without a key. */
  verify(token: string, glance: Preview = this.glance(token)): Verdict | Promise<Verdict> {
    const key = keyOf(token);
    if (glance.kind === 'refused') return refused(glance.why);
    const under = this.#verifying.get(key);
    if (under !== undefined) return under;
    if (this.#verifying.size >= tokensVerifying) return tooMany;
    const verifying = this.#verifyUncached(token, key, glance).finally(() => this.#verifying.delete(key));
    this.#verifying.set(key, verifying);
    return verifying;
  }

  /** For an identity that outlives its request: a stream ends with its token. */
  stillGood(identity: Identity): boolean {
    return identity.expiresAtS * 1000 > this.#clock.nowMs() && !this.#revocations.isRevoked(identity);
  }

  #whyNot(identity: Identity): Verdict {
    return identity.expiresAtS * 1000 > this.#clock.nowMs() ? revoked : expired;
  }

  async #verifyUncached(token: string, key: string, glance: Extract<Preview, { kind: 'plausible' }>): Promise<Verdict> {
    const issuer = this.#issuers[glance.issuerIndex];
    if (issuer === undefined) return refused('issuer');
    const found = await issuer.keys.find(glance.keyId, glance.algorithm);
    if (found.kind === 'unavailable') return { kind: 'unavailable', why: 'the keys of the issuer' };
    if (found.kind === 'unknown') return refused('unknown key');
    try {
      const { payload } = await jwtVerify(token, found.key, {
        algorithms: [...namesOf(glance.algorithm)],
        issuer: issuer.issuer,
        audience: issuer.audience,
        requiredClaims: ['iss', 'aud', 'exp', 'sub', issuer.tenantClaim],
        clockTolerance: clockToleranceS,
        currentDate: new Date(this.#clock.nowMs()),
      });
      return this.#accept(key, payload, issuer, glance.keyId);
    } catch (error) {
      // Any other error means that jose refuses the key, such as an RSA key under 2048 bits.
      if (!(error instanceof errors.JOSEError)) this.#log.warn('token_key_unfit', { keyId: glance.keyId, error });
      return { kind: 'refused', why: 'signature', forgedFor: glance.keyId };
    }
  }

  #accept(key: string, payload: unknown, issuer: Issuer, keyId: string): Verdict {
    const claims = claimsOf(payload);
    const identity = claims === undefined ? undefined : identityOf(claims, issuer, `${keyId} ${shortHash(key)}`);
    if (identity === undefined) return refused('claims');
    this.#tellUnknownScopes(identity, issuer);
    const verdict = { kind: 'identity', identity } as const;
    // Also caches a revoked token: revocation is checked at every use, and sending the token again
    // must not cost a verification.
    this.#cache.set(key, { verdict, untilMs: this.#clock.nowMs() + limits.tokenCacheTtlMs });
    return this.stillGood(identity) ? verdict : this.#whyNot(identity);
  }

  /** The issuer's mistake is a 403 for its users, and only the operator can see why. */
  #tellUnknownScopes({ scopes, tenant }: Identity, { issuer }: Issuer): void {
    for (const scope of scopes) {
      const told = `${issuer} ${scope}`;
      if (isScope(scope) || this.#toldScopes.has(told) || this.#toldScopes.size >= scopesLogged) continue;
      this.#toldScopes.add(told);
      this.#log.warn('scope_unknown', { issuer, scope: scope.slice(0, scopeLoggedChars), tenant });
    }
  }
}
