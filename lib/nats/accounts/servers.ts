/**
 * The accounts as NATS servers with a full resolver hold them: read and replaced by a user of the
 * system account. Every server answers for itself.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import Type from 'typebox';
import { limits } from '../../../schemas/limits.ts';
import { decoder } from '../../decode.ts';
import { within } from '../../time/backoff.ts';
import { claimsOf, signClaims, signingKeysOf, type AccountClaims } from './claims.ts';

/** The wait for the next answer of a NATS server, after each answer. */
const revocationStallMs = 500;

/** An account on the servers that answer. */
export interface Held {
  /** The names of the servers. */
  readonly servers: readonly string[];
  /** Its claims on those that have loaded it, which have verified who signed them; in no order. */
  readonly claims: readonly AccountClaims[];
}

export interface Accounts {
  /** @throws if no server answers */
  held(account: string): Promise<Held>;
  /**
   * The claims on the servers' disks, which a server loads at its start. A server stores what any
   * user of the system account pushes, and does not look who signed it.
   */
  stored(account: string): Promise<AccountClaims[]>;
  /** @throws if no server accepts them */
  push(claims: AccountClaims): Promise<void>;
}

/** One server's answer: its copy of the account. */
const decodeHeld = decoder(
  Type.Object({
    server: Type.Object({ name: Type.String() }),
    data: Type.Optional(
      Type.Union([
        Type.Object({ account_detail: Type.Optional(Type.Object({ jwt: Type.Optional(Type.String()) })) }),
        Type.Null(),
      ]),
    ),
  }),
);
const decodeTaken = decoder(
  Type.Object({ error: Type.Optional(Type.Object({ description: Type.Optional(Type.String()) })) }),
);

/**
 * The decoded answers of all servers to one question, until none comes any more.
 * @throws if there is no connection in time
 */
export async function* answersOfServers<T>(
  system: Promise<NatsConnection>,
  { subject, payload }: { readonly subject: string; readonly payload: string },
  decode: (bytes: Uint8Array) => T,
): AsyncGenerator<T, void, void> {
  const nc = await within(system, limits.revocationAskMs, 'a connection of the system account');
  const bounds = { strategy: 'stall', stall: revocationStallMs, maxWait: limits.revocationAskMs } as const;
  for await (const message of await nc.requestMany(subject, payload, bounds)) yield decode(message.data);
}

/** Asks servers for the account's claims on their disks. */
const stored = (account: string) => ({ subject: `$SYS.REQ.ACCOUNT.${account}.CLAIMS.LOOKUP`, payload: '' });
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

async function loadedBy(system: Promise<NatsConnection>, account: string): Promise<Held> {
  const servers: string[] = [];
  const jwts: string[] = [];
  const asked = { subject: '$SYS.REQ.SERVER.PING.ACCOUNTZ', payload: JSON.stringify({ account }) };
  for await (const { server, data } of answersOfServers(system, asked, decodeHeld)) {
    servers.push(server.name);
    // A server has not loaded an account of which it has had no client.
    const jwt = data?.account_detail?.jwt;
    if (jwt !== undefined) jwts.push(jwt);
  }
  return { servers, claims: jwts.map(claimsOf) };
}

/**
 * True if some server has the key as one that signs for the account: its own, or a signing key.
 * `undefined` if no server has the account.
 */
export async function isSigningKey(
  system: Promise<NatsConnection>,
  account: string,
  key: string,
): Promise<boolean | undefined> {
  if (key === account) return true;
  let isTold = false;
  for await (const jwt of answersOfServers(system, stored(account), textOf)) {
    if (jwt === '') continue;
    if (signingKeysOf(claimsOf(jwt)).includes(key)) return true;
    isTold = true;
  }
  return isTold ? false : undefined;
}

/** @param system a connection of a user of the system account, as soon as there is one */
export function createAccounts(system: Promise<NatsConnection>, operatorSeed: string): Accounts {
  return {
    async held(account) {
      const held = await loadedBy(system, account);
      if (held.servers.length === 0) throw new Error(`no NATS server answered about the account ${account}`);
      return held;
    },
    async stored(account) {
      const jwts: string[] = [];
      for await (const jwt of answersOfServers(system, stored(account), textOf)) if (jwt !== '') jwts.push(jwt);
      return jwts.map(claimsOf);
    },
    async push(claims) {
      const asked = { subject: '$SYS.REQ.CLAIMS.UPDATE', payload: signClaims(claims, operatorSeed) };
      let answers = 0;
      let refused: string | undefined;
      for await (const { error } of answersOfServers(system, asked, decodeTaken)) {
        answers++;
        if (error !== undefined) refused ??= error.description ?? 'without a reason';
      }
      if (refused !== undefined) throw new Error(`a NATS server refuses the claims: ${refused}`);
      if (answers === 0) throw new Error('no NATS server accepts claims: set its resolver to type full');
    },
  };
}
