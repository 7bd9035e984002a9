/**
 * Secrets at rest. Each secret is encrypted under a data key of its own, and the data key under one
 * of the operator's keys, both with AES-256-GCM. For a new operator's key, only the data keys are
 * wrapped again; no secret is opened.
 *
 *     v1.<key id>.<nonce, wrapped data key, tag>.<nonce, ciphertext, tag>
 *
 * Both layers are authenticated with the place of the secret: it does not open in another record or
 * field. The wrapped data key is also authenticated with the key's id.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { ConfigurationError } from '../../lib/config.ts';
import type { KeptPlace, PassingPlace, Sealed, SecretPlace } from '../../schemas/records/sealed.ts';

export interface VaultKey {
  readonly id: string;
  readonly key: Uint8Array;
}

type Place = SecretPlace | PassingPlace | KeptPlace;

const keyBytes = 32;
/**
 * NIST SP 800-38D: the nonce size that needs no further step (section 5.2.1.1) and the longest tag
 * (section 5.2.1.2).
 */
const nonceBytes = 12;
const tagBytes = 16;
const version = 'v1';

/**
 * Parses lines of `<id>:<base64 of 32 bytes>`; `#` begins a comment line. The first key is the
 * current one. @throws ConfigurationError that names the lines and never shows their content
 */
export function parseVaultKeys(text: string): VaultKey[] {
  const keys: VaultKey[] = [];
  const faults: string[] = [];
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const where = `vault keys, line ${index + 1}`;
    const match = /^([A-Za-z0-9_-]{1,32}):\s*([A-Za-z0-9+/]+=*)$/.exec(line);
    const [, id = '', encoded = ''] = match ?? [];
    const key = Buffer.from(encoded, 'base64');
    if (match === null) faults.push(`${where}: must be <id>:<base64>, the id of 1 to 32 of A-Z a-z 0-9 _ -`);
    else if (key.length !== keyBytes || key.toString('base64') !== encoded) {
      faults.push(`${where}: must hold ${keyBytes} bytes in base64`);
    } else if (keys.some((known) => known.id === id)) faults.push(`${where}: has the id of another line`);
    else keys.push({ id, key });
  }
  if (keys.length === 0 && faults.length === 0) faults.push('vault keys: there is none');
  if (faults.length > 0) throw new ConfigurationError(faults);
  return keys;
}

/**
 * A secret does not open. `unknown_key`: its key was not given. `damaged`: it was changed, cut,
 * moved from another place, or sealed under another key with the same id.
 */
export class SealError extends Error {
  override readonly name = 'SealError';
  readonly why: 'unknown_key' | 'damaged';

  constructor(why: SealError['why']) {
    super(why === 'unknown_key' ? 'sealed under a key that is not here' : 'the seal is damaged');
    this.why = why;
  }
}

/** No part can contain a slash, so two places never have the same text. */
function textOf(place: Place): string {
  switch (place.of) {
    case 'peer':
      return `peer/${place.tenant}/${place.peer}/${place.field}`;
    case 'network':
      return `network/${place.network}/${place.field}`;
    case 'secret':
      return `secret/${place.tenant}/${place.name}/${place.version}`;
    case 'signing_key':
      return `signing_key/${place.id}`;
    case 'sign_in':
      return `sign_in/${place.step}`;
    case 'answer':
      return `answer/${place.tenant}/${place.key}`;
    case 'login':
      return `login/${place.tenant}/${place.registry}/${place.version}`;
  }
}

/**
 * The wrapped data key is authenticated with the id of its key, and the secret is not, so a new key
 * leaves the secret as it is.
 */
const wrapContext = (keyId: string, place: Place): string => `${version} key ${keyId} ${textOf(place)}`;
const dataContext = (place: Place): string => `${version} data ${textOf(place)}`;

function encrypt(key: Uint8Array, plain: Uint8Array, context: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(Buffer.from(context));
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]).toString('base64url');
}

function decrypt(key: Uint8Array, text: string, context: string): Buffer {
  const bytes = Buffer.from(text, 'base64url');
  // Accepts one encoding only: the unused bits of the last character count too.
  if (bytes.length < nonceBytes + tagBytes || bytes.toString('base64url') !== text) throw new SealError('damaged');
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(bytes.subarray(-tagBytes));
  const plain = decipher.update(bytes.subarray(nonceBytes, -tagBytes));
  try {
    return Buffer.concat([plain, decipher.final()]);
  } catch {
    throw new SealError('damaged');
  }
}

interface Parts {
  readonly keyId: string;
  readonly wrapped: string;
  readonly data: string;
}

const sealedOf = ({ keyId, wrapped, data }: Parts): Sealed => `${version}.${keyId}.${wrapped}.${data}` as Sealed;

function partsOf(sealed: Sealed): Parts {
  const [form, keyId, wrapped, data, ...rest] = sealed.split('.');
  if (form !== version || keyId === undefined || wrapped === undefined || data === undefined || rest.length > 0) {
    throw new SealError('damaged');
  }
  return { keyId, wrapped, data };
}

/** Error message of a gateway without a vault. */
export const noVaultKeys = 'this gateway has no vault keys; the operator must set VAULT_KEYS or VAULT_KEYS_FILE';

export class Vault {
  readonly currentKeyId: string;
  readonly #keys: ReadonlyMap<string, Uint8Array>;

  /** Seals with the first key and opens with any of them. */
  constructor(keys: readonly VaultKey[]) {
    const [current] = keys;
    if (current === undefined) throw new Error('a vault needs a key');
    this.currentKeyId = current.id;
    this.#keys = new Map(keys.map(({ id, key }) => [id, key]));
  }

  /** @param secret a text is sealed in UTF-8 */
  seal(place: Place, secret: string | Uint8Array): Sealed {
    const dataKey = randomBytes(keyBytes);
    const data = encrypt(dataKey, Buffer.from(secret), dataContext(place));
    return this.#wrap(place, dataKey, data);
  }

  /** @throws SealError */
  open(place: Place, sealed: Sealed): string {
    return this.openBytes(place, sealed).toString();
  }

  /** @throws SealError */
  openBytes(place: Place, sealed: Sealed): Buffer {
    const parts = partsOf(sealed);
    return decrypt(this.#unwrap(place, parts), parts.data, dataContext(place));
  }

  /** Wraps the same secret under the current key. @throws SealError */
  reseal(place: Place, sealed: Sealed): Sealed {
    const parts = partsOf(sealed);
    return this.#wrap(place, this.#unwrap(place, parts), parts.data);
  }

  #wrap(place: Place, dataKey: Uint8Array, data: string): Sealed {
    const keyId = this.currentKeyId;
    return sealedOf({ keyId, wrapped: encrypt(this.#key(keyId), dataKey, wrapContext(keyId, place)), data });
  }

  #unwrap(place: Place, { keyId, wrapped }: Parts): Buffer {
    const dataKey = decrypt(this.#key(keyId), wrapped, wrapContext(keyId, place));
    if (dataKey.length !== keyBytes) throw new SealError('damaged');
    return dataKey;
  }

  #key(id: string): Uint8Array {
    const key = this.#keys.get(id);
    if (key === undefined) throw new SealError('unknown_key');
    return key;
  }
}
