/**
 * An issuer's keys over time: fetched from its JWKS URL or read from a file, and renewed in the
 * background. A failed renewal keeps the old keys.
 */
import { readFile, stat } from 'node:fs/promises';
import { backoffMs, jitter } from '../../lib/time/backoff.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import type { Algorithm } from './claims.ts';
import { parseJwks, type KeySet, type VerificationKey } from './jwks.ts';
import { MiB, seconds } from '../../schemas/limits/units.ts';

/** Largest key set. */
export const jwksBytes = 1 * MiB;
/** Deadline of a read of a key set. */
const jwksFetchMs = 5 * seconds;
/** The first and the longest pause after a failed read. */
const jwksBackoffMinMs = 1 * seconds;
export const jwksBackoffMaxMs = 60 * seconds;

export type KeySource =
  { readonly kind: 'url'; readonly url: string } | { readonly kind: 'file'; readonly path: string };

export type KeyAnswer =
  | { readonly kind: 'key'; readonly key: VerificationKey }
  /** The issuer's current keys include none with that id. */
  | { readonly kind: 'unknown' }
  /** It is unknown whether the issuer has such a key. */
  | { readonly kind: 'unavailable' };

/** Finds the keys of an issuer. */
export interface KeyFinder {
  find(keyId: string, algorithm: Algorithm): Promise<KeyAnswer>;
}

/** Reads the set again; undefined if it has not changed. Rejects if it is unavailable. */
type Read = () => Promise<KeySet | undefined>;

const tooLarge = `the key set is larger than ${jwksBytes} bytes`;

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += (chunk as Uint8Array).byteLength;
    if (bytes > jwksBytes) throw new Error(tooLarge);
    chunks.push(chunk as Uint8Array);
  }
  return Buffer.concat(chunks).toString('utf8');
}

const fromUrl =
  (url: string): Read =>
  async () => {
    const response = await fetch(url, {
      headers: { accept: 'application/jwk-set+json, application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(jwksFetchMs),
    });
    if (response.status !== 200) throw new Error(`the key server answered ${response.status}, not 200`);
    return parseJwks(await boundedText(response));
  };

function fromFile(path: string): Read {
  let seen = '';
  return async () => {
    const { mtimeMs, size, ino } = await stat(path);
    const now = `${mtimeMs} ${size} ${ino}`;
    if (now === seen) return undefined;
    if (size > jwksBytes) throw new Error(tooLarge);
    const keys = parseJwks(await readFile(path, 'utf8'));
    seen = now;
    return keys;
  };
}

/** Intervals between reads: a file takes only a `stat`, a URL a request to its server. */
const paceOf = (source: KeySource) =>
  source.kind === 'file'
    ? { read: fromFile(source.path), freshMs: limits.jwksFilePollMs, unknownKidMs: 0 }
    : { read: fromUrl(source.url), freshMs: limits.jwksFreshMs, unknownKidMs: limits.jwksUnknownKidMs };

export class IssuerKeys implements KeyFinder {
  readonly #issuer: string;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #pace: ReturnType<typeof paceOf>;
  #keys: KeySet | undefined;
  #readAtMs = -Infinity;
  #failures = 0;
  #notBeforeMs = 0;
  #reading: Promise<boolean> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(issuer: string, source: KeySource, dependencies: { log: Log; clock: Clock }) {
    this.#issuer = issuer;
    this.#log = dependencies.log;
    this.#clock = dependencies.clock;
    this.#pace = paceOf(source);
  }

  loaded(): boolean {
    return this.#keys !== undefined;
  }

  /** Reads the keys once, and then again and again in the background until `stop`. */
  async start(): Promise<void> {
    await this.#renew();
    const tick = (): void => {
      const nowMs = this.#clock.monotonicMs();
      const dueMs = this.#failures > 0 ? this.#notBeforeMs : this.#readAtMs + this.#pace.freshMs;
      if (nowMs >= dueMs) void this.#renew();
    };
    this.#timer = setInterval(tick, limits.jwksFilePollMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async find(keyId: string, algorithm: Algorithm): Promise<KeyAnswer> {
    if (this.#keys === undefined && !(await this.#renewIfAllowed())) return { kind: 'unavailable' };
    const known = await this.#lookUp(keyId, algorithm);
    if (known !== undefined) return known;
    // The key may be new. But a fetch for every such token would let anyone flood the issuer
    // through this gateway.
    const sinceReadMs = this.#clock.monotonicMs() - this.#readAtMs;
    if (this.#failures === 0 && sinceReadMs < this.#pace.unknownKidMs) return { kind: 'unknown' };
    if (!(await this.#renewIfAllowed())) return { kind: 'unavailable' };
    return (await this.#lookUp(keyId, algorithm)) ?? { kind: 'unknown' };
  }

  async #lookUp(keyId: string, algorithm: Algorithm): Promise<KeyAnswer | undefined> {
    const importing = this.#keys?.find(keyId, algorithm);
    if (importing === undefined) return undefined;
    try {
      return { kind: 'key', key: await importing };
    } catch (error) {
      this.#log.warn('jwks_key_damaged', { issuer: this.#issuer, keyId, error });
      return { kind: 'unknown' };
    }
  }

  /** After a failure, waits for the back-off to pass. */
  async #renewIfAllowed(): Promise<boolean> {
    const backingOff = this.#failures > 0 && this.#clock.monotonicMs() < this.#notBeforeMs;
    return backingOff && this.#reading === undefined ? false : this.#renew();
  }

  /** One fetch at a time; concurrent callers share its outcome. */
  #renew(): Promise<boolean> {
    return (this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = undefined;
    }));
  }

  async #readOnce(): Promise<boolean> {
    try {
      const keys = await this.#pace.read();
      if (keys !== undefined) {
        this.#keys = keys;
        this.#log.info('jwks_loaded', { issuer: this.#issuer, keys: keys.size });
      }
      this.#failures = 0;
      this.#readAtMs = this.#clock.monotonicMs();
      return this.#keys !== undefined;
    } catch (error) {
      const pauseMs = jitter(backoffMs(this.#failures, { minMs: jwksBackoffMinMs, maxMs: jwksBackoffMaxMs }));
      this.#failures++;
      this.#notBeforeMs = this.#clock.monotonicMs() + pauseMs;
      this.#log.warn('jwks_unavailable', { issuer: this.#issuer, kept: this.#keys?.size ?? 0, error });
      return false;
    }
  }
}
