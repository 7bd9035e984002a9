/**
 * A container's captured lines. The stream LOGS has them under the hosts on which the container
 * ran. Only hosts of its placement history are read, so that no other host can forge its lines
 * (invariant A7).
 */
import type { NatsConnection } from '@nats-io/transport-node';
import type { Clock } from '../../lib/time/clock.ts';
import { DecodeError } from '../../lib/decode.ts';
import type { ReadMessage } from '../../lib/nats/direct-reads.ts';
import type { ContainerId, HostKey, TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import { bySeq, lastLinesOf, linesOf, newestOf, type LogLine } from './log-lines.ts';
import { LogTails, longer, type LogTail } from './log-tails.ts';
import { SharedReads } from './shared-reads.ts';
import { SubjectReader } from './subject-reader.ts';

/** How far a follower has read the lines of one host. */
export interface HostPosition {
  /** Position in the stream to read from next. */
  readonly next: number;
  /** The number of the newest line given; a block that is sent again has the same numbers. */
  readonly lastSeq: number;
}

export type LogPosition = ReadonlyMap<HostKey, HostPosition>;

export interface LogPage {
  readonly lines: readonly LogLine[];
  readonly position: LogPosition;
  readonly more: boolean;
}

/** The lines of one host's blocks after the last one given, in the order of the stream. */
export function linesAbove(
  messages: readonly ReadMessage[],
  lastSeq: number,
  onMalformed: () => void,
): { lines: LogLine[]; lastSeq: number } {
  const lines: LogLine[] = [];
  let last = lastSeq;
  for (const message of messages) {
    for (const line of readable(() => linesOf(message.data), onMalformed)) {
      if (line.seq <= last) continue;
      lines.push(line);
      last = line.seq;
    }
  }
  return { lines, lastSeq: last };
}

/** No lines from a malformed block. */
function readable(lines: () => readonly LogLine[], onMalformed: () => void): readonly LogLine[] {
  try {
    return lines();
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    onMalformed();
    return [];
  }
}

/** The newest lines of these blocks; blocks before the last ones that suffice are not decoded. */
export function newestIn(messages: readonly ReadMessage[], limit: number, onMalformed: () => void): readonly LogLine[] {
  let lines: readonly LogLine[] = [];
  for (const { data } of messages.toReversed()) {
    if (lines.length >= limit) break;
    const found = readable(() => lastLinesOf(data, limit), onMalformed);
    lines = newestOf([...found, ...lines], limit);
  }
  return lines;
}

export class LogReader {
  readonly #reader: SubjectReader;
  readonly #onMalformed: () => void;
  readonly #tails: LogTails;
  readonly #shared = new SharedReads<LogTail>();
  readonly #clock: Clock;

  constructor(nc: Promise<NatsConnection>, clock: Clock, onMalformed: () => void) {
    this.#reader = new SubjectReader(nc, 'logs', clock);
    this.#tails = new LogTails(clock);
    this.#clock = clock;
    this.#onMalformed = onMalformed;
  }

  /** The newest lines, and where a follower continues. */
  async newest(tenant: TenantId, id: ContainerId, history: readonly HostKey[], limit: number): Promise<LogPage> {
    const tails = await Promise.all(history.map((host) => this.#tailOf(subjects.hostLog(host, tenant, id), limit)));
    return {
      lines: newestOf(
        tails.flatMap(({ lines }) => newestOf(lines, limit)),
        limit,
      ),
      position: new Map(
        tails.map(({ lines, next }, at) => [history[at] as HostKey, { next, lastSeq: lines.at(-1)?.seq ?? -1 }]),
      ),
      more: false,
    };
  }

  /** Where a follower continues that has last seen the line `seq`. */
  async positionAfter(
    tenant: TenantId,
    id: ContainerId,
    history: readonly HostKey[],
    seq: number,
  ): Promise<LogPosition> {
    const positions = history.map(async (host): Promise<[HostKey, HostPosition]> => {
      const next = await this.#reader.positionBefore(subjects.hostLog(host, tenant, id), (message) => {
        const [oldest] = readable(() => linesOf(message.data), this.#onMalformed);
        return oldest !== undefined && oldest.seq <= seq;
      });
      return [host, { next, lastSeq: seq }];
    });
    return new Map(await Promise.all(positions));
  }

  /** The lines after a position; hosts that are new in the history are read from the start. */
  async after(tenant: TenantId, id: ContainerId, history: readonly HostKey[], position: LogPosition): Promise<LogPage> {
    const reads = history.map(async (host) => {
      const from = position.get(host) ?? { next: 1, lastSeq: -1 };
      const page = await this.#reader.page(subjects.hostLog(host, tenant, id), from.next);
      const { lines, lastSeq } = linesAbove(page.messages, from.lastSeq, this.#onMalformed);
      const next = (page.messages.at(-1)?.sequence ?? from.next - 1) + 1;
      return { host, lines, more: page.pending > 0, at: { next, lastSeq } };
    });
    const pages = await Promise.all(reads);
    return {
      lines: pages.flatMap(({ lines }) => lines).toSorted(bySeq),
      position: new Map(pages.map(({ host, at }) => [host, at])),
      more: pages.some(({ more }) => more),
    };
  }

  /** Readers of one container share reads: each block may have 64 KiB. */
  #tailOf(subject: string, limit: number): Promise<LogTail> {
    return this.#shared.of(`${limit} ${subject}`, async () => {
      const known = this.#tails.of(subject, limit);
      return (known === undefined ? undefined : await this.#continued(subject, known)) ?? this.#read(subject, limit);
    });
  }

  /**
   * A tail with what came after it; undefined if that is more than a page, or the stream does not
   * have its end. Asks for the newest block, not for what follows the tail: where nothing does,
   * nats-server 2.15 searches for long (ADR 23).
   */
  async #continued(subject: string, known: LogTail): Promise<LogTail | undefined> {
    const end = (await this.#reader.last(subject))?.sequence ?? 0;
    if (end === known.next - 1) return known;
    if (end < known.next) return undefined;
    const { messages, pending } = await this.#reader.page(subject, known.next);
    const last = messages.at(-1);
    if (pending > 0 || last === undefined) return undefined;
    const tail = longer(known, newestIn(messages, limits.logsMax, this.#onMalformed), last.sequence + 1);
    this.#tails.replace(subject, known, tail);
    return tail;
  }

  async #read(subject: string, limit: number): Promise<LogTail> {
    const startMs = this.#clock.monotonicMs();
    const take = async (pages: AsyncIterable<readonly ReadMessage[]>): Promise<Omit<LogTail, 'isWhole'>> => {
      let lines: readonly LogLine[] = [];
      let next = 1;
      for await (const messages of pages) {
        // Only what could still be among the newest is kept: memory is bounded by the limit, not by
        // the subject.
        lines = newestOf([...lines, ...newestIn(messages, limit, this.#onMalformed)], limit);
        next = (messages.at(-1)?.sequence ?? next - 1) + 1;
      }
      return { lines, next };
    };
    const read = await this.#reader.newest(subject, take, ({ lines }) => lines.length / limit);
    const tail = { ...read, isWhole: read.lines.length < limit };
    this.#tails.keep(subject, tail, startMs);
    return tail;
  }
}
