/**
 * Redis as the gateways' shared memory: how many requests each admitted (rate limits), and
 * doorbells for revocations. No request waits for Redis, and its loss loses no data: without it,
 * each gateway limits rates by itself and polls for revocations. The gateway trusts nothing in
 * Redis, because others may write to it. A doorbell only makes the gateway ask the owner of a
 * partition; counts leave every tenant a share of its rate; and the gateway closes a connection
 * that sends too much, and pauses before it connects again.
 */
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, Redis } from 'ioredis';
import { backoffMs, jitter } from '../../lib/time/backoff.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import { MiB, seconds } from '../../schemas/limits/units.ts';
import type { RateLimiter } from './rate-limits.ts';

/** Interval at which gateways share their counts. */
const rateShareMs = 200;
/** Redis drops the count of a gateway that no longer renews it. */
export const redisCountTtlSeconds = 60;

/**
 * Bytes that may arrive from Redis without completing a message or a round of counts, which has
 * at most `rateBuckets` counts.
 */
const redisUnreadBytes = 2 * MiB;
/** The time to connect to Redis, and for the answer to one command. */
const redisConnectMs = 2 * seconds;
const redisCommandMs = 1 * seconds;
/** The wait between two attempts to connect to Redis. */
const redisRetryMinMs = 100;
const redisRetryMaxMs = 5 * seconds;

/** The address of Redis, and the user. */
export interface RedisAccess {
  readonly host: string;
  readonly port: number;
  readonly database: number;
  readonly username?: string;
  readonly password?: string;
  /** Set for TLS; `ca` replaces the authorities that Node trusts. */
  readonly tls?: { readonly ca?: string };
}

export interface SharedMemory {
  /** Tells the other gateways that the owner of this partition has new revocations. */
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
  /** A doorbell was missed or malformed: any owner may have new revocations. */
  readonly onDoorbellsLost: () => void;
}

/** Calls `seen` with each socket that the client opens. */
function connection(access: RedisAccess, seen: (socket: Socket) => void, pauseMs: () => number): Redis {
  const { host, port, database, username, password, tls } = access;
  class Connector extends AbstractConnector {
    constructor() {
      super(redisConnectMs);
    }

    connect(): Promise<Socket> {
      const socket = tls === undefined ? connectPlain({ host, port }) : connectTls({ host, port, ...tls });
      // ioredis listens for one error only. A TLS server that sends an alert late causes a second
      // one, which would end the process.
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
    // Makes ioredis wait for the handshake, which the connector performs.
    ...(tls === undefined ? {} : { tls }),
    lazyConnect: true,
    connectTimeout: redisConnectMs,
    commandTimeout: redisCommandMs,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (times) =>
      Math.max(pauseMs(), jitter(backoffMs(times, { minMs: redisRetryMinMs, maxMs: redisRetryMaxMs }))),
  });
}

/** A connection that is closed for a while if it receives more than it should. */
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
    this.#logWhenAway();
  }

  /** The bytes so far were a message, or answers to commands: resets their count. */
  understood(): void {
    this.#unreadBytes = 0;
  }

  /** Disconnects, and connects again after a pause. */
  leave(why: string): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    this.#log.warn('redis_disconnected', { role: this.#role, why, pauseMs: limits.redisPauseMs });
    this.#socket?.destroy();
  }

  #count(bytes: number): void {
    this.#unreadBytes += bytes;
    if (this.#unreadBytes > redisUnreadBytes) this.leave('a reply that does not end');
  }

  /** Logs once that Redis is away, and once that it is back. */
  #logWhenAway(): void {
    let away = false;
    this.redis.on('error', (error: Error) => {
      if (!away) this.#log.warn('redis_unreachable', { role: this.#role, error });
      away = true;
    });
    this.redis.on('ready', () => {
      this.#log.info('redis_connected', { role: this.#role });
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
      .then(options.onDoorbellsLost, (error: unknown) => log.warn('redis_subscribe_failed', { error }));
  });
  const mayRing = perSecond(limits.redisDoorbellsPerSecond, options.clock);
  subscriber.redis.on('messageBuffer', (_channel: Buffer, message: Buffer) => {
    subscriber.understood();
    // After the pause the gateway asks all owners, so no revocation is missed.
    if (!mayRing()) return subscriber.leave('too many doorbells');
    const partition = partitionOfDoorbell(message);
    if (partition === undefined) options.onDoorbellsLost();
    else options.onDoorbell(partition);
  });
  for (const { redis } of [commands, subscriber]) redis.connect().catch(() => {}); // logged by 'error'; ioredis tries again

  const sharer = shareRates(commands, options);
  return {
    ring: (partition) => {
      if (commands.redis.status !== 'ready') return; // the others learn of it by their poll
      commands.redis
        .publish(channel, String(partition))
        .catch((error: unknown) => log.warn('redis_publish_failed', { error }));
    },
    stop: () => {
      clearInterval(sharer);
      commands.redis.disconnect();
      subscriber.redis.disconnect();
    },
  };
}

/** Undefined for a message that names no partition. */
export function partitionOfDoorbell(message: Buffer): number | undefined {
  const text = message.length <= 4 ? message.toString('latin1') : '';
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

/** Returns a function that is true for the first `most` calls of each second. */
export function perSecond(most: number, clock: Clock): () => boolean {
  let second = -1;
  let calls = 0;
  return () => {
    const now = Math.floor(clock.monotonicMs() / 1000);
    calls = now === second ? calls + 1 : 1;
    second = now;
    return calls <= most;
  };
}

/** A tenant's common count, as this gateway last read it. */
interface Count {
  readonly sum: number;
  /** When the gateway last renewed the expiry of the count in Redis. */
  readonly keptAtMs: number;
}

/**
 * True if a count, which `added` made `sum`, needs a new expiry in Redis: half of its life is over,
 * or it may be new there and have no expiry.
 */
export const isLapsing = (known: Count | undefined, sum: number, added: number, nowMs: number): boolean =>
  known === undefined || sum <= added || nowMs - known.keptAtMs >= redisCountTtlSeconds * 500;

/**
 * Each gateway adds the number of requests that it admitted to a tenant's common count, and reads
 * the sum. Growth of the sum beyond its own part comes from the other gateways. A forged higher sum
 * costs a tenant no more than the limiter lets a charge take; a forged lower sum makes each gateway
 * limit rates by itself. A count's expiry is set when it is new, and renewed once in half of its
 * life: doing so with each addition made half of all commands.
 */
function shareRates(commands: Guarded, { clusterId, tenantRates, clock, log }: SharedMemoryOptions): NodeJS.Timeout {
  const { redis } = commands;
  const counts = new Map<string, Count>();
  const keyOf = (tenant: string): string => `longshore:${clusterId}:rate:${tenant}`;
  let busy = false;

  const share = async (): Promise<void> => {
    const taken = [...tenantRates.tellUntold()];
    if (taken.length === 0) return;
    const sums = redis.pipeline();
    for (const [tenant, count] of taken) sums.incrby(keyOf(tenant), count);
    const results = (await sums.exec()) ?? [];
    commands.understood();
    const nowMs = clock.monotonicMs();
    const renewals = redis.pipeline();
    taken.forEach(([tenant, count], index) => {
      const [error, sum] = (results[index] ?? []) as [error?: Error | null, sum?: number];
      if (error || sum === undefined || !Number.isSafeInteger(sum)) return;
      const before = counts.get(tenant);
      const lapses = isLapsing(before, sum, count, nowMs);
      if (lapses) renewals.expire(keyOf(tenant), redisCountTtlSeconds);
      counts.set(tenant, { sum, keptAtMs: lapses ? nowMs : (before?.keptAtMs ?? nowMs) });
      // A smaller sum means that the count expired and restarted.
      if (before !== undefined && sum - count > before.sum) tenantRates.charge(tenant, sum - count - before.sum);
    });
    if (counts.size > limits.rateBuckets) counts.clear();
    if (renewals.length === 0) return;
    await renewals.exec();
    commands.understood();
  };

  return setInterval(() => {
    if (busy || redis.status !== 'ready') return;
    busy = true;
    share()
      .catch((error: unknown) => log.debug('rates_share_failed', { error }))
      .finally(() => {
        busy = false;
      });
  }, rateShareMs).unref();
}
