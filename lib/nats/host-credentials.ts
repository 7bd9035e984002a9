/**
 * The NATS identity of a host: a user JWT of the account HOSTS, signed for the agent's own key. The
 * server holds the host to its own subjects (invariant A7), which name the agent's key, and actors
 * accept only the enrolled key (ADR 22). The host may hear its doorbells and its own inbox, and
 * nothing of JetStream, which its account does not have.
 */
import { encodeUser, type User } from '@nats-io/jwt';
import { fromPublic, type KeyPair } from '@nats-io/nkeys';
import { isHostKey, type HostKey } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { quickPair } from './quick-pair.ts';

/**
 * Subscriptions of one connection of an agent, which needs four: its doorbells, its answers, and
 * a sync or two.
 */
const hostSubscriptions = 32;

export interface HostsAccount {
  /** Public key of the account (`A...`). */
  readonly publicKey: string;
  /** Seed of one of its signing keys (`SA...`). */
  readonly signingSeed: string;
}

/** The schema checks its form; this checks its checksum. */
export const isPublicUserKey = (text: string): boolean => isPublicKey(text, 'U');

function isPublicKey(text: string, kind: 'A' | 'U'): boolean {
  try {
    return fromPublic(text).getPublicKey() === text && text.startsWith(kind);
  } catch {
    return false;
  }
}

/** Of the file of settings of development builds of 0.2.0: nobody has its seed. */
const sampleAccount = 'ABJHLOVMPA4CI6R5KLNGOB4GSLNIY7IOUPAJC4YFNDLQVIOBYQGUWVLA';

/** With a key of somebody else each host would enrol, and be refused by every NATS server. */
export const isHostsAccount = (text: string): boolean => isPublicKey(text, 'A') && text !== sampleAccount;

const signers = new WeakMap<HostsAccount, KeyPair>();

function signerOf(account: HostsAccount): KeyPair {
  const known = signers.get(account);
  if (known !== undefined) return known;
  const signer = quickPair(new TextEncoder().encode(account.signingSeed));
  signers.set(account, signer);
  return signer;
}

/** The public key by which credentials of hosts are signed. */
export const signingKeyOf = (account: HostsAccount): string => signerOf(account).getPublicKey();

/**
 * Limits of one connection of a host at the NATS server. `data` is not set, because nats-server
 * 2.15 does not enforce it. Only the port for clients is allowed: no WebSocket, no MQTT, no leaf
 * node.
 */
const hostLimits = {
  subs: hostSubscriptions,
  payload: limits.hostPayloadBytes,
  data: -1,
  allowed_connection_types: ['STANDARD'],
} satisfies Partial<User>;

/** Subjects that a host may publish and subscribe to with its credentials. */
function permissionsOf(sender: Sender) {
  const { host, user } = sender;
  const publishes = [`agent.${host}.${user}.*`, `host.${host}.log.*.*`, subjects.tunnelsOfHost(sender)];
  const hears = [subjects.desiredOfHost(host), `${subjects.hostInbox(sender)}.>`, subjects.sessionsOfHost(sender)];
  return { pub: { allow: publishes, deny: [] }, sub: { allow: hears, deny: [] } };
}

/** The name of a host's user, by which its JWT says whose it is. */
export const hostUserName = (host: HostKey): string => `host ${host}`;

export interface HostUser {
  readonly host: HostKey;
  /** The agent's public user nkey (`U...`); its seed never leaves the host. */
  readonly publicKey: string;
  readonly expiresAtS: number;
}

export async function signHostJwt(account: HostsAccount, { host, publicKey, expiresAtS }: HostUser): Promise<string> {
  // A key with `.`, `*` or `>` would match more than its own subjects.
  if (!isHostKey(host)) throw new Error('not a host key');
  if (!isPublicUserKey(publicKey)) throw new Error('not a public user key');
  const permissions = permissionsOf({ host, user: publicKey });
  const claims = { ...permissions, ...hostLimits };
  return encodeUser(hostUserName(host), publicKey, account.publicKey, claims, {
    signer: signerOf(account),
    exp: expiresAtS,
  });
}
