/**
 * The NATS identity of a host: a user JWT of the account HOSTS, signed for the agent's own key. The server holds the host
 * to its own subjects (invariant A7): `host.<key>.>` out, its doorbells and its own inbox in, and nothing of JetStream,
 * which its account does not have.
 */
import { createPrivateKey, sign, type KeyObject } from 'node:crypto';
import { encodeUser } from '@nats-io/jwt';
import { fromPublic, fromSeed, type KeyPair } from '@nats-io/nkeys';
import { isHostKey, type HostKey } from '../schemas/ids.ts';
import { subjects } from '../schemas/subjects.ts';

export interface HostsAccount {
  /** Public key of the account (`A...`). */
  readonly publicKey: string;
  /** Seed of one of its signing keys (`SA...`). */
  readonly signingSeed: string;
}

/** Its form is the schema's to check; this is its checksum. */
export function isPublicUserKey(text: string): boolean {
  try {
    return fromPublic(text).getPublicKey() === text && text.startsWith('U');
  } catch {
    return false;
  }
}

/** PKCS#8 of an Ed25519 key (RFC 8410), up to the 32 bytes of its seed. */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');
function privateKeyOf(pair: KeyPair): KeyObject {
  // Of the library's class, though not of its interface.
  const seed = (pair as KeyPair & { getRawSeed(): Uint8Array }).getRawSeed();
  return createPrivateKey({ key: Buffer.concat([pkcs8Prefix, seed]), format: 'der', type: 'pkcs8' });
}

const signers = new WeakMap<HostsAccount, KeyPair>();

/**
 * The library's key pair, signing with OpenSSL: its own Ed25519 is JavaScript and derives the key several times for each
 * signature, which stopped the event loop for 23 ms with every host that enrolled.
 */
function signerOf(account: HostsAccount): KeyPair {
  const known = signers.get(account);
  if (known !== undefined) return known;
  const pair = fromSeed(new TextEncoder().encode(account.signingSeed));
  const publicKey = pair.getPublicKey();
  const secret = pair.getPrivateKey();
  const key = privateKeyOf(pair);
  const signer = Object.assign(Object.create(pair) as KeyPair, {
    getPublicKey: () => publicKey,
    getPrivateKey: () => secret,
    sign: (data: Uint8Array): Uint8Array => sign(null, data, key),
  });
  signers.set(account, signer);
  return signer;
}

/** @param publicKey the agent's public user nkey (`U...`); its seed never leaves the host. */
export async function signHostJwt(
  account: HostsAccount,
  host: HostKey,
  publicKey: string,
  expiresAtS: number,
): Promise<string> {
  // A key that held `.`, `*` or `>` would reach beyond its own subjects.
  if (!isHostKey(host)) throw new Error('not a host key');
  return encodeUser(
    `host ${host}`,
    publicKey,
    account.publicKey,
    {
      pub: { allow: [`host.${host}.>`], deny: [] },
      sub: { allow: [subjects.desiredOfHost(host), `${subjects.hostInbox(host)}.>`], deny: [] },
    },
    { signer: signerOf(account), exp: expiresAtS },
  );
}
