/**
 * The current usage of containers, as their hosts report it. All watchers of a container at this
 * gateway share one session with its host (ADR 39).
 */
import type { Clock } from '../../lib/time/clock.ts';
import { DecodeError, decoder } from '../../lib/decode.ts';
import type { Tunnel } from '../../lib/tunnel/tunnel.ts';
import type { ContainerStats } from '../../schemas/api/usage/stats.ts';
import type { ContainerId, TenantId } from '../../schemas/ids.ts';
import type { SessionPlace } from '../../schemas/wire/answers.ts';
import { StatsMessage, type SessionEnd } from '../../schemas/wire/session.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { seconds } from '../../schemas/limits/units.ts';

/** An older sample answers no request. */
export const statsFreshMs = 2 * seconds;

const decodeMessage = decoder(StatsMessage);

export interface Watched {
  readonly tenant: TenantId;
  readonly id: ContainerId;
}

/** A sample; a later one has a larger number. */
export interface Sample {
  readonly number: number;
  readonly stats: ContainerStats;
}

/** One watcher's share of a watch. */
export interface WatchShare {
  /** The newest sample; `undefined` if there is none, or if it is old. */
  newest(): Sample | undefined;
  /** The reason why no more samples come; `undefined` while they do. */
  ended(): SessionEnd | undefined;
  /** Calls back at each sample and at the end, until the returned function is called. */
  listen(ring: () => void): () => void;
  leave(): void;
}

export class StatsWatches {
  readonly #sessions: Pick<Sessions, 'open'>;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #watches = new Map<string, Watch>();

  constructor(sessions: Pick<Sessions, 'open'>, clock: Pick<Clock, 'monotonicMs'>) {
    this.#sessions = sessions;
    this.#clock = clock;
  }

  /** Containers that are watched. */
  get size(): number {
    return this.#watches.size;
  }

  /** @param place its host, by its owner; on another host it is another watch */
  watch(container: Watched, place: SessionPlace): WatchShare {
    const { tenant, id } = container;
    const key = [tenant, id, place.host, place.agent, place.placement].join(' ');
    let watch = this.#watches.get(key);
    if (watch === undefined) {
      const opened = new Watch(this.#clock, () => {
        if (this.#watches.get(key) === opened) this.#watches.delete(key);
      });
      watch = opened;
      this.#watches.set(key, watch);
      void this.#open(watch, container, place);
    }
    return watch.share();
  }

  async #open(watch: Watch, { tenant, id }: Watched, place: SessionPlace): Promise<void> {
    const opening = await this.#sessions.open(place, { tenant, id, placement: place.placement, stats: {} });
    if (opening.ok) watch.attach(opening.tunnel);
    else watch.end(opening.end);
  }
}

class Watch {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #onDone: () => void;
  readonly #shares = new Set<object>();
  readonly #rings = new Set<() => void>();
  #tunnel: Tunnel | undefined;
  #newest: Sample | undefined;
  #newestAtMs = 0;
  #end: SessionEnd | undefined;

  constructor(clock: Pick<Clock, 'monotonicMs'>, onDone: () => void) {
    this.#clock = clock;
    this.#onDone = onDone;
  }

  share(): WatchShare {
    const share: WatchShare = {
      newest: () => (this.#clock.monotonicMs() - this.#newestAtMs < statsFreshMs ? this.#newest : undefined),
      ended: () => this.#end,
      listen: (ring) => {
        this.#rings.add(ring);
        return () => this.#rings.delete(ring);
      },
      leave: () => {
        this.#shares.delete(share);
        if (this.#shares.size === 0) this.#leave();
      },
    };
    this.#shares.add(share);
    return share;
  }

  attach(tunnel: Tunnel): void {
    if (this.#end !== undefined) {
      tunnel.end(this.#end);
      return;
    }
    this.#tunnel = tunnel;
    tunnel.attach({
      onData: () => tunnel.end({ reason: 'invalid', message: 'a host sends bytes in place of samples' }),
      onControl: (text) => {
        this.#take(text);
        tunnel.tookControl();
      },
      onRoom: () => {},
      onEnd: (end) => this.end(end),
    });
  }

  end(end: SessionEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#onDone();
    this.#ringAll();
  }

  #take(text: string): void {
    try {
      const { stats } = decodeMessage(Buffer.from(text));
      this.#newest = { number: (this.#newest?.number ?? 0) + 1, stats: known(stats) };
      this.#newestAtMs = this.#clock.monotonicMs();
      this.#ringAll();
    } catch (error) {
      // A later release may say more.
      if (!(error instanceof DecodeError)) throw error;
    }
  }

  /** Nobody watches any more. */
  #leave(): void {
    const left: SessionEnd = { reason: 'left', message: 'no client is connected' };
    if (this.#tunnel === undefined) this.end(left);
    else this.#tunnel.end(left);
  }

  #ringAll(): void {
    for (const ring of [...this.#rings]) ring();
  }
}

/** Without what a later release adds. */
const known = ({ cpu_millis, mem_bytes, mem_limit, net_rx_bytes, net_tx_bytes, pids, at }: ContainerStats) => ({
  cpu_millis,
  mem_bytes,
  mem_limit,
  net_rx_bytes,
  net_tx_bytes,
  pids,
  at,
});
