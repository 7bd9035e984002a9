/**
 * The identity of this host: a NATS user key that never leaves the machine, and what the gateway
 * returned for that key and the join token. Both are kept in the state folder; once they are there,
 * the agent needs no token.
 */
import { fromSeed, createUser, type KeyPair } from '@nats-io/nkeys';
import Type, { type Static } from 'typebox';
import { join } from 'node:path';
import { backoffMs, jitter, sleep, withAbort, type BackoffBounds } from '../../../lib/time/backoff.ts';
import { decoder } from '../../../lib/decode.ts';
import type { Log } from '../../../lib/log.ts';
import { HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Sender } from '../../../schemas/wire/subjects.ts';
import { readDecoded, readIfPresent, writeAtomically } from '../../disk/files.ts';

/** `Enrolment` of schemas/wire/answers.ts, as it comes over HTTP and as it is stored. */
export const Identity = Type.Object({
  host: HostKey,
  region: Type.String(),
  cluster: Type.String({ minLength: 1 }),
  natsUrls: Type.Array(Type.String()),
  jwt: Type.String({ minLength: 1 }),
});
export type Identity = Static<typeof Identity>;

/**
 * May hold bound credentials beside unbound ones until those expire (credentials.ts). An agent from
 * before 0.1.0 reads only `jwt`.
 */
const StoredIdentity = Type.Object({ ...Identity.properties, bound_jwt: Type.Optional(Type.String({ minLength: 1 })) });
export type StoredIdentity = Static<typeof StoredIdentity>;

export const decodeIdentity = decoder(StoredIdentity);
const decodeEnrolled = decoder(Type.Object({ data: Identity }));

export const identityPath = (stateDir: string) => join(stateDir, 'identity.json');
export const seedPath = (stateDir: string) => join(stateDir, 'agent.nk');

/** The seed in the content of its file. */
export const seedIn = (content: Buffer): Uint8Array => new Uint8Array(Buffer.from(content.toString('utf8').trim()));

/** The seed of the agent's key, made at the first start. */
export async function loadSeed(stateDir: string): Promise<Uint8Array> {
  const path = seedPath(stateDir);
  const known = await readIfPresent(path);
  if (known !== undefined) return seedIn(known);
  const seed = createUser().getSeed();
  await writeAtomically(path, seed);
  return seed;
}

export const keyFrom = (seed: Uint8Array): KeyPair => fromSeed(seed);

export const loadIdentity = (stateDir: string, log: Log): Promise<StoredIdentity | undefined> =>
  readDecoded(identityPath(stateDir), decodeIdentity, log);

/** The credentials that expire last. */
export const newest = ({ host, jwt, bound_jwt: bound }: StoredIdentity): Pick<Identity, 'host' | 'jwt'> => {
  const ends = (each: string): number => lifetimeOf(each)?.untilMs ?? Infinity;
  return { host, jwt: bound === undefined || ends(bound) < ends(jwt) ? jwt : bound };
};

/**
 * The claims of a NATS user JWT that the agent reads; the server verifies it. They are decoded
 * apart, so that a claim of an unknown form does not hide when the credentials expire.
 */
const decodeTimes = decoder(Type.Object({ iat: Type.Optional(Type.Number()), exp: Type.Optional(Type.Number()) }));
const Subjects = Type.Object({ allow: Type.Optional(Type.Array(Type.String())) });
const decodeUser = decoder(
  Type.Object({
    sub: Type.Optional(Type.String()),
    nats: Type.Optional(Type.Object({ pub: Type.Optional(Subjects), sub: Type.Optional(Subjects) })),
  }),
);

/** The decoded claims, or none of them if the JWT can't be decoded. */
function claimsOf<C>(jwt: string, decodeClaims: (bytes: Uint8Array) => C): Partial<C> {
  try {
    return decodeClaims(Buffer.from(jwt.split('.')[1] ?? '', 'base64url'));
  } catch {
    return {};
  }
}

export interface Lifetime {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/**
 * When credentials become valid and when they expire, in milliseconds since 1970; undefined: they
 * never expire.
 */
export function lifetimeOf(jwt: string): Lifetime | undefined {
  const { iat, exp } = claimsOf(jwt, decodeTimes);
  return exp === undefined ? undefined : { sinceMs: (iat ?? exp) * 1000, untilMs: exp * 1000 };
}

/**
 * The sender with the user key that the credentials name in their subjects. Credentials from before
 * 0.1.0 name none.
 */
export function senderOf({ host, jwt }: Pick<Identity, 'host' | 'jwt'>): Sender {
  const { sub, nats } = claimsOf(jwt, decodeUser);
  const isBound = nats?.pub?.allow?.some((subject) => subject.startsWith('agent.')) === true;
  return { host, user: isBound ? sub : undefined };
}

/** Whether they permit sessions. Those from before 0.2.0 do not. */
export const permitsSessions = (jwt: string): boolean =>
  claimsOf(jwt, decodeUser).nats?.sub?.allow?.some((subject) => subject.startsWith('session.')) === true;

/** Reads each of the JWTs in use once; `most` are remembered. */
export function readOnce<T>(read: (jwt: string) => T, most: number): (jwt: string) => T {
  const known = new Map<string, T>();
  return (jwt) => {
    let said = known.get(jwt);
    if (said === undefined) {
      said = read(jwt);
      if (known.size >= most) known.clear();
      known.set(jwt, said);
    }
    return said;
  };
}

/** Whether credentials of this lifetime have expired. */
export const isOver = (life: Lifetime | undefined, nowMs: number): boolean => (life?.untilMs ?? Infinity) <= nowMs;

/** Whether the credentials are of no use any more; a new join token is. */
export const hasExpired = (identity: StoredIdentity, nowMs: number): boolean =>
  isOver(lifetimeOf(newest(identity).jwt), nowMs);

export const keepIdentity = (stateDir: string, identity: Identity): Promise<void> =>
  writeAtomically(identityPath(stateDir), JSON.stringify(identity));

/** The gateway refused the token. No retry can help. */
export class EnrolmentRefused extends Error {
  constructor(status: number) {
    const why =
      status === 422
        ? 'it does not have the form of one: give it whole, lsj_<host>_<secret>'
        : 'it is unknown, expired (a token lasts an hour) or used already: make a new one with ' +
          'POST /api/v2/operator/hosts/<host>/join-token';
    super(`the gateway refused the join token (status ${status}): ${why}`);
    this.name = 'EnrolmentRefused';
  }
}

export interface Enrolling {
  readonly gatewayUrl: string;
  readonly joinToken: string;
  readonly publicKey: string;
  readonly backoff: BackoffBounds;
}

/**
 * Trades the join token for an identity; retries while the gateway is away. The token is bound to
 * the key on disk, so an agent that restarts before the identity is on disk gets it again.
 * @throws EnrolmentRefused
 */
export async function enrol(options: Enrolling, log: Log, signal: AbortSignal): Promise<Identity> {
  for (let attempt = 0; ; attempt++) {
    try {
      const identity = await askGateway(options, signal);
      log.info('enrolled', { host: identity.host, region: identity.region, cluster: identity.cluster });
      return identity;
    } catch (error) {
      if (error instanceof EnrolmentRefused || signal.aborted) throw error;
      log.warn('enrolment_delayed', { url: options.gatewayUrl, error });
    }
    await sleep(jitter(backoffMs(attempt, options.backoff)), signal);
  }
}

/**
 * Asks once.
 * @throws EnrolmentRefused
 */
export async function askGateway(
  { gatewayUrl, joinToken, publicKey }: Enrolling,
  signal: AbortSignal,
): Promise<Identity> {
  const ask = async (ending: AbortController): Promise<{ readonly status: number; readonly body: Uint8Array }> => {
    const response = await fetch(new URL('/api/v2/hosts/enrol', gatewayUrl), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ join_token: joinToken, public_key: publicKey }),
      redirect: 'error',
      signal: ending.signal,
    });
    return { status: response.status, body: new Uint8Array(await response.arrayBuffer()) };
  };
  const { status, body } = await withAbort([signal], ask, limits.enrolTimeoutMs);
  if (status === 201) return decodeEnrolled(body).data;
  // 401: no such token; 422: not even the form of one.
  if (status === 401 || status === 422) throw new EnrolmentRefused(status);
  throw new Error(`the gateway answered ${status}`);
}
