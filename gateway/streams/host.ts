/**
 * The life of streams and waits: how many a tenant may have, what wakes them, and what ends them. A
 * doorbell (a message on a core NATS subject) only says "look now"; the content always comes from
 * its source (level, not edge). A doorbell may be lost, so streams also look by the clock.
 */
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import { Doorbell } from '../../lib/time/doorbell.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Identity } from '../auth/claims.ts';
import type { Exchange, Sink } from '../http/engine/engine.ts';
import type { Meters } from '../metrics.ts';
import { noPermitFor } from '../http/refusals.ts';
import { everyAnswer, type Result } from '../http/respond.ts';
import type { Permits, NoPermit } from '../../lib/permits.ts';
import type { EndReason } from '../../schemas/api/frames.ts';
import { encodeFrame, endFrame, heartbeat, preamble, sseHeaders, type Frame } from './sse.ts';

/** The wait between a ring that had nothing to show yet and the next read. */
const streamSettleMs = 100;

/** The frames that a source has now. `more`: ask again at once. `ended`: nothing will follow. */
export interface Showing {
  readonly frames: readonly Frame[];
  readonly more: boolean;
  readonly ended: boolean;
}

/**
 * The source of a doorbell's rings: messages on a subject, which may have wildcards, or a function
 * that gets the ring, and returns a function that silences it.
 */
export type Bell = string | ((ring: () => void) => () => void);

export interface FollowOptions {
  readonly exchange: Exchange;
  readonly requestId: string;
  readonly identity: Identity;
  readonly doorbell: Bell;
  /** Returns the frames since the last call. If it rejects, it is called again later. */
  readonly show: () => Promise<Showing>;
}

/** Intervals at which streams and waits look without a doorbell. */
export interface Polls {
  readonly streamMs: number;
  readonly waitMs: number;
}

/** A request that needs a permit, and the release of its permit among requests (permits.ts). */
export interface Guest {
  readonly tenant: TenantId;
  readonly client: string;
  readonly route: string;
  readonly releasePermit: () => void;
}

const noPermit = noPermitFor('open streams and waits');

export interface StreamHostDependencies {
  /** The permits of streams and waits. */
  readonly permits: Permits;
  /** Calls `ring` at every message on a subject, until the returned function is called. */
  readonly listen: (subject: string, ring: () => void) => () => void;
  readonly clock: Clock;
  readonly log: Log;
  readonly meters: Meters;
  /** True while the token that opened a stream is valid. */
  readonly stillGood: (identity: Identity) => boolean;
  readonly polls: Polls;
}

export class StreamHost {
  readonly polls: Polls;
  readonly #dependencies: StreamHostDependencies;
  readonly #doorbells = new Set<Doorbell>();
  #stopping = false;
  #waitsOver = false;

  constructor(dependencies: StreamHostDependencies) {
    this.#dependencies = dependencies;
    this.polls = dependencies.polls;
  }

  /** Ends every stream now. */
  endStreams(): void {
    this.#stopping = true;
    this.#ringAll();
  }

  /** Answers every wait now. */
  endWaits(): void {
    this.#waitsOver = true;
    this.#ringAll();
  }

  waitsOver(): boolean {
    return this.#waitsOver;
  }

  #ringAll(): void {
    for (const doorbell of this.#doorbells) doorbell.ring();
  }

  /** Calls `ring` at every message on a subject, until the returned function is called. */
  listen(subject: string, ring: () => void): () => void {
    return this.#dependencies.listen(subject, ring);
  }

  /** Holds a permit among streams and waits while `work` runs; a refusal if there is no permit. */
  async withPermit<T>({ tenant, client, route, releasePermit }: Guest, work: () => Promise<T>): Promise<T | Result> {
    const { meters, permits } = this.#dependencies;
    const permit = permits.takeFor(client, tenant);
    if (typeof permit === 'string') return this.#refuse(permit);
    releasePermit();
    meters.streamOpened(route);
    try {
      return await work();
    } finally {
      meters.streamClosed(route);
      permit.release();
    }
  }

  #refuse(why: NoPermit): Result {
    if (why !== 'full') this.#dependencies.meters.rateLimited('streams');
    return noPermit[why];
  }

  /** Runs `work` with a doorbell. */
  async withDoorbell<T>(bell: Bell, exchange: Exchange, work: (doorbell: Doorbell) => Promise<T>): Promise<T> {
    const doorbell = new Doorbell();
    this.#doorbells.add(doorbell);
    exchange.onAborted(() => doorbell.ring());
    const ring = (): void => doorbell.ring();
    const silence = typeof bell === 'string' ? this.#dependencies.listen(bell, ring) : bell(ring);
    try {
      return await work(doorbell);
    } finally {
      silence();
      this.#doorbells.delete(doorbell);
    }
  }

  /**
   * Streams until the client leaves, the source ends, the token is invalid or the process stops.
   */
  follow(options: FollowOptions): Promise<void> {
    return this.withDoorbell(options.doorbell, options.exchange, (doorbell) => this.#follow(options, doorbell));
  }

  async #follow({ exchange, requestId, identity, show }: FollowOptions, doorbell: Doorbell): Promise<void> {
    const { clock, log } = this.#dependencies;
    const sink = exchange.stream({ status: 200, headers: [...everyAnswer(requestId), ...sseHeaders] });
    const writer = new PacedWriter(sink, clock, () => exchange.aborted || this.#stopping);
    await writer.write(preamble);
    let rang = false;
    while (!exchange.aborted) {
      const end = this.#endReason(identity);
      if (end !== undefined) return finish(writer, sink, end);
      const shown = await show().catch((error: unknown): undefined => {
        log.debug('stream_read_failed', { requestId, error });
        return undefined;
      });
      if (shown !== undefined && shown.frames.length > 0) {
        if (!(await writer.write(shown.frames.map(encodeFrame).join('')))) return sink.end();
      }
      if (shown?.ended === true) return finish(writer, sink, 'done');
      if (shown?.more === true || exchange.aborted) continue;
      // NATS delivers a message before JetStream has stored it: after a ring without content, look
      // again soon.
      const isEarly = rang && (shown === undefined || shown.frames.length === 0);
      rang = await doorbell.wait(isEarly ? streamSettleMs : this.polls.streamMs);
      if (writer.idleMs() >= limits.streamHeartbeatMs) await writer.write(heartbeat);
    }
  }

  #endReason(identity: Identity): EndReason | undefined {
    if (this.#stopping) return 'stopping';
    return this.#dependencies.stillGood(identity) ? undefined : 'unauthenticated';
  }
}

async function finish(writer: PacedWriter, sink: Sink, reason: EndReason): Promise<void> {
  await writer.write(endFrame(reason));
  sink.end();
}

/** Writes no faster than the client reads: an engine buffers without bound. */
class PacedWriter {
  readonly #sink: Sink;
  readonly #clock: Clock;
  readonly #gone: () => boolean;
  readonly #drained = new Doorbell();
  #lastWriteMs: number;

  constructor(sink: Sink, clock: Clock, gone: () => boolean) {
    this.#sink = sink;
    this.#clock = clock;
    this.#gone = gone;
    this.#lastWriteMs = clock.monotonicMs();
    sink.onDrain(() => this.#drained.ring());
  }

  idleMs(): number {
    return this.#clock.monotonicMs() - this.#lastWriteMs;
  }

  /** False if the client has left, or has not read for so long that the stream gives it up. */
  async write(text: string): Promise<boolean> {
    this.#drained.hush();
    this.#lastWriteMs = this.#clock.monotonicMs();
    if (this.#sink.write(text)) return true;
    while (this.idleMs() < limits.streamStalledMs && !this.#gone()) {
      if (await this.#drained.wait(limits.streamPollMs)) return true;
    }
    return false;
  }
}
