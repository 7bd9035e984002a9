/**
 * Redis as the gateways' shared memory: what each let through (rate limits), and news of revocations. Nothing waits for
 * it and nothing is lost with it: without it limits are each gateway's own, and revocations come by the poll.
 */
import { Redis } from 'ioredis';
import { backoffMs, jitter } from '../lib/backoff.ts';
import type { Log } from '../lib/log.ts';
import { limits } from '../schemas/limits.ts';
import type { Revocation } from '../schemas/tenant.ts';
import { decodeRevocation } from './auth/revocations.ts';
import type { RateLimiter } from './rate-limits.ts';

const connectTimeoutMs = 2000;
const commandTimeoutMs = 1000;
const countTtlSeconds = 60;

export interface SharedMemory {
  publish(revocation: Revocation): void;
  connected(): boolean;
  stop(): void;
}

export interface SharedMemoryOptions {
  readonly url: string;
  readonly clusterId: string;
  readonly tenantRates: RateLimiter;
  readonly log: Log;
  readonly onRevocation: (revocation: Revocation) => void;
  /** News may have been missed: ask the owners. */
  readonly onReconnect: () => void;
}

const connection = (url: string): Redis =>
  new Redis(url, {
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    commandTimeout: commandTimeoutMs,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (times) => jitter(backoffMs(times, { minMs: 100, maxMs: 5000 })),
  });

/** Says once that it is away, and once that it is back. */
function sayWhenAway(redis: Redis, role: string, log: Log): void {
  let away = false;
  redis.on('error', (error: Error) => {
    if (!away) log.warn('redis_away', { role, error });
    away = true;
  });
  redis.on('ready', () => {
    log.info('redis_ready', { role });
    away = false;
  });
}

export function connectSharedMemory(options: SharedMemoryOptions): SharedMemory {
  const { clusterId, log } = options;
  const commands = connection(options.url);
  const subscriber = connection(options.url);
  const channel = `longshore.${clusterId}.revoked`;
  sayWhenAway(commands, 'commands', log);
  sayWhenAway(subscriber, 'subscriber', log);

  subscriber.on('ready', () => {
    subscriber.subscribe(channel).then(options.onReconnect, (error: unknown) => log.warn('redis_subscribe', { error }));
  });
  subscriber.on('messageBuffer', (_channel: Buffer, message: Buffer) => {
    try {
      options.onRevocation(decodeRevocation(message));
    } catch (error) {
      log.warn('revocation_malformed', { error });
    }
  });
  for (const redis of [commands, subscriber]) redis.connect().catch(() => {}); // 'error' tells; it tries again

  const sharer = shareRates(commands, options);
  return {
    connected: () => commands.status === 'ready',
    publish: (revocation) => {
      if (commands.status !== 'ready') return; // the others' poll finds it
      commands
        .publish(channel, JSON.stringify(revocation))
        .catch((error: unknown) => log.warn('redis_publish', { error }));
    },
    stop: () => {
      clearInterval(sharer);
      commands.disconnect();
      subscriber.disconnect();
    },
  };
}

/**
 * Each gateway adds what it let through to a tenant's common count and learns the sum; what the sum grew by beyond its own
 * part, the others took.
 */
function shareRates(redis: Redis, { clusterId, tenantRates, log }: SharedMemoryOptions): NodeJS.Timeout {
  const sums = new Map<string, number>();
  let busy = false;

  const share = async (): Promise<void> => {
    const taken = [...tenantRates.tellUntold()];
    if (taken.length === 0) return;
    const pipeline = redis.pipeline();
    for (const [tenant, count] of taken) {
      const key = `longshore:${clusterId}:rate:${tenant}`;
      pipeline.incrby(key, count).expire(key, countTtlSeconds);
    }
    const results = (await pipeline.exec()) ?? [];
    taken.forEach(([tenant, count], index) => {
      const [error, sum] = results[2 * index] ?? [];
      if (error || typeof sum !== 'number') return;
      const before = sums.get(tenant);
      sums.set(tenant, sum);
      // A smaller sum is a count that began anew.
      if (before !== undefined && sum - count > before) tenantRates.charge(tenant, sum - count - before);
    });
    if (sums.size > limits.rateBuckets) sums.clear();
  };

  return setInterval(() => {
    if (busy || redis.status !== 'ready') return;
    busy = true;
    share()
      .catch((error: unknown) => log.debug('rates_not_shared', { error }))
      .finally(() => {
        busy = false;
      });
  }, limits.rateShareMs).unref();
}
