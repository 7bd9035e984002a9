/**
 * Serves batches of asks from gateways: takes them from a partition's subject or from the one of
 * this process, runs them as turns, and answers in as few messages as possible.
 */
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Tracer } from '../../lib/trace/tracer.ts';
import type { Slices } from '../../lib/time/slices.ts';
import type { RateLimitedLog } from '../../lib/rate-limited-log.ts';
import { DecodeError } from '../../lib/decode.ts';
import { Room, line as lineOf, type Piece } from '../../lib/fill.ts';
import { decodeAsks } from '../../lib/rpc/decode.ts';
import { errorBody } from '../../schemas/errors.ts';
import { limits } from '../../schemas/limits.ts';
import type { Ask, WriteAsk } from '../../schemas/wire/asks.ts';
import { countAsks, encodeAnswer, encodeAnswers, notOwner, type Answer } from '../../schemas/wire/codec.ts';
import { isInbox, subjects } from '../../schemas/wire/subjects.ts';
import { ProtocolError } from '../../schemas/wire/version.ts';
import { isWrite } from '../domain/decide.ts';
import type { Prepared } from '../domain/turn.ts';
import type { Partition } from '../partition.ts';
import type { StatusWatchers } from './status-watchers.ts';
import type { Respond } from '../runtime/partition.ts';

export interface AskOptions {
  readonly nc: NatsConnection;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly log: Log;
  /** `undefined` if nothing is traced. */
  readonly tracer?: Tracer | undefined;
  /** Logs what senders can cause at will, but not every time. */
  readonly refusals: RateLimitedLog;
  readonly slices: Slices;
  readonly watched: Pick<StatusWatchers, 'asked' | 'followed'>;
  /** Makes the values that this ask needs before its turn: keys are signed outside of turns. */
  readonly prepare: (partition: Partition, ask: WriteAsk) => Promise<Prepared | undefined> | undefined;
  /**
   * The token of the subject of this process, once the server knows that it listens there. Absent
   * if it has none.
   */
  readonly token?: () => string | undefined;
}

export interface AskSource {
  readonly subject: string;
  /** The partition that an ask is for; `undefined` if this process does not serve it. */
  readonly partitionFor: (ask: Ask) => Partition | undefined;
}

const internal = errorBody({ error: 'internal' });

/** `untilMs`: the sender waits until then (monotonic). */
type Run = (ask: Ask, untilMs: number, respond: Respond) => void;

/** The subject of one partition. Gateways take the process that subscribes for its owner. */
export const sourceOf = (partition: Partition): AskSource => ({
  subject: subjects.partition(partition.number),
  partitionFor: () => partition,
});

export function serveAsks({ subject, partitionFor }: AskSource, options: AskOptions): Subscription {
  const { nc, clock, log, tracer, refusals, slices, watched, prepare, token } = options;

  const run: Run = (ask, untilMs, respond) => {
    const partition = partitionFor(ask);
    if (partition === undefined) {
      respond(notOwner, '');
      return;
    }
    if (!isWrite(ask)) {
      // Before the turn: a change after it is announced.
      if (ask.type === 'container.status') watched.asked(ask.id);
      if (ask.type === 'container.watch') watched.followed(ask.tenant);
      partition.read(ask, respond, untilMs);
      return;
    }
    const prepared = prepare(partition, ask);
    if (prepared === undefined) {
      partition.write(ask, undefined, respond, untilMs);
      return;
    }
    prepared.then(
      (value) => partition.write(ask, value, respond, untilMs),
      (error: unknown) => {
        log.error('prepare_failed', { requestId: ask.rid, error });
        respond('internal', internal);
      },
    );
  };

  /** Runs the turn with a span below that of its answer. */
  const runTraced: Run = (ask, untilMs, respond) => {
    const attributes = { 'longshore.request_id': ask.rid };
    const span = tracer?.below(ask.trace, { name: `answer ${ask.type}`, kind: 'server', attributes });
    if (span === undefined) {
      run(ask, untilMs, respond);
      return;
    }
    run({ ...ask, trace: span.trace }, untilMs, (code, body) => {
      span.end({ attributes: { 'longshore.outcome': code } });
      respond(code, body);
    });
  };

  return nc.subscribe(subject, {
    callback: (error, message) => {
      if (error !== null) {
        log.error('subscription_failed', { subject, error });
        return;
      }
      if (!isInbox(message.reply)) {
        refusals.error('reply_refused', { subject, reply: message.reply });
        return;
      }
      const maxBytes = nc.info?.max_payload ?? limits.answerPartBytes;
      const payload = message.string();
      const answers = collectAnswers(message, maxBytes, log, token?.());
      let asks: ReturnType<typeof decodeAsks>;
      try {
        asks = decodeAsks(payload);
      } catch (cause) {
        if (!(cause instanceof ProtocolError)) throw cause;
        refusals.error('protocol_refused', { subject, error: cause });
        for (let index = 0; index < countAsks(payload); index++) answers.add({ index, code: 'unavailable', body: '' });
        return;
      }
      const malformed = asks.find((ask) => ask instanceof DecodeError);
      if (malformed !== undefined) refusals.error('malformed_batch', { subject, asks: asks.length, error: malformed });
      const onFault = (cause: unknown): void => log.error('asks_failed', { subject, error: cause });
      // Deadlines count from now, because an ask may wait for its turn longer than its sender does.
      const nowMs = clock.monotonicMs();
      const due = asks.map((ask) => (ask instanceof DecodeError ? undefined : { ask, untilMs: nowMs + ask.budgetMs }));
      if (slices.begin('asks', running(due, answers, runTraced), onFault)) return;
      for (const index of asks.keys()) answers.add({ index, code: notOwner, body: '' });
    },
  });
}

/** Each ask is a step, because a batch may hold hundreds of lists. A malformed ask fails alone. */
function* running(
  asks: readonly ({ readonly ask: Ask; readonly untilMs: number } | undefined)[],
  answers: ReturnType<typeof collectAnswers>,
  run: Run,
): Generator<void, void, void> {
  for (const [index, due] of asks.entries()) {
    if (due === undefined) answers.add({ index, code: 'internal', body: internal });
    else run(due.ask, due.untilMs, (code, body) => answers.add({ index, code, body }));
    yield;
  }
}

/**
 * Collects the answers of one tick and sends them together, in parts that fit a message. Never
 * throws: it logs an answer that cannot be sent, and the sender asks again.
 * @param owner as for `encodeAnswers`
 */
export function collectAnswers(
  message: Pick<Msg, 'respond'>,
  maxPayloadBytes: number,
  log: Pick<Log, 'error'>,
  owner?: string,
): { add(answer: Answer): void } {
  // The last line has no line break behind it.
  const lineBytesMax = maxPayloadBytes - encodeAnswers([], owner).length + 1;
  const bounds = { bytes: limits.answerPartBytes };
  let lines: string[] = [];
  let room = new Room(bounds);
  let scheduled = false;
  const flush = (): void => {
    scheduled = false;
    if (lines.length === 0) return;
    const payload = encodeAnswers(lines, owner);
    lines = [];
    room = new Room(bounds);
    try {
      message.respond(payload);
    } catch (error) {
      log.error('answer_send_failed', { bytes: payload.length, error });
    }
  };
  const encode = (answer: Answer): Piece<string> => {
    const line = lineOf(encodeAnswer(answer));
    if (line.bytes <= lineBytesMax) return line;
    log.error('answer_too_large', { bytes: line.bytes, maxPayloadBytes });
    return lineOf(encodeAnswer({ ...answer, code: 'internal', body: internal }));
  };
  return {
    add(answer) {
      const { value, bytes } = encode(answer);
      if (!room.take(bytes)) {
        flush();
        room.take(bytes);
      }
      lines.push(value);
      if (scheduled) return;
      scheduled = true;
      queueMicrotask(flush);
    },
  };
}
