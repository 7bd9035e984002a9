/**
 * The client of the partition protocol: gateways and owners ask the owners of partitions, many asks
 * in one message. A NATS round trip for each HTTP request would cap a two-core machine at a third
 * of what it can do. So all asks that arrive for one lane in one turn of the event loop share a
 * message, and the next one collects while `laneMessagesInFlight` messages of the lane are without
 * an answer.
 *
 * An owner says in its answers who it is, and the next asks for that partition share the lane of
 * that owner with those for its other partitions. On `not_owner`, no responders or silence, and at
 * first, a partition has a lane of its own. Each partition has its share of a message, with its own
 * attempts and pauses, and a share in at most `laneMessagesInFlight` messages under way, so that a
 * slow partition holds up no other.
 *
 * An ask has one fixed deadline, and as many attempts as fit before it:
 * - No responders: nothing was executed. Its partition pauses and tries again.
 * - `not_owner`: this responder did not execute the ask; another may have, and its answer still
 *   counts. Its partition pauses and tries again.
 * - No answer for an attempt's time: the asks are sent again, writes under the same operation id,
 *   so an owner that executed the first attempt answers with the outcome that it kept (A5). A late
 *   answer to an earlier attempt counts, unless it refuses a write (item.ts).
 * - At the deadline: `timeout` for a write that may have been executed, `unavailable` for
 *   everything else.
 * - The owner is of the last release and does not know the ask (`protocolOfAsk`): `unavailable`. It
 *   is not asked, unless nothing is known of it yet.
 */
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { backoffMs, jitter } from '../time/backoff.ts';
import type { Answers } from '../nats/answers.ts';
import type { Clock } from '../time/clock.ts';
import { inboxOf } from '../nats/inbox.ts';
import type { Log } from '../log.ts';
import { limits } from '../../schemas/limits.ts';
import { splitHead } from '../../schemas/api/etag.ts';
import { addressOf, protocolOfAsk, type NewAsks, type Question } from '../../schemas/wire/asks.ts';
import { decodeAnswerPart, notOwner, type AnswerPart } from '../../schemas/wire/codec.ts';
import { errorBody, isSuccessCode, outcomeStatus } from '../../schemas/errors.ts';
import { partitionOf } from '../../schemas/wire/subjects.ts';
import { rateLimitedLog, type RateLimitedLog } from '../rate-limited-log.ts';
import type { Tracer } from '../trace/tracer.ts';
import { isSettled, mayDecide, newItem, outcomeBy, sendAgain, settle, unanswered } from './item.ts';
import type { Item, Outcome, RetryReason } from './item.ts';
import {
  enlist,
  gather,
  isLapsed,
  lapsed,
  takeOff,
  type Backlog,
  type Batch,
  type Flight,
  type Lane,
  type LaneKind,
  type Share,
} from './lane.ts';
import { Backlogs } from './backlogs.ts';
import { seconds } from '../../schemas/limits/units.ts';

/** Asks that wait in each lane, for each partition. */
export const laneQueuedItems = 10_000;
/** The first and the longest pause of a partition before it is asked again. */
const laneRetryMinMs = 10;
const laneRetryMaxMs = 500;
/** If NATS has been away for longer than this, asks are refused at once. */
export const natsAwayMs = 2 * seconds;
/** Asks that reached their deadline are settled this often, and silence is noticed. */
export const rpcSweepMs = 50;

export type { Question } from '../../schemas/wire/asks.ts';
export type { Outcome, RetryReason } from './item.ts';
export type { LaneKind } from './lane.ts';

export interface PartitionClientMeters {
  batch(lane: LaneKind, items: number): void;
  retry(reason: RetryReason, items: number): void;
}

/** Asks the owner of what a question names; see `PartitionClient.ask`. */
export type AskOwner = PartitionClient['ask'];

const unavailable: Outcome = { code: 'unavailable', body: '' };

const unknownToOwner: Outcome = {
  code: 'unavailable',
  body: errorBody({
    error: 'unavailable',
    message: 'an upgrade of Longshore is under way, and this works once it is finished',
  }),
};

export interface PartitionClientOptions {
  /** No ask takes longer, whatever its deadline: a request that makes keys may take minutes. */
  readonly requestDeadlineMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly meters?: PartitionClientMeters;
  /**
   * Tracks asks and answers, to judge the NATS server by them. Absent if other traffic judges it.
   */
  readonly answers?: Answers;
  /** `undefined` if nothing is traced. */
  readonly tracer?: Tracer | undefined;
  /** Called with each outcome, before its asker gets it. */
  readonly onOutcome?: (question: Question, outcome: Outcome) => void;
  /** In the place of those that this release has. */
  readonly newAsks?: NewAsks;
}

/** The connection by which a client asks. */
interface Link {
  readonly nc: NatsConnection;
  readonly inbox: string;
  readonly subscription: Subscription;
}

export class PartitionClient {
  readonly #options: PartitionClientOptions;
  readonly #refusals: RateLimitedLog;
  #link: Link | undefined;
  #backlogs = new Backlogs(0, (lane) => this.#plan(lane));
  readonly #flights = new Map<string, Flight>();
  readonly #dirty = new Set<Lane>();
  /** By partition, the version of the protocol that its owner spoke last. */
  readonly #protocols: number[] = [];
  #sweeper: NodeJS.Timeout | undefined;
  #flightNumber = 0;
  #flushPlanned = false;
  #disconnectedAtMs: number | undefined;
  #answeredAtMs = -Infinity;

  constructor(options: PartitionClientOptions) {
    this.#options = options;
    this.#refusals = rateLimitedLog(options.log, limits.refusalLogMs, options.clock);
  }

  /** Asks by this connection from now on; called once. Until then every ask is `unavailable`. */
  open(nc: NatsConnection, partitions: number): void {
    const inbox = inboxOf(nc);
    const subscription = nc.subscribe(`${inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#onMessage(message.subject.slice(inbox.length + 1), message);
      },
    });
    this.#link = { nc, inbox, subscription };
    this.#backlogs = new Backlogs(partitions, (lane) => this.#plan(lane));
    this.#sweeper = setInterval(() => this.#sweep(), rpcSweepMs).unref();
    void this.#watchConnection(nc);
  }

  /** 0 until the client is open. */
  get partitions(): number {
    return this.#backlogs.of('read').length;
  }

  /** True if NATS is there now. */
  connected(): boolean {
    return this.#link !== undefined && this.#disconnectedAtMs === undefined;
  }

  /** Time since the last answer of any owner of a partition. */
  unansweredMs(): number {
    return this.#options.clock.monotonicMs() - this.#answeredAtMs;
  }

  partitionFor(key: string): number {
    return partitionOf(key, this.partitions);
  }

  queued(kind: LaneKind): number {
    return this.#backlogs.of(kind).reduce((sum, { queue }) => sum + queue.length, 0);
  }

  /**
   * Never rejects. `deadlineMs` is of the monotonic clock. Many asks share a message; each names
   * the span of its own.
   */
  readonly ask = (kind: LaneKind, question: Question, deadlineMs: number): Promise<Outcome> => {
    const { clock, requestDeadlineMs, tracer, onOutcome } = this.#options;
    const untilMs = Math.min(deadlineMs, clock.monotonicMs() + requestDeadlineMs);
    const about = { name: `ask ${question.type}`, kind: 'client', attributes: {} } as const;
    const span = question.trace === undefined ? undefined : tracer?.below(question.trace, about);
    const asked = span === undefined ? question : { ...question, trace: span.trace };
    return new Promise((resolve) =>
      this.#enqueue(kind, asked, untilMs, (outcome) => {
        const { code } = outcome;
        span?.end({ attributes: { 'longshore.outcome': code }, isError: outcomeStatus[code] >= 500 });
        onOutcome?.(question, outcome);
        resolve(outcome);
      }),
    );
  };

  stop(): void {
    clearInterval(this.#sweeper);
    this.#link?.subscription.unsubscribe();
  }

  #enqueue(kind: LaneKind, question: Question, deadlineMs: number, resolve: (outcome: Outcome) => void): void {
    const address = addressOf(question);
    const partition = typeof address === 'number' ? address : this.partitionFor(address);
    if ((this.#protocols[partition] ?? Infinity) < protocolOfAsk(question, this.#options.newAsks)) {
      resolve(unknownToOwner);
      return;
    }
    const backlog = this.#backlogs.of(kind)[partition];
    if (backlog === undefined || backlog.queue.length >= laneQueuedItems || this.#isAway()) {
      resolve(unavailable);
      return;
    }
    backlog.queue.push(newItem(question, deadlineMs, resolve));
    this.#wake(backlog);
  }

  #isAway(): boolean {
    return (
      this.#disconnectedAtMs !== undefined && this.#options.clock.monotonicMs() - this.#disconnectedAtMs > natsAwayMs
    );
  }

  #wake(backlog: Backlog): void {
    if (backlog.queue.length === 0) return;
    enlist(backlog);
    this.#plan(backlog.lane);
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
    // A broken connection would keep messages until it is whole again, long after their asks have
    // expired.
    if (this.#link === undefined || !this.connected()) return;
    while (lane.inFlight < lane.maxInFlight) {
      const batch = gather(lane, nowMs);
      if (batch === undefined) return;
      this.#send(this.#link, lane, batch, nowMs);
    }
  }

  #send({ nc, inbox }: Link, lane: Lane, batch: Batch, nowMs: number): void {
    const { items, payload } = batch;
    const id = (this.#flightNumber++).toString(36);
    this.#options.meters?.batch(lane.kind, items.length);
    this.#options.answers?.asked();
    try {
      nc.publish(lane.subject, payload, { reply: `${inbox}.${id}` });
    } catch (error) {
      // The connection is closed for good, or the batch is over the server's bound: nothing of it
      // left the process this time.
      this.#options.log.error('publish_failed', { subject: lane.subject, bytes: payload.length, error });
      for (const item of items) settle(item, unanswered(item));
      return;
    }
    const keptMs = this.#options.requestDeadlineMs + limits.attemptMaxMs;
    this.#flights.set(id, takeOff(id, lane, batch, nowMs, keptMs));
  }

  #onMessage(id: string, message: Msg): void {
    const flight = this.#flights.get(id);
    if (flight === undefined) return;
    if (message.data.length === 0 && message.headers?.code === 503) {
      this.#onNoResponders(flight);
      return;
    }
    this.#options.answers?.heard();
    let part: AnswerPart;
    let malformed = 0;
    try {
      part = decodeAnswerPart(message.string(), () => malformed++);
    } catch (error) {
      this.#refusals.error('protocol_refused', { subject: flight.lane.subject, error });
      return;
    }
    // Those without an answer are asked again.
    if (malformed > 0) this.#refusals.error('answer_malformed', { subject: flight.lane.subject, malformed });
    if (part.answers.length > 0) this.#onAnswers(flight, part);
  }

  #onNoResponders(flight: Flight): void {
    const { id, lane, shares } = flight;
    this.#flights.delete(id);
    this.#backlogs.leave(lane);
    for (const share of shares) this.#onRefused(flight, share, 'no_responders');
  }

  #onAnswers(flight: Flight, { answers, owner, protocol }: AnswerPart): void {
    for (const { index, code, body } of answers) {
      const item = flight.items[index];
      const share = flight.shareOf[index];
      if (item === undefined || share === undefined) continue;
      const isRefusal = code === notOwner;
      const counts = mayDecide(item, flight.id, isSuccessCode(code));
      if (isRefusal && counts) share.heard = 'refusal';
      else if (!isRefusal && share.heard === 'nothing') share.heard = 'answer';
      const isUnknown = code === 'internal' && protocol < protocolOfAsk(item.question, this.#options.newAsks);
      if (!isRefusal && counts)
        settle(item, isUnknown ? unknownToOwner : outcomeBy(item, { code, ...splitHead(body) }));
    }
    for (const share of flight.shares) {
      const { heard } = share;
      share.heard = 'nothing';
      if (heard === 'refusal') this.#onNotOwner(flight, share, owner);
      else if (heard === 'answer') {
        this.#protocols[share.backlog.partition] = protocol;
        this.#onAnswered(flight, share, owner);
      }
    }
    // It has arrived, and its owner works on it.
    this.#leavePlace(flight);
    if (flight.shares.every(isLapsed) && flight.items.every(isSettled)) this.#end(flight);
  }

  #onAnswered(flight: Flight, share: Share, owner: string | undefined): void {
    const nowMs = this.#options.clock.monotonicMs();
    const { backlog, items, attemptMs, state } = share;
    this.#answeredAtMs = nowMs;
    backlog.refusals = 0;
    backlog.pausedUntilMs = 0;
    this.#wake(backlog);
    if (owner !== undefined && !flight.isStalled) this.#backlogs.learn(backlog, owner);
    if (state.phase === 'lapsed') return;
    if (items.every(isSettled)) this.#lapse(flight, share);
    // A part of the answer: the owner is alive, and the rest has an attempt's time of its own.
    else share.state = { phase: 'waiting', dueAtMs: nowMs + attemptMs };
  }

  #onNotOwner(flight: Flight, share: Share, owner = flight.lane.owner): void {
    if (share.state.phase === 'lapsed') return;
    if (owner !== undefined) this.#backlogs.unlearn(share.backlog.partition, owner);
    this.#onRefused(flight, share, 'not_owner');
  }

  /** The partition pauses; then it asks again what has no answer. */
  #onRefused(flight: Flight, share: Share, reason: RetryReason): void {
    if (share.state.phase === 'lapsed') return;
    const { backlog } = share;
    const nowMs = this.#options.clock.monotonicMs();
    const bounds = { minMs: laneRetryMinMs, maxMs: laneRetryMaxMs };
    const pauseMs = jitter(backoffMs(backlog.refusals++, bounds));
    backlog.pausedUntilMs = nowMs + pauseMs;
    setTimeout(() => this.#wake(backlog), pauseMs + 1).unref();
    this.#sendAgain(flight, share, reason);
  }

  /** The partition has a lane of its own until it is answered again. */
  #onSilence(flight: Flight, share: Share): void {
    if (share.state.phase === 'lapsed') return;
    this.#backlogs.leave(flight.lane, share.backlog);
    this.#sendAgain(flight, share, 'lost');
  }

  /**
   * All that has no answer, whatever was refused: the responder that refuses one ask may be
   * committing another.
   */
  #sendAgain(flight: Flight, share: Share, reason: RetryReason): void {
    const again = share.items.filter((item) => sendAgain(item, reason));
    this.#options.meters?.retry(reason, again.length);
    share.backlog.queue.putBack(again);
    this.#lapse(flight, share);
  }

  /** waiting → lapsed: the partition may have a share in another message. */
  #lapse(flight: Flight, share: Share): void {
    if (share.state.phase === 'lapsed') return;
    share.state = lapsed;
    share.backlog.inFlight--;
    this.#wake(share.backlog);
    if (flight.shares.every(isLapsed)) this.#leavePlace(flight);
  }

  #leavePlace(flight: Flight): void {
    if (!flight.hasPlace) return;
    flight.hasPlace = false;
    flight.lane.inFlight--;
    this.#plan(flight.lane);
  }

  /** Settles items at their deadline, notices silence, wakes lanes, and forgets what is over. */
  #sweep(): void {
    const nowMs = this.#options.clock.monotonicMs();
    const expire = (item: Item): void => {
      if (item.deadlineMs <= nowMs) settle(item, unanswered(item));
    };
    for (const backlog of this.#backlogs.all()) {
      if (backlog.queue.length === 0) continue;
      for (const item of backlog.queue) expire(item);
      backlog.queue.takeOut(isSettled);
      // A pause's own timer may fire a little before the pause ends, and then wakes nothing.
      this.#wake(backlog);
    }
    for (const flight of [...this.#flights.values()]) {
      for (const item of flight.items) expire(item);
      this.#look(flight, nowMs);
    }
  }

  #look(flight: Flight, nowMs: number): void {
    if (flight.items.every(isSettled)) {
      this.#end(flight);
      return;
    }
    if (flight.stallsAtMs <= nowMs && !flight.isStalled) this.#onStall(flight);
    for (const share of flight.shares) {
      if (share.state.phase === 'waiting' && share.state.dueAtMs <= nowMs) this.#onSilence(flight, share);
    }
    if (flight.forgetAtMs <= nowMs && flight.shares.every(isLapsed)) this.#end(flight);
  }

  /**
   * Its partitions that have no answer get lanes of their own. Without any answer, it may be the
   * owner that is frozen or cut off: then all do, and find the next owner at once.
   */
  #onStall(flight: Flight): void {
    const { lane, shares, hasPlace } = flight;
    flight.isStalled = true;
    if (hasPlace) this.#backlogs.leave(lane);
    else for (const share of shares) if (!isLapsed(share)) this.#backlogs.leave(lane, share.backlog);
    this.#leavePlace(flight);
  }

  /** No answer is awaited any more. */
  #end(flight: Flight): void {
    this.#flights.delete(flight.id);
    for (const share of flight.shares) this.#lapse(flight, share);
  }

  async #watchConnection(nc: NatsConnection): Promise<void> {
    for await (const status of nc.status()) {
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

  /** Messages in flight when the connection broke get no answer. */
  #afterReconnect(): void {
    for (const flight of [...this.#flights.values()]) {
      for (const share of flight.shares) this.#onSilence(flight, share);
    }
    for (const backlog of this.#backlogs.all()) {
      backlog.refusals = 0;
      backlog.pausedUntilMs = 0;
      this.#wake(backlog);
    }
  }
}
