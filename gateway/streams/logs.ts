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
import type { LogEntry } from '../../schemas/api/log.ts';
import { limits } from '../../schemas/limits.ts';
import { minutes } from '../../schemas/limits/units.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import { bySeq, entriesOf, lastLinesOf, linesOf, newestOf, type LogLine } from './log-lines.ts';
import { acrossHosts, isWished, perMs, timesOf, type LogPastPage, type LogWish } from './log-pages.ts';
import { PastReader } from './past.ts';
import type { Resumed } from './sse.ts';
import { SubjectReader } from './subject-reader.ts';
import { TailReader } from './tails.ts';

/** A follower's position in the lines of one host. */
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

export interface NewestLines extends LogPage {
  /** The number of the oldest, if there are older ones. */
  readonly older: number | undefined;
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
function readable<T>(lines: () => readonly T[], onMalformed: () => void): readonly T[] {
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

/** Blocks of one host that a page looks at, each of up to 64 KiB. */
export const pageBlocks = 256;
/** The clock of a host may be so far ahead of that of the NATS servers. */
const hostAheadMs = 1 * minutes;

export class LogReader {
  readonly #reader: SubjectReader;
  readonly #clock: Clock;
  readonly #onMalformed: () => void;
  readonly #tails: TailReader<LogLine>;
  readonly #past: PastReader<LogEntry>;

  constructor(nc: Promise<NatsConnection>, clock: Clock, onMalformed: () => void) {
    this.#reader = new SubjectReader(nc, 'logs', clock);
    this.#clock = clock;
    this.#tails = new TailReader(this.#reader, clock, {
      newestIn: (messages, limit) => newestIn(messages, limit, onMalformed),
      newestOf,
      bytesOf: ({ json }) => json.length + limits.tailItemBytes,
      most: limits.logsMax,
    });
    this.#past = new PastReader(this.#reader, {
      itemsOf: ({ data }) => readable(() => entriesOf(data), onMalformed),
      aheadMs: hostAheadMs,
      late: { timeOf: ({ seq }) => seq / 1000 },
      pageMessages: pageBlocks,
    });
    this.#onMalformed = onMalformed;
  }

  /** A page of the past. */
  async past(tenant: TenantId, id: ContainerId, history: readonly HostKey[], wish: LogWish): Promise<LogPastPage> {
    const isOfPage = isWished(wish);
    const range = { order: wish.order, ...timesOf(wish), at: undefined, wanted: wish.limit + 1 };
    const { blocks: messages } = wish;
    const ofHosts = history.map((host) =>
      this.#past.find({
        ...range,
        ...(messages === undefined ? {} : { messages }),
        subject: subjects.hostLog(host, tenant, id),
        matches: ({ item }) => isOfPage(item),
      }),
    );
    return acrossHosts(await Promise.all(ofHosts), wish);
  }

  /** The newest lines, and where a follower continues. */
  async newest(tenant: TenantId, id: ContainerId, history: readonly HostKey[], limit: number): Promise<NewestLines> {
    const ofHosts = history.map(async (host) => {
      const { items: lines, next, isWhole } = await this.#tails.newest(subjects.hostLog(host, tenant, id), limit);
      return { host, lines, isWhole, at: { next, lastSeq: lines.at(-1)?.seq ?? -1 } };
    });
    const tails = await Promise.all(ofHosts);
    const all = tails.flatMap(({ lines }) => lines);
    const lines = newestOf(all, limit);
    const hasOlder = lines.length < all.length || tails.some(({ isWhole }) => !isWhole);
    return {
      lines,
      position: new Map(tails.map(({ host, at }) => [host, at])),
      more: false,
      older: hasOlder ? lines[0]?.seq : undefined,
    };
  }

  /** The position of a follower that has last seen the line `seq`; `undefined` if it named none. */
  async resume(
    tenant: TenantId,
    id: ContainerId,
    history: readonly HostKey[],
    seq: number | undefined,
  ): Promise<Resumed<LogPosition>> {
    const firsts = history.map(async (host) => {
      const message = await this.#reader.firstFrom(subjects.hostLog(host, tenant, id), 1);
      const lines = message === undefined ? [] : readable(() => linesOf(message.data), this.#onMalformed);
      return lines.slice(0, 1).map((line) => line.seq);
    });
    const oldest = (await Promise.all(firsts)).flat().sort((one, other) => one - other)[0];
    // A number is a time of the host's clock.
    const isUnknown = seq === undefined || seq > (this.#clock.nowMs() + hostAheadMs) * perMs;
    if (isUnknown || oldest === undefined || seq < oldest) {
      const reason = isUnknown ? 'unknown' : 'expired';
      return { position: new Map(), reset: { reason, oldest: oldest === undefined ? null : String(oldest) } };
    }
    return { position: await this.#positionAfter(tenant, id, history, seq) };
  }

  async #positionAfter(
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
}
