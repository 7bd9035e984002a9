/**
 * The NATS identity of a host: a user JWT of the account HOSTS, signed for the agent's own key. The server holds the host
 * to its own subjects (invariant A7): `host.<key>.>` out, its doorbells and its own inbox in, and nothing of JetStream,
 * which its account does not have.
 */
import { encodeUser } from '@nats-io/jwt';
import { fromPublic, fromSeed } from '@nats-io/nkeys';
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
    { signer: fromSeed(new TextEncoder().encode(account.signingSeed)), exp: expiresAtS },
  );
}
