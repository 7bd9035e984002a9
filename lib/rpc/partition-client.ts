/**
 * The client of the partition protocol: gateways and owners ask the owners of partitions, many asks
 * in one message. A NATS round trip for each HTTP request would cap a two-core machine at a third
 * of what it can do. So all asks that arrive for one lane in one turn of the event loop share a
 * message, at most `laneMessagesInFlight` messages of a lane are under way, and the next one
 * collects meanwhile.
 *
 * An ask has one fixed deadline, and as many attempts as fit before it:
 * - No responders: nothing was executed. The lane pauses and tries again.
 * - `not_owner`: this responder did not execute the ask; another may have, and its answer still
 *   counts. The lane pauses and tries again.
 * - No answer for an attempt's time: the asks are sent again, writes under the same operation id,
 *   so an owner that executed the first attempt answers with the outcome that it kept (A5). A late
 *   answer to an earlier attempt counts, unless it refuses a write (item.ts).
 * - At the deadline: `timeout` for a write that may have been executed, `unavailable` for
 *   everything else.
 */
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { backoffMs, jitter } from '../time/backoff.ts';
import type { Answers } from '../nats/answers.ts';
import type { Clock } from '../time/clock.ts';
import { inboxOf } from '../nats/inbox.ts';
import type { Log } from '../log.ts';
import { limits } from '../../schemas/limits.ts';
import { addressOf, type Question } from '../../schemas/wire/asks.ts';
import { decodeAnswers, notOwner, type Answer } from '../../schemas/wire/codec.ts';
import { isSuccessCode } from '../../schemas/errors.ts';
import { partitionOf, subjects } from '../../schemas/wire/subjects.ts';
import { sparing, type SparingLog } from '../sparing.ts';
import { isSettled, mayDecide, newItem, send, sendAgain, settle, silencesOf, unanswered } from './item.ts';
import type { Item, Outcome, RetryReason } from './item.ts';
import { ItemQueue, gather, laneKinds, type Batch, type LaneKind } from './lane.ts';

export type { Question } from '../../schemas/wire/asks.ts';
export type { Outcome, RetryReason } from './item.ts';
export type { LaneKind } from './lane.ts';

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
 * A message under way. A lapsed one has given its slot back and its items are sent again, but an
 * answer to it still counts.
 */
interface Flight {
  readonly lane: Lane;
  readonly items: readonly Item[];
  readonly forgetAtMs: number;
  state: { readonly phase: 'waiting'; readonly timer: NodeJS.Timeout } | { readonly phase: 'lapsed' };
}

const lapsed = { phase: 'lapsed' } as const;

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
    return new Promise((resolve) => this.#enqueue(kind, question, deadlineMs, resolve));
  }

  stop(): void {
    clearInterval(this.#sweeper);
    this.#subscription.unsubscribe();
    for (const { state } of this.#flights.values()) if (state.phase === 'waiting') clearTimeout(state.timer);
  }

  #enqueue(kind: LaneKind, question: Question, deadlineMs: number, resolve: (outcome: Outcome) => void): void {
    const address = addressOf(question);
    const lane = this.#lanes.get(kind)?.[typeof address === 'number' ? address : this.partitionFor(address)];
    if (lane === undefined || lane.queue.length >= limits.laneQueuedItems || this.#isAway()) {
      resolve(unavailable);
      return;
    }
    lane.queue.push(newItem(question, deadlineMs, resolve));
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

  #send(lane: Lane, { items, payload }: Batch, nowMs: number): void {
    const id = (this.#flightNumber++).toString(36);
    this.#options.meters?.batch(lane.kind, items.length);
    this.#options.answers?.asked();
    try {
      this.#nc.publish(lane.subject, payload, { reply: `${this.#inbox}.${id}` });
    } catch (error) {
      // The connection is closed for good, or the batch is over the server's bound: nothing of it
      // left the process this time.
      this.#options.log.error('publish_failed', { subject: lane.subject, bytes: payload.length, error });
      for (const item of items) settle(item, unanswered(item));
      return;
    }
    let silences = 0;
    for (const item of items) {
      silences = Math.max(silences, silencesOf(item));
      send(item, id);
    }
    const attemptMs = backoffMs(silences, { minMs: limits.attemptMs, maxMs: limits.attemptMaxMs });
    const forgetAtMs = nowMs + this.#options.requestDeadlineMs + limits.attemptMaxMs;
    const timer = setTimeout(() => this.#onSilence(flight), attemptMs);
    const flight: Flight = { lane, items, forgetAtMs, state: { phase: 'waiting', timer } };
    this.#flights.set(id, flight);
    lane.inFlight++;
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
      if (item === undefined || !mayDecide(item, id, isSuccessCode(code))) continue;
      if (code === notOwner) isRefused = true;
      else settle(item, { code, body });
    }
    if (isRefused) {
      this.#onRefused(flight, 'not_owner');
      return;
    }
    this.#answeredAtMs = this.#options.clock.monotonicMs();
    flight.lane.refusals = 0;
    flight.lane.pausedUntilMs = 0;
    if (flight.items.every(isSettled)) this.#end(id, flight);
    // A part of the answer: the owner is alive, and the rest has an attempt's time of its own.
    else if (flight.state.phase === 'waiting') flight.state.timer.refresh();
  }

  /** The lane pauses; then it asks again what has no answer. */
  #onRefused(flight: Flight, reason: RetryReason): void {
    if (flight.state.phase === 'lapsed') return;
    const { lane } = flight;
    const nowMs = this.#options.clock.monotonicMs();
    const pauseMs = jitter(backoffMs(lane.refusals++, { minMs: limits.laneRetryMinMs, maxMs: limits.laneRetryMaxMs }));
    lane.pausedUntilMs = nowMs + pauseMs;
    setTimeout(() => this.#plan(lane), pauseMs + 1).unref();
    this.#sendAgain(flight, reason);
  }

  #onSilence(flight: Flight): void {
    if (flight.state.phase === 'waiting') this.#sendAgain(flight, 'lost');
  }

  /**
   * All that has no answer, whatever was refused: the responder that refuses one ask may be
   * committing another.
   */
  #sendAgain(flight: Flight, reason: RetryReason): void {
    const again = flight.items.filter((item) => sendAgain(item, reason));
    this.#options.meters?.retry(reason, again.length);
    flight.lane.queue.putBack(again);
    this.#lapse(flight);
  }

  /** waiting → lapsed: the lane has its slot back. */
  #lapse(flight: Flight): void {
    if (flight.state.phase === 'lapsed') return;
    clearTimeout(flight.state.timer);
    flight.state = lapsed;
    flight.lane.inFlight--;
    this.#plan(flight.lane);
  }

  /** No answer is awaited any more. */
  #end(id: string, flight: Flight): void {
    this.#flights.delete(id);
    this.#lapse(flight);
  }

  /** Settles items at their deadline, wakes lanes, and forgets flights that are over. */
  #sweep(): void {
    const nowMs = this.#options.clock.monotonicMs();
    const expire = (item: Item): void => {
      if (item.deadlineMs <= nowMs) settle(item, unanswered(item));
    };
    for (const lanes of this.#lanes.values()) {
      for (const lane of lanes) {
        if (lane.queue.length === 0) continue;
        for (const item of lane.queue) expire(item);
        lane.queue.takeOut(isSettled);
        // A pause's own timer may fire a little before the pause ends, and then wakes nothing.
        if (lane.queue.length > 0) this.#plan(lane);
      }
    }
    for (const [id, flight] of this.#flights) {
      for (const item of flight.items) expire(item);
      const isLate = flight.state.phase === 'lapsed' && flight.forgetAtMs <= nowMs;
      if (isLate || flight.items.every(isSettled)) this.#end(id, flight);
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

  /** No answer comes to what was under way when the connection broke. */
  #afterReconnect(): void {
    for (const flight of [...this.#flights.values()]) this.#onSilence(flight);
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
