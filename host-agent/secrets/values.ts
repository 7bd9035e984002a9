/**
 * The values of secrets, and the logins of registries, as a container needs them. They are opened
 * for one use and kept nowhere else (ADR 38).
 */
import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import type { SecretUse } from '../../schemas/api/secret.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import { UnsealedKey, UnsealedLogin, UnsealedSecret } from '../../schemas/wire/unseal.ts';
import type { Needed, Needing, Unseal } from '../link/unseal.ts';
import type { Metrics } from '../metrics.ts';
import type { VpnKeyOf } from '../network/vpn.ts';
import type { SealedKey, SealedCache } from './sealed-cache.ts';
import type { SealKey } from './seal-key.ts';

const decodeSecret = decoder(UnsealedSecret);
const decodeLogin = decoder(UnsealedLogin);
const decodeKey = decoder(UnsealedKey);

/** A secret that a container can't get now. */
export interface Missing {
  readonly kind: 'missing';
  readonly secret: string;
  readonly why: string;
}

export type EnvValues = { readonly kind: 'env'; readonly env: Readonly<Record<string, string>> } | Missing;

export type Value = { readonly kind: 'value'; readonly bytes: Buffer } | Missing;

export type Content =
  { readonly kind: 'value'; readonly bytes: Buffer } | { readonly kind: 'missing'; readonly why: string };

export type KeyValue =
  | { readonly kind: 'key'; readonly key: UnsealedKey }
  /** `isFinal`: the control plane has answered that the host does not get it. */
  | { readonly kind: 'missing'; readonly why: string; readonly isFinal: boolean };

export type Login =
  | { readonly kind: 'login'; readonly login: UnsealedLogin; /** The newest there is. */ readonly isCurrent: boolean }
  /** The tenant has no login for this registry. */
  | { readonly kind: 'none' }
  /** It is unknown whether there is one. */
  | { readonly kind: 'unknown' };

export interface Values {
  /** Never rejects. */
  secret(who: Needing, use: SecretUse): Promise<Value>;
  /** The content of a file of its document, by its hash. It is not cached. Never rejects. */
  file(who: Needing, sha256: string): Promise<Content>;
  /** The values of a container's environment. Never rejects. */
  env(container: DesiredContainer): Promise<EnvValues>;
  /**
   * Asks each time, so that a changed login is used at once; what is on disk serves while the
   * control plane is away. Never rejects.
   */
  login(who: Needing, registry: string): Promise<Login>;
  /**
   * The secret that belongs to a public key of WireGuard; only the certificate with it changes.
   * What is on disk serves while nobody gives another one. Never rejects.
   */
  vpnKey(publicKey: string, of: VpnKeyOf): Promise<KeyValue>;
}

export interface ValuesParts {
  readonly key: SealKey;
  readonly sealedCache: SealedCache;
  readonly unseal: Unseal;
  readonly metrics: Pick<Metrics, 'unseal'>;
  readonly log: Log;
}

export function createValues({ key, sealedCache, unseal, metrics, log }: ValuesParts): Values {
  /** `undefined` if it is damaged. */
  const opened = <T>(box: string, decode: (bytes: Uint8Array) => T): T | undefined => {
    const bytes = key.open(box);
    try {
      return bytes === undefined ? undefined : decode(bytes);
    } catch {
      return undefined;
    }
  };

  /** The value in the cache on disk; a box that does not open is dropped. */
  const kept = async <T>(of: SealedKey, decode: (bytes: Uint8Array) => T): Promise<T | undefined> => {
    const box = await sealedCache.get(of);
    if (box === undefined) return undefined;
    const value = opened(box, decode);
    if (value === undefined) {
      damaged(of);
      await sealedCache.drop(of);
    }
    return value;
  };
  const damaged = (of: SealedKey): void => {
    metrics.unseal('damaged');
    log.warn('sealed_value_damaged', 'tenant' in of ? { tenant: of.tenant } : of);
  };

  const login: Values['login'] = async ({ tenant, id }, registry) => {
    const of = { tenant, registry };
    const answer = await unseal({ tenant, id, registry });
    switch (answer.kind) {
      case 'refused':
        return { kind: 'unknown' };
      case 'unavailable': {
        const known = await kept(of, decodeLogin);
        return known === undefined ? { kind: 'unknown' } : { kind: 'login', login: known, isCurrent: false };
      }
      case 'box': {
        const { box } = answer;
        if (box === null) {
          await sealedCache.drop(of);
          return { kind: 'none' };
        }
        const given = opened(box, decodeLogin);
        if (given === undefined) {
          damaged(of);
          return { kind: 'unknown' };
        }
        await sealedCache.put(of, box);
        return { kind: 'login', login: given, isCurrent: true };
      }
    }
  };

  /** A value that never changes: from the disk, or asked for once and kept there. */
  const obtained = async <T extends object>(
    of: SealedKey,
    decode: (bytes: Uint8Array) => T,
    what: Needed | VpnKeyOf,
    isEnough: (known: T) => boolean = () => true,
  ): Promise<{ readonly value: T } | { readonly why: string; readonly isFinal: boolean }> => {
    const known = await kept(of, decode);
    if (known !== undefined && isEnough(known)) return { value: known };
    const answer = await unseal(what);
    if (answer.kind !== 'box') {
      const missing = { why: answer.message, isFinal: answer.kind === 'refused' };
      return known === undefined ? missing : { value: known };
    }
    if (answer.box === null) return { why: 'the control plane does not have it', isFinal: true };
    const given = opened(answer.box, decode);
    if (given === undefined) {
      damaged(of);
      return { why: 'what the control plane sent cannot be opened', isFinal: true };
    }
    await sealedCache.put(of, answer.box);
    return { value: given };
  };

  const secret: Values['secret'] = async ({ tenant, id }, { name, version }) => {
    const use = { name, version };
    const got = await obtained({ tenant, secret: use }, decodeSecret, { tenant, id, secret: use });
    return 'why' in got ? { kind: 'missing', secret: name, why: got.why } : valueOf(got.value);
  };

  const vpnKey: Values['vpnKey'] = async (publicKey, of) => {
    const { certificate, isRenewal, ...what } = { certificate: undefined, isRenewal: undefined, ...of };
    const isEnough = ({ ike }: UnsealedKey): boolean =>
      isRenewal !== true && (certificate === undefined || ike.serial === certificate);
    const got = await obtained({ publicKey }, decodeKey, what, isEnough);
    return 'why' in got ? { kind: 'missing', ...got } : { kind: 'key', key: got.value };
  };

  return {
    secret,
    login,
    vpnKey,
    file: async ({ tenant, id }, sha256) => {
      const answer = await unseal({ tenant, id, file: sha256 });
      if (answer.kind !== 'box') return { kind: 'missing', why: answer.message };
      const given = answer.box === null ? undefined : opened(answer.box, decodeSecret);
      const bytes = given === undefined ? undefined : Buffer.from(given.value, 'base64');
      return bytes !== undefined && createHash('sha256').update(bytes).digest('hex') === sha256
        ? { kind: 'value', bytes }
        : { kind: 'missing', why: 'what the control plane sent is not its content' };
    },
    env: async (container) => {
      const uses = Object.entries(container.secrets?.env ?? {});
      const asked = uses.map(async ([key, use]) => ({ key, use, value: await secret(container, use) }));
      const env: [name: string, text: string][] = [];
      for (const { key, use, value } of await Promise.all(asked)) {
        if (value.kind === 'missing') return value;
        const text = textOf(value.bytes);
        if (text === undefined) {
          const why = 'its value is no text (UTF-8 without NUL), so it can be a file and no environment variable';
          return { kind: 'missing', secret: use.name, why };
        }
        env.push([key, text]);
      }
      // An assignment would lose a variable of the name `__proto__`.
      return { kind: 'env', env: Object.fromEntries(env) };
    },
  };
}

const valueOf = ({ value }: UnsealedSecret): Value => ({ kind: 'value', bytes: Buffer.from(value, 'base64') });

/** `undefined` if the bytes cannot be an environment variable. */
const textOf = (bytes: Buffer): string | undefined =>
  isUtf8(bytes) && !bytes.includes(0) ? bytes.toString('utf8') : undefined;
