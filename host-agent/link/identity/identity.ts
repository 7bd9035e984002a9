/**
 * The identity of this host: a NATS user key that never leaves the machine, and what the gateway
 * returned for that key and the join token. Both are kept in the state folder; once they are there,
 * the agent needs no token.
 */
import { fromSeed, createUser, type KeyPair } from '@nats-io/nkeys';
import Type, { type Static } from 'typebox';
import { join } from 'node:path';
import { jittered, withAbort, type BackoffBounds } from '../../../lib/time/backoff.ts';
import { retry } from '../../../lib/time/retry.ts';
import { ConfigurationError } from '../../../lib/config.ts';
import { decoder } from '../../../lib/decode.ts';
import type { Log } from '../../../lib/log.ts';
import { isSeed } from '../../../lib/nats/key-files.ts';
import { HostKey } from '../../../schemas/ids.ts';
import { readDecoded, readIfPresent, writeAtomically } from '../../disk/files.ts';
import { seconds } from '../../../schemas/limits/units.ts';

/** The wait for the gateway's answer to an enrolment. */
const enrolTimeoutMs = 10 * seconds;

/** `Enrolment` of schemas/wire/answers.ts, as it comes over HTTP and as it is stored. */
export const Identity = Type.Object({
  host: HostKey,
  region: Type.String(),
  cluster: Type.String({ minLength: 1 }),
  natsUrls: Type.Array(Type.String()),
  jwt: Type.String({ minLength: 1 }),
});
export type Identity = Static<typeof Identity>;

export const decodeIdentity = decoder(Identity);
export const decodeEnrolled = decoder(Type.Object({ data: Identity }));

export const identityPath = (stateDir: string) => join(stateDir, 'identity.json');
export const seedPath = (stateDir: string) => join(stateDir, 'agent.nk');

/** The seed in the content of its file. */
export const seedIn = (content: Buffer): Uint8Array => new Uint8Array(Buffer.from(content.toString('utf8').trim()));

/**
 * The seed of the agent's key, made at the first start.
 * @throws ConfigurationError if the file has no whole one
 */
export async function loadSeed(stateDir: string): Promise<Uint8Array> {
  const path = seedPath(stateDir);
  const known = await readIfPresent(path);
  if (known !== undefined) {
    const seed = seedIn(known);
    if (isSeed(new TextDecoder().decode(seed), 'SU')) return seed;
    throw new ConfigurationError([
      `${path} is empty or cut off, and is the key of this host: restore it from a copy; or make a join token, move ` +
        `agent.nk and identity.json out of ${stateDir}, and enrol this host again with the token ` +
        '(host-agent join --token-file FILE). Its containers stay',
    ]);
  }
  const seed = createUser().getSeed();
  await writeAtomically(path, seed);
  return seed;
}

export const keyFrom = (seed: Uint8Array): KeyPair => fromSeed(seed);

export const loadIdentity = (stateDir: string, log: Log): Promise<Identity | undefined> =>
  readDecoded(identityPath(stateDir), decodeIdentity, log);

/**
 * The claims of a NATS user JWT that the agent reads; the server verifies it. They are decoded
 * apart, so that a claim of an unknown form does not hide when the credentials expire.
 */
const decodeTimes = decoder(Type.Object({ iat: Type.Optional(Type.Number()), exp: Type.Optional(Type.Number()) }));
const Subjects = Type.Object({ allow: Type.Optional(Type.Array(Type.String())) });
const decodeUser = decoder(
  Type.Object({
    sub: Type.Optional(Type.String()),
    iss: Type.Optional(Type.String()),
    nats: Type.Optional(Type.Object({ sub: Type.Optional(Subjects) })),
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
 * The times at which credentials become valid and expire, in milliseconds since 1970; `undefined`
 * if they never expire.
 */
export function lifetimeOf(jwt: string): Lifetime | undefined {
  const { iat, exp } = claimsOf(jwt, decodeTimes);
  return exp === undefined ? undefined : { sinceMs: (iat ?? exp) * 1000, untilMs: exp * 1000 };
}

/** The public key that the credentials are for; `undefined` if they name none. */
export const userOf = (jwt: string): string | undefined => claimsOf(jwt, decodeUser).sub;

/** The public key that signed the credentials; `undefined` if they name none. */
export const issuerOf = (jwt: string): string | undefined => claimsOf(jwt, decodeUser).iss;

/**
 * `true` if release 0.1.0 or an older one signed the credentials: later ones permit sessions.
 * Actors ignore an agent with them.
 */
export const isTooOld = ({ jwt }: Identity): boolean =>
  claimsOf(jwt, decodeUser).nats?.sub?.allow?.some((subject) => subject.startsWith('session.')) !== true;

/** `true` if the credentials have expired. Their key may get others. */
export const hasExpired = ({ jwt }: Identity, nowMs: number): boolean =>
  (lifetimeOf(jwt)?.untilMs ?? Infinity) <= nowMs;

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
  const onFailure = (error: unknown): void => {
    if (error instanceof EnrolmentRefused || signal.aborted) throw error;
    log.warn('enrolment_delayed', { url: options.gatewayUrl, error });
  };
  const pauseMs = jittered(options.backoff);
  const identity = await retry(() => askGateway(options, signal), { pauseMs, signal, onFailure });
  if (identity === undefined) throw signal.reason;
  log.info('host_enrolled', { host: identity.host, region: identity.region, cluster: identity.cluster });
  return identity;
}

/**
 * Asks once.
 * @throws EnrolmentRefused
 */
export async function askGateway(
  { gatewayUrl, joinToken, publicKey }: Enrolling,
  signal: AbortSignal,
): Promise<Identity> {
  const asked = { join_token: joinToken, public_key: publicKey };
  const { status, body } = await post(new URL('/api/v2/hosts/enrol', gatewayUrl), asked, signal, enrolTimeoutMs);
  if (status === 201) return decodeEnrolled(body).data;
  // 401: no such token; 422: not even the form of one.
  if (status === 401 || status === 422) throw new EnrolmentRefused(status);
  throw new Error(`the gateway answered ${status}`);
}

/** Rejects without an answer in time. */
export async function post(
  url: URL,
  body: object,
  signal: AbortSignal,
  timeoutMs: number,
): Promise<{ readonly status: number; readonly body: Uint8Array }> {
  const ask = async (ending: AbortController) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      redirect: 'error',
      signal: ending.signal,
    });
    return { status: response.status, body: new Uint8Array(await response.arrayBuffer()) };
  };
  return withAbort([signal], ask, timeoutMs);
}
