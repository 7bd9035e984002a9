/**
 * Revokes the NATS credentials of removed hosts: the account HOSTS names their keys, and every
 * server closes their connections and refuses new ones (ADR 14).
 *
 * Level, not edge: the records name the keys, and this compares them with what all servers have,
 * once for a new key and at intervals. So a push may be lost, overtaken by that of another process,
 * or undone by an older configuration.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { backoffMs, within } from '../lib/time/backoff.ts';
import { claimsOf, nextClaims, signClaims, type AccountClaims } from '../lib/nats/account-claims.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { Log } from '../lib/log.ts';
import type { RevokedKeyRecord } from '../schemas/api/host.ts';
import { limits } from '../schemas/limits.ts';
import { wholeSeconds } from '../schemas/quantity.ts';
import type { Partition } from './partition.ts';
import Type from 'typebox';
import { decoder } from '../lib/decode.ts';

/** The accounts of the NATS servers. */
export interface Accounts {
  /** The claims of an account on each server that answers. */
  claims(account: string): Promise<AccountClaims[]>;
  /** @throws if no server accepts them */
  push(claims: AccountClaims): Promise<void>;
}

/** One server's answer: its copy of the account. */
const decodeHeld = decoder(
  Type.Object({
    data: Type.Optional(
      Type.Object({ account_detail: Type.Optional(Type.Object({ jwt: Type.Optional(Type.String()) })) }),
    ),
  }),
);
const decodeTaken = decoder(
  Type.Object({ error: Type.Optional(Type.Object({ description: Type.Optional(Type.String()) })) }),
);

/** Lowering the setting does not shorten credentials that were signed before. */
export const keptForMs = (ttlMs: number): number => Math.max(ttlMs, limits.hostCredentialsTtlMs);

/** @param system a connection of a user of the system account, as soon as there is one */
export function createAccounts(system: Promise<NatsConnection>, operatorSeed: string): Accounts {
  async function askAll<T>(subject: string, payload: string, decode: (bytes: Uint8Array) => T): Promise<T[]> {
    const nc = await within(system, limits.revocationAskMs, 'a connection of the system account');
    const answers: T[] = [];
    const bounds = { strategy: 'stall', stall: limits.revocationStallMs, maxWait: limits.revocationAskMs } as const;
    for await (const message of await nc.requestMany(subject, payload, bounds)) answers.push(decode(message.data));
    return answers;
  }
  return {
    async claims(account) {
      const answers = await askAll('$SYS.REQ.SERVER.PING.ACCOUNTZ', JSON.stringify({ account }), decodeHeld);
      // A server that has not loaded the account has no client of it, and loads it as pushed.
      const jwts = answers.map(({ data }) => data?.account_detail?.jwt).filter((jwt) => jwt !== undefined);
      if (jwts.length === 0) throw new Error(`no NATS server answered with its claims of the account ${account}`);
      return jwts.map(claimsOf);
    },
    async push(claims) {
      const answers = await askAll('$SYS.REQ.CLAIMS.UPDATE', signClaims(claims, operatorSeed), decodeTaken);
      const refused = answers.find(({ error }) => error !== undefined);
      if (refused !== undefined) throw new Error(`a NATS server refuses the claims: ${refused.error?.description}`);
      if (answers.length === 0) throw new Error('no NATS server accepts claims: set its resolver to type full');
    },
  };
}

export interface RevocationOptions {
  readonly accounts: Accounts;
  /** Public key of the account HOSTS. */
  readonly account: string;
  readonly ttlMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Revocation {
  /** Reads which keys the partition wants revoked, and pushes those that the servers lack. */
  look(partition: Partition): void;
  /** Called when this process no longer owns the partition. */
  gone(partition: Partition): void;
  stop(): void;
}

export function createRevocation({ accounts, account, ttlMs, clock, log }: RevocationOptions): Revocation {
  const wanted = new Map<Partition, readonly RevokedKeyRecord[]>();
  /** The keys that every server had at the last comparison. */
  let held = new Map<string, number>();
  let isUnderWay = false;
  let isStopped = false;
  let failures = 0;
  /** When to compare again without a new key. */
  let againMs = 0;
  let restsUntilMs = 0;

  function all(): Map<string, number> {
    const keys = new Map<string, number>();
    for (const records of wanted.values())
      for (const { publicKey, atMs } of records) keys.set(publicKey, wholeSeconds(atMs));
    return keys;
  }

  /** @returns whether anything was pushed */
  async function compare(keys: ReadonlyMap<string, number>): Promise<boolean> {
    const revoking = { wanted: keys, keptForS: wholeSeconds(keptForMs(ttlMs)), most: limits.revokedKeys };
    for (let pushed = 0; !isStopped; pushed++) {
      const next = nextClaims(await accounts.claims(account), { ...revoking, nowS: wholeSeconds(clock.nowMs()) });
      if (next === undefined) return pushed > 0;
      if (pushed === limits.revocationPushes) throw new Error('some NATS servers do not hold what was pushed');
      await accounts.push(next);
    }
    return false;
  }

  async function settle(): Promise<void> {
    const nowMs = clock.monotonicMs();
    const keys = all();
    const news = [...keys].filter(([key, atS]) => held.get(key) !== atS);
    const isDue = news.length > 0 ? nowMs >= restsUntilMs : keys.size > 0 && nowMs >= againMs;
    if (isUnderWay || isStopped || !isDue) return;
    isUnderWay = true;
    try {
      const isPushed = await compare(keys);
      if (isStopped) return;
      held = keys;
      failures = 0;
      // Another process may have read the claims before this push, and may push claims without
      // these keys after it.
      againMs = clock.monotonicMs() + (isPushed ? limits.revocationAskMs : limits.revocationLookMs);
      if (news.length > 0) log.info('host_credentials_revoked', { keys: news.map(([key]) => key) });
    } catch (error) {
      if (isStopped) return;
      if (failures === 0) log.error('revocation_failed', { error });
      const restMs = backoffMs(failures++, { minMs: limits.retryMinMs, maxMs: limits.retryMaxMs });
      restsUntilMs = againMs = clock.monotonicMs() + restMs;
    } finally {
      isUnderWay = false;
    }
  }

  return {
    look(partition) {
      partition.survey(
        // A connected agent learns of its fence first, and stops its containers.
        (state, nowMs) => [...state.revokedKeys().values()].filter(({ atMs }) => atMs + limits.fenceNoticeMs <= nowMs),
        (records) => {
          wanted.set(partition, records);
          void settle();
        },
      );
    },
    gone: (partition) => void wanted.delete(partition),
    stop: () => {
      isStopped = true;
    },
  };
}
