/**
 * Asks to the partitions' owners, many in one message. A NATS round trip per HTTP request would cap
 * a two-core machine at a third of what it can do; so all that arrives in one turn of the event
 * loop for one lane goes in one message, and at most `laneMessagesInFlight` messages of a lane are
 * under way. While they are, the next one collects.
 *
 * An ask has one fixed deadline, and within it as many attempts as fit:
 * - no responders: nothing was executed; the lane pauses and tries again;
 * - `not_owner`: not by whoever says so; the lane pauses and tries again, and the flight is kept,
 *   for another may be the owner and answer yet;
 * - no answer for an attempt's time: the asks are sent again, writes under the same operation id,
 *   so that an owner that did execute the first answers with the outcome that it has (A5). A late
 *   answer to the first still counts, but for the refusal of a write: the next may find the name
 *   free that was taken;
 * - at the deadline: `timeout` for a write that may have been executed, `unavailable` for
 *   everything else.
 */
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { backoffMs, jitter } from '../backoff.ts';
import type { Answers } from '../nats/answers.ts';
import type { Clock } from '../clock.ts';
import { inboxOf } from '../nats/inbox.ts';
import type { Log } from '../log.ts';
import { limits } from '../../schemas/limits.ts';
import { addressOf, type Question } from '../../schemas/wire/asks.ts';
import { decodeAnswers, notOwner, type Answer } from '../../schemas/wire/codec.ts';
import { isSuccessCode } from '../../schemas/errors.ts';
import { partitionOf, subjects } from '../../schemas/wire/subjects.ts';
import { sparing, type SparingLog } from '../sparing.ts';
import { ItemQueue, gather, laneKinds, settle, verdictUnanswered } from './lane.ts';
import type { Batch, Item, LaneKind, Outcome } from './lane.ts';

export type { Question } from '../../schemas/wire/asks.ts';
export type { LaneKind, Outcome } from './lane.ts';

/** Why asks were sent again. */
export type RetryReason = 'no_responders' | 'not_owner' | 'lost';

export interface PartitionClientMeters {
  batch(lane: LaneKind, items: number): void;
  retry(reason: RetryReason, items: number): void;
}

interface Lane {
  readonly kind: LaneKind;
  readonly subject: string;
  readonly maxInFlight: number;
  readonly queue: ItemQueue;
  inFlight: number;
  /** Refusals in a row; the lane pauses after each. */
  refusals: number;
  pausedUntilMs: number;
}

/**
 * A message under way. Lapsed: its slot was given up, but an answer that comes late is still good.
 */
interface Flight {
  readonly lane: Lane;
  readonly items: readonly Item[];
  unanswered: number;
  state: 'waiting' | 'lapsed';
  readonly forgetAtMs: number;
  timer: NodeJS.Timeout | undefined;
}

const unavailable: Outcome = { code: 'unavailable', body: '' };

export interface PartitionClientOptions {
  readonly partitions: number;
  readonly requestDeadlineMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly meters?: PartitionClientMeters;
  /**
   * Learns what is asked and answered, to judge the NATS server by it. Left out where other traffic
   * judges it.
   */
  readonly answers?: Answers;
}

export class PartitionClient {
  readonly partitions: number;
  readonly #nc: NatsConnection;
  readonly #options: PartitionClientOptions;
  readonly #refusals: SparingLog;
  readonly #lanes: ReadonlyMap<LaneKind, readonly Lane[]>;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #flights = new Map<string, Flight>();
  readonly #dirty = new Set<Lane>();
  readonly #sweeper: NodeJS.Timeout;
  #flightNumber = 0;
  #flushPlanned = false;
  #disconnectedAtMs: number | undefined;
  #answeredAtMs = -Infinity;

  constructor(nc: NatsConnection, options: PartitionClientOptions) {
    this.#nc = nc;
    this.#options = options;
    this.#refusals = sparing(options.log, limits.refusalLogMs, options.clock);
    this.partitions = options.partitions;
    this.#lanes = new Map(laneKinds.map((kind) => [kind, lanesOf(kind, options.partitions)]));
    this.#inbox = inboxOf(nc);
    this.#subscription = nc.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#onMessage(message);
      },
    });
    this.#sweeper = setInterval(() => this.#sweep(), limits.rpcSweepMs).unref();
    void this.#watchConnection();
  }

  /** Whether NATS is there now. */
  connected(): boolean {
    return this.#disconnectedAtMs === undefined;
  }

  /** Since when no owner of a partition has answered anything: a length of time. */
  unansweredMs(): number {
    return this.#options.clock.monotonicMs() - this.#answeredAtMs;
  }

  partitionFor(key: string): number {
    return partitionOf(key, this.partitions);
  }

  queued(kind: LaneKind): number {
    return (this.#lanes.get(kind) ?? []).reduce((sum, { queue }) => sum + queue.length, 0);
  }

  /** Never rejects. `deadlineMs` is of the monotonic clock. */
  ask(kind: LaneKind, question: Question, deadlineMs: number): Promise<Outcome> {
    return new Promise((settle) => this.#enqueue(kind, question, deadlineMs, settle));
  }

  stop(): void {
    clearInterval(this.#sweeper);
    this.#subscription.unsubscribe();
    for (const flight of this.#flights.values()) clearTimeout(flight.timer);
  }

  #enqueue(kind: LaneKind, question: Question, deadlineMs: number, settle: (outcome: Outcome) => void): void {
    const address = addressOf(question);
    const lane = this.#lanes.get(kind)?.[typeof address === 'number' ? address : this.partitionFor(address)];
    if (lane === undefined || lane.queue.length >= limits.laneQueuedItems || this.#isAway()) {
      settle(unavailable);
      return;
    }
    lane.queue.push({
      question,
      deadlineMs,
      settle,
      settled: false,
      sentIn: undefined,
      lostAttempts: 0,
      perhapsExecuted: false,
    });
    this.#plan(lane);
  }

  #isAway(): boolean {
    return (
      this.#disconnectedAtMs !== undefined &&
      this.#options.clock.monotonicMs() - this.#disconnectedAtMs > limits.natsAwayMs
    );
  }

  /** All that arrives in this turn of the event loop shares a message. */
  #plan(lane: Lane): void {
    this.#dirty.add(lane);
    if (this.#flushPlanned) return;
    this.#flushPlanned = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#flushPlanned = false;
    const nowMs = this.#options.clock.monotonicMs();
    for (const lane of this.#dirty) {
      this.#dirty.delete(lane);
      this.#pump(lane, nowMs);
    }
  }

  #pump(lane: Lane, nowMs: number): void {
    // What a broken connection is given is sent when it is whole again, long after its asks have
    // expired.
    if (!this.connected() || nowMs < lane.pausedUntilMs) return;
    while (lane.inFlight < lane.maxInFlight) {
      const batch = gather(lane.queue, nowMs);
      if (batch === undefined) return;
      this.#send(lane, batch, nowMs);
    }
  }

  #send(lane: Lane, batch: Batch, nowMs: number): void {
    const id = (this.#flightNumber++).toString(36);
    const lostBefore = Math.max(...batch.items.map((item) => item.lostAttempts));
    const attemptMs = backoffMs(lostBefore, { minMs: limits.attemptMs, maxMs: limits.attemptMaxMs });
    const flight: Flight = {
      lane,
      items: batch.items,
      unanswered: batch.items.length,
      state: 'waiting',
      forgetAtMs: nowMs + this.#options.requestDeadlineMs + limits.attemptMaxMs,
      timer: setTimeout(() => this.#onSilence(id, flight), attemptMs),
    };
    this.#flights.set(id, flight);
    for (const item of batch.items) item.sentIn = id;
    lane.inFlight++;
    this.#options.meters?.batch(lane.kind, batch.items.length);
    this.#options.answers?.asked();
    try {
      this.#nc.publish(lane.subject, batch.payload, { reply: `${this.#inbox}.${id}` });
    } catch (error) {
      // The connection is closed for good, or the batch is over the server's bound: nothing of it
      // left the process, this time.
      this.#options.log.error('publish_failed', { subject: lane.subject, bytes: batch.payload.length, error });
      this.#flights.delete(id);
      this.#land(flight);
      for (const item of batch.items) settle(item, verdictUnanswered(item));
    }
  }

  #onMessage(message: Msg): void {
    const id = message.subject.slice(this.#inbox.length + 1);
    const flight = this.#flights.get(id);
    if (flight === undefined) return;
    if (message.data.length === 0 && message.headers?.code === 503) {
      this.#flights.delete(id);
      this.#onRefused(flight, 'no_responders');
      return;
    }
    this.#options.answers?.heard();
    let answers: Answer[];
    let malformed = 0;
    try {
      answers = decodeAnswers(message.string(), () => malformed++);
    } catch (error) {
      this.#refusals.error('protocol_refused', { subject: flight.lane.subject, error });
      return;
    }
    // Those without an answer are asked again.
    if (malformed > 0) this.#refusals.error('answer_malformed', { subject: flight.lane.subject, malformed });
    if (answers.length > 0) this.#onAnswers(id, flight, answers);
  }

  #onAnswers(id: string, flight: Flight, answers: readonly Answer[]): void {
    let isRefused = false;
    for (const { index, code, body } of answers) {
      const item = flight.items[index];
      if (item === undefined || item.settled) continue;
      // A write that was sent again may be done by then, under another owner too: the last one sent
      // decides.
      if ('op' in item.question && item.sentIn !== id && !isSuccessCode(code)) continue;
      if (code === notOwner) isRefused = true;
      else settle(item, { code, body });
    }
    if (!isRefused) this.#answeredAtMs = this.#options.clock.monotonicMs();
    if (isRefused) {
      // The others too: whoever refuses some of it may be committing the rest.
      for (const item of flight.items) item.perhapsExecuted = true;
      this.#onRefused(flight, 'not_owner');
      return;
    }
    flight.lane.refusals = 0;
    flight.lane.pausedUntilMs = 0;
    flight.unanswered = flight.items.reduce((count, item) => count + (item.settled ? 0 : 1), 0);
    if (flight.unanswered === 0) {
      this.#flights.delete(id);
      this.#land(flight);
    } else if (flight.state === 'waiting') {
      // A part of the answer: the owner is alive, the rest has an attempt's time of its own.
      flight.timer?.refresh();
    }
  }

  /** Whatever of it has no answer is asked again, after a pause. */
  #onRefused(flight: Flight, reason: RetryReason): void {
    if (flight.state === 'lapsed') return;
    const { lane } = flight;
    const nowMs = this.#options.clock.monotonicMs();
    const pauseMs = jitter(backoffMs(lane.refusals++, { minMs: limits.laneRetryMinMs, maxMs: limits.laneRetryMaxMs }));
    lane.pausedUntilMs = nowMs + pauseMs;
    setTimeout(() => this.#plan(lane), pauseMs + 1).unref();
    this.#sendAgain(flight, reason);
  }

  #onSilence(id: string, flight: Flight): void {
    if (flight.state === 'lapsed' || !this.#flights.has(id)) return;
    for (const item of flight.items) {
      if (item.settled) continue;
      item.lostAttempts++;
      item.perhapsExecuted = true;
    }
    this.#sendAgain(flight, 'lost');
  }

  #sendAgain(flight: Flight, reason: RetryReason): void {
    const again = flight.items.filter((item) => !item.settled);
    this.#options.meters?.retry(reason, again.length);
    flight.lane.queue.putBack(again);
    this.#land(flight);
  }

  /** Gives the lane its slot back, once. */
  #land(flight: Flight): void {
    clearTimeout(flight.timer);
    if (flight.state === 'lapsed') return;
    flight.state = 'lapsed';
    flight.lane.inFlight--;
    this.#plan(flight.lane);
  }

  /**
   * Settles what has reached its deadline, wakes lanes, and forgets flights that nobody can answer
   * any more.
   */
  #sweep(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const lanes of this.#lanes.values()) {
      for (const lane of lanes) {
        if (lane.queue.length === 0) continue;
        for (const item of lane.queue.takeOut((candidate) => candidate.settled || candidate.deadlineMs <= nowMs)) {
          settle(item, verdictUnanswered(item));
        }
        // Whatever should have woken the lane: a timer that fires a little before the end of a
        // pause wakes nobody.
        if (lane.queue.length > 0) this.#plan(lane);
      }
    }
    for (const [id, flight] of this.#flights) {
      for (const item of flight.items) {
        if (item.settled || item.deadlineMs > nowMs) continue;
        // A lapsed flight's items are in a queue, or in another flight that knows better.
        if (flight.state === 'waiting') item.perhapsExecuted = true;
        settle(item, verdictUnanswered(item));
      }
      if (flight.state === 'lapsed' && flight.forgetAtMs <= nowMs) this.#flights.delete(id);
      else if (flight.items.every((item) => item.settled)) {
        this.#flights.delete(id);
        this.#land(flight);
      }
    }
  }

  async #watchConnection(): Promise<void> {
    for await (const status of this.#nc.status()) {
      switch (status.type) {
        case 'disconnect':
        case 'close':
          this.#disconnectedAtMs ??= this.#options.clock.monotonicMs();
          break;
        case 'reconnect':
          this.#disconnectedAtMs = undefined;
          this.#afterReconnect();
          break;
        default:
          break;
      }
    }
  }

  /** Whatever was under way when the connection broke has no answer to wait for. */
  #afterReconnect(): void {
    for (const [id, flight] of [...this.#flights]) if (flight.state === 'waiting') this.#onSilence(id, flight);
    for (const lanes of this.#lanes.values()) {
      for (const lane of lanes) {
        lane.refusals = 0;
        lane.pausedUntilMs = 0;
        this.#plan(lane);
      }
    }
  }
}

const lanesOf = (kind: LaneKind, partitions: number): Lane[] =>
  Array.from({ length: partitions }, (_, partition) => ({
    kind,
    subject: subjects.partition(partition),
    maxInFlight: kind === 'watch' ? limits.watchLaneMessagesInFlight : limits.laneMessagesInFlight,
    queue: new ItemQueue(),
    inFlight: 0,
    refusals: 0,
    pausedUntilMs: 0,
  }));
