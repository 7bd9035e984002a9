/**
 * Limits how fast log lines leave this host: a token bucket for each container, each tenant and the
 * host. Waiting blocks take turns, tenant by tenant and container by container, so that a noisy
 * container delays only its own lines.
 */
import type { Clock } from '../../lib/time/clock.ts';
import type { ContainerId, TenantId } from '../../schemas/ids.ts';
import type { RateScope } from '../metrics.ts';
import type { LogSource } from './source.ts';

/**
 * Containers and tenants whose rates are in memory; with more, those that are not over their
 * rates are dropped.
 */
const logBucketsHeld = 2048;
/** The longest interval between two checks of the blocks that wait for a rate. */
const logTurnLookMs = 100;

/** Encoded bytes a second; 0 means no limit. */
export interface LogRates {
  readonly containerBytes: number;
  readonly tenantBytes: number;
  readonly hostBytes: number;
  /** A bucket unused for this long is full. */
  readonly burstMs: number;
}

/**
 * A block may go while the bucket is not empty, and may leave it in debt: no block is too large for
 * a small bucket.
 */
export class TokenBucket {
  readonly #bytesPerMs: number;
  readonly #mostBytes: number;
  #bytes: number;
  #atMs: number;

  constructor(bytesPerSecond: number, burstMs: number, nowMs: number) {
    this.#bytesPerMs = bytesPerSecond / 1000;
    this.#mostBytes = Math.max(1, this.#bytesPerMs * burstMs);
    this.#bytes = this.#mostBytes;
    this.#atMs = nowMs;
  }

  /** Milliseconds until a block may go; 0 if it may go now. */
  waitMs(nowMs: number): number {
    if (this.#bytesPerMs === 0) return 0;
    this.#fill(nowMs);
    return this.#bytes >= 1 ? 0 : (1 - this.#bytes) / this.#bytesPerMs;
  }

  take(bytes: number, nowMs: number): void {
    this.#fill(nowMs);
    this.#bytes -= bytes;
  }

  isFull(nowMs: number): boolean {
    this.#fill(nowMs);
    return this.#bytesPerMs === 0 || this.#bytes >= this.#mostBytes;
  }

  #fill(nowMs: number): void {
    this.#bytes = Math.min(this.#mostBytes, this.#bytes + Math.max(0, nowMs - this.#atMs) * this.#bytesPerMs);
    this.#atMs = nowMs;
  }
}

/**
 * Buckets are made on demand, and dropped when they are full again: a full bucket holds no history.
 */
class Buckets<Key> {
  readonly #bytesPerSecond: number;
  readonly #burstMs: number;
  readonly #buckets = new Map<Key, TokenBucket>();

  constructor(bytesPerSecond: number, burstMs: number) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#burstMs = burstMs;
  }

  waitMs(key: Key, nowMs: number): number {
    return this.#buckets.get(key)?.waitMs(nowMs) ?? 0;
  }

  take(key: Key, bytes: number, nowMs: number): void {
    if (this.#bytesPerSecond === 0) return;
    if (!this.#buckets.has(key) && this.#buckets.size >= logBucketsHeld) this.#dropFull(nowMs);
    const bucket = this.#buckets.get(key) ?? new TokenBucket(this.#bytesPerSecond, this.#burstMs, nowMs);
    bucket.take(bytes, nowMs);
    this.#buckets.set(key, bucket);
  }

  #dropFull(nowMs: number): void {
    for (const [key, bucket] of this.#buckets) if (bucket.isFull(nowMs)) this.#buckets.delete(key);
  }
}

interface Waiting {
  readonly bytes: number;
  readonly resume: (scope: RateScope | undefined) => void;
  /** The first rate that the block waited for. */
  scope: RateScope | undefined;
}

export interface LogTurns {
  /**
   * Resolves when a block of so many bytes may go, with the rate that it waited for, if any; at
   * once when the signal aborts.
   */
  turn(source: LogSource, bytes: number, signal: AbortSignal): Promise<RateScope | undefined>;
}

export function createLogTurns(rates: LogRates, clock: Pick<Clock, 'monotonicMs'>): LogTurns {
  const nowMs = () => clock.monotonicMs();
  const { burstMs } = rates;
  const host = new TokenBucket(rates.hostBytes, burstMs, nowMs());
  const tenants = new Buckets<TenantId>(rates.tenantBytes, burstMs);
  const containers = new Buckets<ContainerId>(rates.containerBytes, burstMs);
  /** In the order of turns: a served tenant goes to the end. */
  const waiting = new Map<TenantId, Map<ContainerId, Waiting[]>>();
  let timer: NodeJS.Timeout | undefined;

  const scopeOf = (tenant: TenantId, id: ContainerId, atMs: number): RateScope | undefined => {
    if (containers.waitMs(id, atMs) > 0) return 'container';
    if (tenants.waitMs(tenant, atMs) > 0) return 'tenant';
    return host.waitMs(atMs) > 0 ? 'host' : undefined;
  };
  const waitMs = (tenant: TenantId, id: ContainerId, atMs: number): number =>
    Math.max(containers.waitMs(id, atMs), tenants.waitMs(tenant, atMs), host.waitMs(atMs));

  /** The next block in turn that may go; `undefined` if all must wait. */
  const next = (atMs: number): { tenant: TenantId; id: ContainerId; queue: Waiting[] } | undefined => {
    for (const [tenant, ofTenant] of waiting) {
      for (const [id, queue] of ofTenant) {
        const [first] = queue;
        const scope = scopeOf(tenant, id, atMs);
        if (scope === undefined) return { tenant, id, queue };
        if (first !== undefined) first.scope ??= scope;
      }
    }
    return undefined;
  };

  const remove = (tenant: TenantId, id: ContainerId): void => {
    const ofTenant = waiting.get(tenant);
    ofTenant?.delete(id);
    if (ofTenant?.size === 0) waiting.delete(tenant);
  };

  const serve = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const atMs = nowMs();
    for (let found = next(atMs); found !== undefined; found = next(atMs)) {
      const { tenant, id, queue } = found;
      const ofTenant = waiting.get(tenant) ?? new Map<ContainerId, Waiting[]>();
      const served = queue.shift();
      remove(tenant, id);
      waiting.delete(tenant);
      if (queue.length > 0) ofTenant.set(id, queue);
      if (ofTenant.size > 0) waiting.set(tenant, ofTenant);
      if (served === undefined) continue;
      containers.take(id, served.bytes, atMs);
      tenants.take(tenant, served.bytes, atMs);
      host.take(served.bytes, atMs);
      served.resume(served.scope);
    }
    let soonestMs = Infinity;
    for (const [tenant, ofTenant] of waiting) {
      for (const id of ofTenant.keys()) soonestMs = Math.min(soonestMs, waitMs(tenant, id, atMs));
    }
    if (soonestMs < Infinity) timer = setTimeout(serve, Math.min(logTurnLookMs, Math.ceil(soonestMs)));
  };

  return {
    turn: ({ tenant, id }, bytes, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) {
          resolve(undefined);
          return;
        }
        const ofTenant = waiting.get(tenant) ?? new Map<ContainerId, Waiting[]>();
        const queue = ofTenant.get(id) ?? [];
        const one: Waiting = {
          bytes,
          scope: undefined,
          resume: (scope) => {
            signal.removeEventListener('abort', giveUp);
            resolve(scope);
          },
        };
        const giveUp = (): void => {
          queue.splice(queue.indexOf(one), 1);
          if (queue.length === 0) remove(tenant, id);
          resolve(one.scope);
        };
        signal.addEventListener('abort', giveUp, { once: true });
        queue.push(one);
        ofTenant.set(id, queue);
        waiting.set(tenant, ofTenant);
        serve();
      }),
  };
}
