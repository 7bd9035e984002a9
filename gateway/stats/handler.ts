/** `GET /:id/stats`: what a container uses now, once or each second. */
import { sleep } from '../../lib/time/backoff.ts';
import { Doorbell } from '../../lib/time/doorbell.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import type { Log } from '../../lib/log.ts';
import type { AskOwner, LaneKind, Outcome } from '../../lib/rpc/partition-client.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { limits } from '../../schemas/limits.ts';
import { succeeded, tenantOf, type CallOf, type Handled, type HandlerOf } from '../call.ts';
import { conflict, failure, ok, type Result } from '../http/respond.ts';
import { refusalOf } from '../sessions/close.ts';
import type { Showing, StreamHost } from '../streams/host.ts';
import { follow, wantsAnswer } from '../streams/requests.ts';
import type { Sample, StatsWatches, WatchShare } from './watches.ts';
import { seconds } from '../../schemas/limits/units.ts';

/** A follower whose container does not run asks its owner no more often than this. */
export const statsLookMs = 1 * seconds;
/**
 * Time that a request waits for the next run of a container that its owner calls running, and the
 * interval of its looks.
 */
export const statsSwapMs = 3 * seconds;
const statsSwapLookMs = 250;

export interface StatsRouteOptions {
  readonly ask: AskOwner;
  readonly stats: Pick<StatsWatches, 'watch'>;
  readonly streams: Pick<StreamHost, 'withPermit' | 'follow'>;
  readonly clock: Clock;
  readonly log: Log;
}

type Call = CallOf<'container.stats' | 'container.stats.stream'>;

/** The route that streams has no such parameter. */
const wantsOne = ({ query, ...call }: Call): boolean => 'follow' in query && wantsAnswer({ ...call, query });

/** Asks the owner for the container's host; the owner checks the tenant (A6). */
const placeOf = (options: StatsRouteOptions, call: Call, kind: LaneKind, deadlineMs: number): Promise<Outcome> =>
  options.ask(
    kind,
    { type: 'container.session', tenant: tenantOf(call), id: call.params.id, ...call.origin },
    deadlineMs,
  );

const watch = (options: StatsRouteOptions, call: Call, { body }: Outcome): WatchShare => {
  const { data: place } = decodeAnswer('container.session', body);
  return options.stats.watch({ tenant: tenantOf(call), id: call.params.id }, place);
};

/** The first sample, or the answer where there is none. */
async function firstOf(
  share: WatchShare,
  { clock }: StatsRouteOptions,
  { exchange, deadlineMs }: Call,
): Promise<Sample | Result> {
  const doorbell = new Doorbell();
  const silence = share.listen(() => doorbell.ring());
  exchange.onAborted(() => doorbell.ring());
  try {
    for (;;) {
      const end = share.ended();
      if (end !== undefined) return refusalOf(end);
      const sample = share.newest();
      if (sample !== undefined) return sample;
      const leftMs = deadlineMs - clock.monotonicMs();
      if (leftMs <= 0 || exchange.aborted) return failure('unavailable', 'the host sent no sample in time; try again');
      await doorbell.wait(leftMs);
    }
  } finally {
    silence();
  }
}

/**
 * One client that follows. The stream outlives the runs of the container: while it does not run, no
 * sample comes, and when it is gone, the stream ends.
 */
class StatsFollower {
  readonly #options: StatsRouteOptions;
  readonly #call: Call;
  #share: WatchShare | undefined;
  #shown = 0;
  #lookedAtMs = 0;
  #isLooking = false;
  #isGone = false;
  #hasLeft = false;
  #ring: () => void = () => {};
  #silence: () => void = () => {};

  constructor(options: StatsRouteOptions, call: Call, share: WatchShare) {
    this.#options = options;
    this.#call = call;
    this.#share = share;
  }

  listen(ring: () => void): () => void {
    this.#ring = ring;
    this.#silence = this.#share?.listen(ring) ?? this.#silence;
    return () => this.leave();
  }

  show(): Promise<Showing> {
    if (this.#share?.ended() !== undefined) this.#drop();
    if (this.#share === undefined) this.#lookAgain();
    const sample = this.#share?.newest();
    const isNew = sample !== undefined && sample.number > this.#shown;
    if (isNew) this.#shown = sample.number;
    const frames = isNew ? [{ event: 'stats', data: JSON.stringify(sample.stats) }] : [];
    return Promise.resolve({ frames, more: false, ended: this.#isGone });
  }

  leave(): void {
    this.#hasLeft = true;
    this.#drop();
  }

  #drop(): void {
    this.#silence();
    this.#silence = () => {};
    this.#share?.leave();
    this.#share = undefined;
    this.#shown = 0;
  }

  /** Beside the stream, so that it hears of its token meanwhile. */
  #lookAgain(): void {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#isLooking || nowMs - this.#lookedAtMs < statsLookMs) return;
    this.#isLooking = true;
    this.#lookedAtMs = nowMs;
    void this.#look(nowMs + limits.watchAskMs);
  }

  async #look(deadlineMs: number): Promise<void> {
    try {
      const outcome = await placeOf(this.#options, this.#call, 'watch', deadlineMs);
      this.#isGone = outcome.code === 'not_found';
      if (succeeded(outcome) && !this.#hasLeft) {
        this.#share = watch(this.#options, this.#call, outcome);
        this.#silence = this.#share.listen(this.#ring);
      }
    } catch (error) {
      this.#options.log.debug('stream_read_failed', { requestId: this.#call.requestId, error });
    } finally {
      this.#isLooking = false;
      this.#ring();
    }
  }
}

/** `undefined` if the host says that the container does not run, and the owner that it does. */
async function once(options: StatsRouteOptions, call: Call): Promise<Handled | undefined> {
  const outcome = await placeOf(options, call, 'read', call.deadlineMs);
  if (!succeeded(outcome)) return outcome;
  const share = watch(options, call, outcome);
  const follower = new StatsFollower(options, call, share);
  try {
    // A refusal is an HTTP answer; after the first frame, a stream can only end.
    const first = await firstOf(share, options, call);
    if ('code' in first) return share.ended()?.reason === 'not_running' ? undefined : first;
    if (wantsOne(call)) return ok(first.stats);
    return await follow(
      options,
      call,
      (ring) => follower.listen(ring),
      () => follower.show(),
    );
  } finally {
    follower.leave();
  }
}

export const statsHandler =
  (options: StatsRouteOptions): HandlerOf<'container.stats' | 'container.stats.stream'> =>
  async (call): Promise<Handled> => {
    // An update or a restart puts another run in the place of the one that was asked for.
    const untilMs = Math.min(call.deadlineMs, options.clock.monotonicMs() + statsSwapMs);
    for (;;) {
      const handled = await once(options, call);
      if (handled !== undefined) return handled;
      if (options.clock.monotonicMs() >= untilMs || call.exchange.aborted) {
        return conflict('not_running', 'the container does not run');
      }
      await sleep(statsSwapLookMs);
    }
  };
