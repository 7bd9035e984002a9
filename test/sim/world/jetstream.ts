/**
 * JetStream's far end in memory, in its own protocol, with only the parts that are used here: a KV
 * bucket as the stream `KV_<bucket>` (NATS ADR-8), publishing with an expected sequence, atomic
 * batches (ADR-50), reading the last message of a subject, batched direct reads (ADR-31). It checks
 * a fence when a message arrives, and only if the message asks for it. It takes no longer batch and
 * no larger message than a server, and a stream may be away alone.
 */
import { headers, type MsgHdrs } from '@nats-io/transport-node';
import { limits } from '../../../schemas/limits.ts';
import { bucketStream, streams } from '../../../schemas/records/buckets.ts';

export interface Published {
  readonly subject: string;
  readonly payload: string;
  readonly head: MsgHdrs | undefined;
}

interface Stored {
  readonly sequence: number;
  readonly subject: string;
  readonly payload: string;
  readonly operation: string;
  readonly atMs: number;
}

interface Stream {
  readonly log: Stored[];
  readonly last: Map<string, Stored>;
}

export interface Reply {
  readonly payload: string;
  readonly head?: MsgHdrs;
}

const wrongLastSequence = 10071;
const checkInFlight = 10164;
const batchIncomplete = 10176;
const batchTooLarge = 10199;
const messageTooLarge = 10054;
const unavailable = 10008;

const expected = 'Nats-Expected-Last-Subject-Sequence';

/** Bytes of a message for a fence and a batch. */
export const headBytes = 512;

/** A stream without a leader is silent; one without resources refuses. */
export type Absence = 'silent' | 'refusing';

export class JetStream {
  readonly #streams = new Map<string, Stream>();
  readonly #batches = new Map<string, Published[]>();
  readonly #away = new Map<string, { readonly untilMs: number; readonly how: Absence }>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** True if the subject is one of JetStream's. */
  static takes(subject: string): boolean {
    return ['$KV.', '$JS.API.', 'event.', 'audit.'].some((start) => subject.startsWith(start));
  }

  /** The stream neither takes nor shows anything until then. */
  leave(stream: string, untilMs: number, how: Absence): void {
    this.#away.set(stream, { untilMs, how });
  }

  /** All streams are there again. */
  calm(): void {
    this.#away.clear();
  }

  #absenceOf(stream: string): Absence | undefined {
    const away = this.#away.get(stream);
    return away !== undefined && this.#nowMs() < away.untilMs ? away.how : undefined;
  }

  /** Every message of a stream, oldest first. */
  stored(stream: string): readonly { readonly subject: string; readonly payload: string }[] {
    return this.#streams.get(stream)?.log ?? [];
  }

  lengths(): ReadonlyMap<string, number> {
    return new Map(Array.from(this.#streams, ([name, { log }]) => [name, log.length]));
  }

  /** These streams are as they were when they had these lengths. */
  goBack(lengths: ReadonlyMap<string, number>, isChosen: (stream: string) => boolean): void {
    this.restore(new Map([...this.lengths(), ...[...lengths].filter(([name]) => isChosen(name))]));
  }

  /**
   * Keeps the given number of the oldest messages of each named stream, and removes all other
   * streams.
   */
  restore(lengths: ReadonlyMap<string, number>): void {
    for (const [name, { log }] of [...this.#streams]) {
      this.#streams.delete(name);
      for (const stored of log.slice(0, lengths.get(name) ?? 0)) this.#store(this.#named(name), stored);
    }
    this.#batches.clear();
  }

  /** Removes every message of a stream that `isKept` does not accept. */
  keep(name: string, isKept: (stored: { readonly payload: string }) => boolean): void {
    const { log } = this.#named(name);
    this.#streams.delete(name);
    for (const stored of log.filter(isKept)) this.#store(this.#named(name), stored);
  }

  #store({ log, last }: Stream, stored: Stored): void {
    log.push(stored);
    last.set(stored.subject, stored);
  }

  /**
   * The answer to a publish: one message or none.
   * @param isBusy another write with the same check is in flight
   */
  publish(message: Published, isBusy: boolean): Reply | undefined {
    const { head } = message;
    const absence = this.#absenceOf(streamOf(message.subject));
    if (absence === 'silent') return undefined;
    if (absence === 'refusing') return refusal(unavailable, 'JetStream system temporarily unavailable');
    if (Buffer.byteLength(message.payload) + headBytes > limits.natsPayloadBytes)
      return refusal(messageTooLarge, 'message size exceeds maximum allowed');
    const batch = head?.get('Nats-Batch-Id') ?? '';
    if (batch === '') return this.#ack([message], isBusy);
    const number = Number(head?.get('Nats-Batch-Sequence'));
    const before = this.#batches.get(batch) ?? [];
    if (before.length !== number - 1) {
      this.#batches.delete(batch);
      return head?.get('Nats-Batch-Commit') === '1'
        ? refusal(batchIncomplete, 'batch publish is incomplete')
        : undefined;
    }
    if (number > limits.natsBatchMessages) {
      this.#batches.delete(batch);
      return refusal(batchTooLarge, `atomic publish batch is too large: ${limits.natsBatchMessages}`);
    }
    const whole = [...before, message];
    if (head?.get('Nats-Batch-Commit') !== '1') {
      this.#batches.set(batch, whole);
      return undefined;
    }
    this.#batches.delete(batch);
    return this.#ack(whole, isBusy);
  }

  #ack(messages: readonly Published[], isBusy: boolean): Reply {
    for (const { subject, head } of messages) {
      const wanted = head?.get(expected) ?? '';
      if (wanted === '') continue;
      const named = head?.get(`${expected}-Subject`) ?? '';
      if (isBusy) return refusal(checkInFlight, 'last sequence by subject mismatch');
      const last = this.#stream(subject).last.get(named === '' ? subject : named)?.sequence ?? 0;
      if (last !== Number(wanted)) return refusal(wrongLastSequence, `wrong last sequence: ${last}`);
    }
    let sequence = 0;
    for (const { subject, payload, head } of messages) {
      const stream = this.#stream(subject);
      sequence = stream.log.length + 1;
      const operation = head?.get('KV-Operation') ?? '';
      const stored: Stored = { sequence, subject, payload, operation, atMs: this.#nowMs() };
      this.#store(stream, stored);
    }
    return { payload: JSON.stringify({ stream: 'S', seq: sequence }) };
  }

  #stream(subject: string): Stream {
    return this.#named(streamOf(subject));
  }

  #named(name: string): Stream {
    let stream = this.#streams.get(name);
    if (stream === undefined) this.#streams.set(name, (stream = { log: [], last: new Map() }));
    return stream;
  }

  /**
   * `lagMs`: the replica that answers is this far behind. `pageMessages`: no page has more, as when
   * a server fails to read a message.
   */
  read(subject: string, payload: string, lagMs: number, pageMessages: number): readonly Reply[] {
    const [, , api, ...rest] = subject.split('.');
    const name = rest.at(-1) ?? '';
    if (this.#absenceOf(name) !== undefined) return [];
    const stream = this.#named(name);
    const ask = JSON.parse(payload) as DirectAsk & { last_by_subj: string };
    const last = this.#asOf(stream, lagMs);
    if (api === 'DIRECT') return batchOf(last, { ...ask, batch: Math.min(ask.batch, pageMessages) });
    const found = last.get(ask.last_by_subj);
    if (found === undefined)
      return [{ payload: JSON.stringify({ error: { code: 404, description: 'no message found' } }) }];
    const data = Buffer.from(found.payload).toString('base64');
    return [{ payload: JSON.stringify({ message: { seq: found.sequence, data } }) }];
  }

  #asOf({ log, last }: Stream, lagMs: number): ReadonlyMap<string, Stored> {
    if (lagMs === 0) return last;
    const untilMs = this.#nowMs() - lagMs;
    return new Map(log.filter(({ atMs }) => atMs <= untilMs).map((stored) => [stored.subject, stored]));
  }
}

/** The stream of a message. */
function streamOf(subject: string): string {
  if (subject.startsWith('$KV.')) return bucketStream(subject.split('.')[1] ?? '');
  return (subject.startsWith('audit.') ? streams.audit : streams.events).name;
}

const refusal = (code: number, description: string): Reply => ({
  payload: JSON.stringify({ error: { code: 400, err_code: code, description } }),
});

/** The oldest messages of a filter from a sequence on, or the last messages of some subjects. */
type DirectAsk = {
  readonly batch: number;
} & ({ readonly seq: number; readonly next_by_subj: string } | { readonly multi_last: readonly string[] });

function batchOf(last: ReadonlyMap<string, Stored>, ask: DirectAsk): readonly Reply[] {
  const { batch } = ask;
  const isAsked = ({ sequence, subject }: Stored): boolean =>
    'multi_last' in ask
      ? ask.multi_last.includes(subject)
      : sequence >= ask.seq && subject.startsWith(ask.next_by_subj.replace(/[*>]$/, ''));
  const found = [...last.values()].filter(isAsked).sort((a, b) => a.sequence - b.sequence);
  if (found.length === 0) return [{ payload: '', head: headers(404, 'Message Not Found') }];
  const sent = found.slice(0, batch);
  const replies = sent.map(({ subject, sequence, operation, payload }, index): Reply => {
    const head = headers();
    head.set('Nats-Subject', subject);
    head.set('Nats-Sequence', String(sequence));
    head.set('Nats-Num-Pending', String(found.length - index - 1));
    head.set('Nats-Last-Sequence', String(sent[index - 1]?.sequence ?? 0));
    if (operation !== '') head.set('KV-Operation', operation);
    return { payload, head };
  });
  const end = headers(204, 'EOB');
  end.set('Nats-Num-Pending', String(found.length - sent.length));
  end.set('Nats-Last-Sequence', String(sent.at(-1)?.sequence ?? 0));
  return [...replies, { payload: '', head: end }];
}
