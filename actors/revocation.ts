/**
 * Revokes the NATS credentials of removed hosts: the account HOSTS names their keys, and every
 * server closes their connections and refuses new ones (ADR 14).
 *
 * Level, not edge: the records name the keys, and this compares them with what all servers have,
 * once for a new key and at intervals. So a push may be lost, overtaken by that of another process,
 * or undone by an older configuration.
 */
import { backoffMs } from '../lib/time/backoff.ts';
import { nextClaims } from '../lib/nats/accounts/claims.ts';
import type { Accounts } from '../lib/nats/accounts/servers.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { Log } from '../lib/log.ts';
import type { RevokedKeyRecord } from '../schemas/api/host.ts';
import { limits } from '../schemas/limits.ts';
import { minutes, seconds } from '../schemas/limits/units.ts';
import { wholeSeconds } from '../schemas/quantity.ts';
import type { Partition } from './partition.ts';

/**
 * The time that an agent has to learn that its host is fenced, before its credentials are
 * revoked.
 */
const fenceNoticeMs = 3 * seconds;
/** Interval at which actors ask the NATS servers whether they have all revoked keys. */
const revocationLookMs = 1 * minutes;

/** Lowering the setting does not shorten credentials that were signed before. */
export const keptForMs = (ttlMs: number): number => Math.max(ttlMs, limits.hostCredentialsTtlMs);

export interface RevocationOptions {
  readonly accounts: Accounts;
  /** Public key of the account HOSTS. */
  readonly account: string;
  readonly ttlMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Revocation {
  /** Reads the keys that the partition wants revoked, and pushes those that the servers lack. */
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
  /** The monotonic time of the next comparison without a new key. */
  let againMs = 0;
  let restsUntilMs = 0;

  function all(): Map<string, number> {
    const keys = new Map<string, number>();
    for (const records of wanted.values())
      for (const { publicKey, atMs } of records) keys.set(publicKey, wholeSeconds(atMs));
    return keys;
  }

  /** @returns `true` if anything was pushed */
  async function compare(keys: ReadonlyMap<string, number>): Promise<boolean> {
    const revoking = { wanted: keys, keptForS: wholeSeconds(keptForMs(ttlMs)), most: limits.revokedKeys };
    for (let pushed = 0; !isStopped; pushed++) {
      const { claims } = await accounts.held(account);
      if (claims.length === 0) throw new Error(`no NATS server has loaded the account ${account}`);
      const next = nextClaims(claims, { ...revoking, nowS: wholeSeconds(clock.nowMs()) });
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
      againMs = clock.monotonicMs() + (isPushed ? limits.revocationAskMs : revocationLookMs);
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
        (state, nowMs) => [...state.revokedKeys().values()].filter(({ atMs }) => atMs + fenceNoticeMs <= nowMs),
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
