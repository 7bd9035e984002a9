/**
 * The keys that the cluster signs its own tokens with (ADR 41): made when the first token is asked
 * for, sealed by the vault, kept by one owner, and read again every minute. A key counts only if
 * its private part opens: a client that may ask owners, but lacks the vault's keys, can't add one.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { SignJWT, importJWK } from 'jose';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import type { Log } from '../../lib/log.ts';
import type { AskOwner } from '../../lib/rpc/partition-client.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { ownIssuer, signingPartition, type KeySet } from '../../schemas/api/keys/signing-key.ts';
import type { OperationId, TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { SigningKeyPage } from '../../schemas/wire/answers.ts';
import type { Origin } from '../../schemas/wire/asks.ts';
import type { Issuer } from '../auth/claims.ts';
import type { VerificationKey } from '../auth/jwks.ts';
import type { KeyAnswer, KeyFinder } from '../auth/keys.ts';
import { succeeded, written } from '../call.ts';
import type { Cause } from '../../schemas/wire/audit.ts';
import { conflict, failure, type Result } from '../http/respond.ts';
import { noVaultKeys, SealError, type Vault } from '../vault/vault.ts';
import { seconds } from '../../schemas/limits/units.ts';

/** Deadline of a read of the signing keys. */
const signingKeysReadMs = 5 * seconds;

/** The rules for the cluster's own tokens: a gateway has checked what they say before it signed. */
export const ownTokens: Issuer = {
  issuer: ownIssuer,
  audience: ownIssuer,
  algorithms: ['EdDSA'],
  tenantClaim: 'tenant_id',
  tenants: ['*'],
  operators: true,
  scopes: { claim: undefined, ignore: [] },
};

export interface SigningKeysOptions {
  readonly vault: Vault | undefined;
  readonly ask: AskOwner;
  readonly tokenLifeMaxMs: number;
  readonly newKeyId: () => string;
  readonly newOperationId: () => OperationId;
  readonly clock: Clock;
  readonly log: Log;
}

/** The claims of a token that the cluster signs. */
export interface OwnClaims {
  /** `jti`: of a key, or of a session. */
  readonly id: string;
  readonly tenant: TenantId;
  readonly subject: string;
  readonly scopes: readonly string[];
  readonly issuedAtS: number;
  readonly expiresAtS: number;
}

/** Of a request that needs a key. */
export interface KeyRequest {
  readonly origin: Origin;
  readonly deadlineMs: number;
  /** Set if the request itself is about the signing keys. */
  readonly cause?: Cause | undefined;
}

type PublicKey = KeySet['keys'][number];

interface OpenedKey {
  readonly id: string;
  readonly isCurrent: boolean;
  readonly privateKey: KeyObject;
  readonly jwk: PublicKey;
  readonly verificationKey: Promise<VerificationKey>;
}

interface Known {
  readonly page: SigningKeyPage;
  readonly opened: ReadonlyMap<string, OpenedKey>;
}

const pollRide = 'signing-keys';

const notOpened =
  'the vault keys of this gateway do not open the signing key of the cluster; the operator must give it the missing ' +
  'vault key, or rotate the signing keys';

const publicPart = (id: string, privateKey: KeyObject): PublicKey => {
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' });
  return { kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig', kid: id, x };
};

export class SigningKeys implements KeyFinder {
  readonly #options: SigningKeysOptions;
  #known: Known | undefined;
  /** Ids of keys that do not open, each of which is logged once. */
  readonly #unopened = new Set<string>();
  #readAtMs = -Infinity;
  #reading: Promise<Result | Known> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SigningKeysOptions) {
    this.#options = options;
  }

  /** Reads them again and again in the background until `stop`. */
  start(): void {
    if (this.#options.vault === undefined) return;
    void this.#read();
    this.#timer = setInterval(() => void this.#read(), limits.signingKeysPollMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** `unavailable` also for a key that is one of ours, but does not open here. */
  async find(keyId: string): Promise<KeyAnswer> {
    if (this.#options.vault === undefined) return { kind: 'unavailable' };
    let known = this.#known;
    if (known === undefined || !has(known, keyId)) {
      // The key may be new. But an ask for every such token would let anyone flood the owner.
      const sinceReadMs = this.#options.clock.monotonicMs() - this.#readAtMs;
      if (sinceReadMs >= limits.signingKeysUnknownMs || this.#reading !== undefined) await this.#read();
      known = this.#known;
    }
    if (known === undefined) return { kind: 'unavailable' };
    const opened = known.opened.get(keyId);
    if (opened !== undefined) return { kind: 'key', key: await opened.verificationKey };
    return { kind: has(known, keyId) ? 'unavailable' : 'unknown' };
  }

  /** A token of the cluster; a failure if there is no key and none can be made. */
  async sign(claims: OwnClaims, request: KeyRequest): Promise<Result | { readonly token: string }> {
    const key = await this.#current(request);
    if ('code' in key) return key;
    const { id, tenant, subject, scopes, issuedAtS, expiresAtS } = claims;
    const token = await new SignJWT({ [ownTokens.tenantClaim]: tenant, scope: scopes.join(' ') })
      .setProtectedHeader({ alg: 'EdDSA', kid: key.id })
      .setIssuer(ownTokens.issuer)
      .setAudience(ownTokens.audience)
      .setSubject(subject)
      .setIssuedAt(issuedAtS)
      .setExpirationTime(expiresAtS)
      .setJti(id)
      .sign(key.privateKey);
    return { token };
  }

  /** The public keys. */
  async published(): Promise<Result | KeySet> {
    const known = await this.#knownOrRead();
    return 'code' in known ? known : { keys: [...known.opened.values()].map(({ jwk }) => jwk) };
  }

  async list(): Promise<Result | SigningKeyPage> {
    const known = await this.#read();
    return 'code' in known ? known : known.page;
  }

  /** Makes a new key the current one. */
  async rotate(request: KeyRequest, { endOthers }: { readonly endOthers: boolean }): Promise<Result | SigningKeyPage> {
    const before = await this.#read();
    if ('code' in before) return before;
    const after = await this.#make(before, request, endOthers);
    return 'code' in after ? after : after.page;
  }

  async #current(request: KeyRequest): Promise<Result | OpenedKey> {
    let known = await this.#knownOrRead();
    for (let attempt = 0; attempt < limits.sealAttempts; attempt++) {
      if ('code' in known) return known;
      const current = [...known.opened.values()].find(({ isCurrent }) => isCurrent);
      if (current !== undefined) return current;
      // To replace it unasked would let gateways with different vault keys replace each other's.
      if (currentIn(known) !== undefined) return failure('unavailable', notOpened);
      const made = await this.#make(known, request, false);
      // Another gateway may have made the first key at the same time.
      known = 'code' in made && made.code === 'precondition_failed' ? await this.#read() : made;
    }
    return conflict('changed', 'the signing keys were changed by others at the same time: send the request again');
  }

  async #make({ page }: Known, { origin, deadlineMs, cause }: KeyRequest, endOthers: boolean): Promise<Result | Known> {
    const { vault, ask, newKeyId, newOperationId, tokenLifeMaxMs } = this.#options;
    if (vault === undefined) return failure('unavailable', noVaultKeys);
    const id = newKeyId();
    const der = generateKeyPairSync('ed25519').privateKey.export({ format: 'der', type: 'pkcs8' });
    const key = { id, sealed: vault.seal({ of: 'signing_key', id }, der) };
    const replaces = currentIn({ page })?.id ?? null;
    const question = {
      type: 'signing_key.put',
      partition: signingPartition,
      key,
      replaces,
      lifeMaxMs: tokenLifeMaxMs,
      endOthers,
      ...written({ newOperationId }, { origin, cause }),
    } as const;
    const outcome = await ask('write', question, deadlineMs);
    if (!succeeded(outcome)) return outcome;
    return this.#take(vault, decodeAnswer('signing_key.put', outcome.body).data);
  }

  #knownOrRead(): Promise<Result | Known> {
    return this.#known === undefined ? this.#read() : Promise.resolve(this.#known);
  }

  /** One read at a time; concurrent callers share its outcome. */
  #read(): Promise<Result | Known> {
    return (this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = undefined;
    }));
  }

  async #readOnce(): Promise<Result | Known> {
    const { vault, ask, clock } = this.#options;
    if (vault === undefined) return failure('unavailable', noVaultKeys);
    this.#readAtMs = clock.monotonicMs();
    const question = { type: 'signing_key.list', partition: signingPartition, rid: pollRide } as const;
    const outcome = await ask('read', question, this.#readAtMs + signingKeysReadMs);
    if (!succeeded(outcome)) return outcome;
    try {
      return this.#take(vault, decodeAnswer('signing_key.list', outcome.body).data);
    } catch (error) {
      this.#options.log.error('signing_keys_malformed', { error });
      return failure('unavailable');
    }
  }

  #take(vault: Vault, page: SigningKeyPage): Known {
    const before = this.#known?.opened;
    const opened = page.flatMap((one) => {
      const known = before?.get(one.id);
      const key = known === undefined ? this.#open(vault, one) : { ...known, isCurrent: one.untilMs === null };
      return key === undefined ? [] : [[one.id, key] as const];
    });
    return (this.#known = { page, opened: new Map(opened) });
  }

  #open(vault: Vault, { id, sealed, untilMs }: SigningKeyPage[number]): OpenedKey | undefined {
    if (sealed === null) return undefined;
    try {
      const der = vault.openBytes({ of: 'signing_key', id }, sealed);
      const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
      const jwk = publicPart(id, privateKey);
      return { id, isCurrent: untilMs === null, privateKey, jwk, verificationKey: importJWK(jwk, 'EdDSA') };
    } catch (error) {
      if (!(error instanceof SealError)) throw error;
      if (!this.#unopened.has(id)) this.#options.log.error('signing_key_open_failed', { keyId: id, why: error.why });
      this.#unopened.add(id);
      return undefined;
    }
  }
}

/** The current key, even if it does not open here; a damaged key does not count. */
const currentIn = ({ page }: Pick<Known, 'page'>) =>
  page.find(({ sealed, untilMs }) => sealed !== null && untilMs === null);

const has = ({ page }: Known, keyId: string): boolean => page.some(({ id }) => id === keyId);
