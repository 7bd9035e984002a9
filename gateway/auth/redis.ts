/**
 * Redis as the gateways' shared memory: what each let through (rate limits), and doorbells for
 * revocations. Nothing waits for it and nothing is lost with it: without it limits are each
 * gateway's own, and revocations come by the poll. Nothing in it is believed either, for others may
 * write to it: a doorbell only makes this gateway ask the owner of a partition, counts leave every
 * tenant a share of its rate, and a connection that says too much is left for a while.
 */
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, Redis } from 'ioredis';
import { backoffMs, jitter } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import type { RateLimiter } from './rate-limits.ts';

/** Where Redis is, and as whom it is used. */
export interface RedisAccess {
  readonly host: string;
  readonly port: number;
  readonly database: number;
  readonly username?: string;
  readonly password?: string;
  /** TLS; `ca` is the authority to trust in place of the usual ones. */
  readonly tls?: { readonly ca?: string };
}

export interface SharedMemory {
  /** Tells the other gateways that the owner of this partition has news of revocations. */
  ring(partition: number): void;
  stop(): void;
}

export interface SharedMemoryOptions {
  readonly access: RedisAccess;
  readonly clusterId: string;
  readonly tenantRates: RateLimiter;
  readonly clock: Clock;
  readonly log: Log;
  readonly onDoorbell: (partition: number) => void;
  /** A doorbell may have been missed, or was none of ours: any owner may have news. */
  readonly onDoorbellsLost: () => void;
}

/** What arrives is shown to `seen`, as soon as it does. */
function connection(access: RedisAccess, seen: (socket: Socket) => void, pauseMs: () => number): Redis {
  const { host, port, database, username, password, tls } = access;
  class Connector extends AbstractConnector {
    constructor() {
      super(limits.redisConnectMs);
    }

    connect(): Promise<Socket> {
      const socket = tls === undefined ? connectPlain({ host, port }) : connectTls({ host, port, ...tls });
      // ioredis listens for one error alone; a TLS server that sends an alert late makes a second,
      // which would end us.
      socket.on('error', (error) => (this.firstError ??= error));
      seen(socket);
      this.stream = socket;
      return Promise.resolve(socket);
    }
  }
  return new Redis({
    Connector,
    host,
    port,
    db: database,
    protocol: 2,
    disableClientInfo: true,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    // Tells ioredis to wait for the handshake; the connector makes it.
    ...(tls === undefined ? {} : { tls }),
    lazyConnect: true,
    connectTimeout: limits.redisConnectMs,
    commandTimeout: limits.redisCommandMs,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (times) =>
      Math.max(pauseMs(), jitter(backoffMs(times, { minMs: limits.redisRetryMinMs, maxMs: limits.redisRetryMaxMs }))),
  });
}

/** A connection, and how it is left where it brings more than it may. */
class Guarded {
  readonly redis: Redis;
  readonly #role: string;
  readonly #log: Log;
  #socket: Socket | undefined;
  #unreadBytes = 0;
  #isLeft = false;

  constructor(access: RedisAccess, role: string, log: Log) {
    this.#role = role;
    this.#log = log;
    const seen = (socket: Socket): void => {
      this.#socket = socket;
      this.#unreadBytes = 0;
      this.#isLeft = false;
      socket.on('data', (chunk: Uint8Array) => this.#count(chunk.byteLength));
    };
    this.redis = connection(access, seen, () => (this.#isLeft ? limits.redisPauseMs : 0));
    this.#sayWhenAway();
  }

  /** What came so far was a message, or answers that were waited for. */
  understood(): void {
    this.#unreadBytes = 0;
  }

  /** Comes back after a pause. */
  leave(why: string): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    this.#log.warn('redis_left', { role: this.#role, why, pauseMs: limits.redisPauseMs });
    this.#socket?.destroy();
  }

  #count(bytes: number): void {
    this.#unreadBytes += bytes;
    if (this.#unreadBytes > limits.redisUnreadBytes) this.leave('a reply without end');
  }

  /** Says once that it is away, and once that it is back. */
  #sayWhenAway(): void {
    let away = false;
    this.redis.on('error', (error: Error) => {
      if (!away) this.#log.warn('redis_away', { role: this.#role, error });
      away = true;
    });
    this.redis.on('ready', () => {
      this.#log.info('redis_ready', { role: this.#role });
      away = false;
    });
  }
}

export function connectSharedMemory(options: SharedMemoryOptions): SharedMemory {
  const { access, clusterId, log } = options;
  const commands = new Guarded(access, 'commands', log);
  const subscriber = new Guarded(access, 'subscriber', log);
  const channel = `longshore.${clusterId}.revoked`;

  subscriber.redis.on('ready', () => {
    subscriber.redis
      .subscribe(channel)
      .then(options.onDoorbellsLost, (error: unknown) => log.warn('redis_subscribe', { error }));
  });
  const mayRing = perSecond(limits.redisDoorbellsPerSecond, options.clock);
  subscriber.redis.on('messageBuffer', (_channel: Buffer, message: Buffer) => {
    subscriber.understood();
    // After the pause all owners are asked, so no doorbell is missed.
    if (!mayRing()) return subscriber.leave('too many doorbells');
    const partition = partitionOfDoorbell(message);
    if (partition === undefined) options.onDoorbellsLost();
    else options.onDoorbell(partition);
  });
  for (const { redis } of [commands, subscriber]) redis.connect().catch(() => {}); // 'error' tells; it tries again

  const sharer = shareRates(commands, options);
  return {
    ring: (partition) => {
      if (commands.redis.status !== 'ready') return; // the others' poll finds it
      commands.redis
        .publish(channel, String(partition))
        .catch((error: unknown) => log.warn('redis_publish', { error }));
    },
    stop: () => {
      clearInterval(sharer);
      commands.redis.disconnect();
      subscriber.redis.disconnect();
    },
  };
}

/** Undefined where a message names no partition, as those from before 0.1.0 do not. */
function partitionOfDoorbell(message: Buffer): number | undefined {
  const text = message.length <= 4 ? message.toString('latin1') : '';
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

/** Whether there were fewer than `most` calls in the second that this one is in. */
function perSecond(most: number, clock: Clock): () => boolean {
  let second = -1;
  let calls = 0;
  return () => {
    const now = Math.floor(clock.monotonicMs() / 1000);
    calls = now === second ? calls + 1 : 1;
    second = now;
    return calls <= most;
  };
}

/**
 * Each gateway adds what it let through to a tenant's common count and learns the sum; what the sum
 * grew by beyond its own part, the others took. A sum that is forged upwards costs a tenant at most
 * what the limiter lets a charge take, one that is forged downwards makes the limits each gateway's
 * own.
 */
function shareRates(commands: Guarded, { clusterId, tenantRates, log }: SharedMemoryOptions): NodeJS.Timeout {
  const { redis } = commands;
  const sums = new Map<string, number>();
  let busy = false;

  const share = async (): Promise<void> => {
    const taken = [...tenantRates.tellUntold()];
    if (taken.length === 0) return;
    const pipeline = redis.pipeline();
    for (const [tenant, count] of taken) {
      const key = `longshore:${clusterId}:rate:${tenant}`;
      pipeline.incrby(key, count).expire(key, limits.redisCountTtlSeconds);
    }
    const results = (await pipeline.exec()) ?? [];
    commands.understood();
    taken.forEach(([tenant, count], index) => {
      const [error, sum] = (results[2 * index] ?? []) as [error?: Error | null, sum?: number];
      if (error || sum === undefined || !Number.isSafeInteger(sum)) return;
      const before = sums.get(tenant);
      sums.set(tenant, sum);
      // A smaller sum means that the count restarted.
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
