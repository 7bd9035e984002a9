/**
 * A container's captured lines. The stream LOGS has them under the hosts on which the container
 * ran. Only hosts of its placement history are read, so that no other host can forge its lines
 * (invariant A7).
 */
import type { NatsConnection } from '@nats-io/transport-node';
import type { Clock } from '../../lib/time/clock.ts';
import { decoder, DecodeError } from '../../lib/decode.ts';
import type { ReadMessage } from '../../lib/nats/direct-reads.ts';
import type { ContainerId, HostKey, TenantId } from '../../schemas/ids.ts';
import { LogBlock, type LogEntry } from '../../schemas/api/log.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import { SubjectReader } from './subject-reader.ts';

const decodeBlock = decoder(LogBlock);

/** How far a follower has read the lines of one host. */
export interface HostPosition {
  /** Position in the stream to read from next. */
  readonly next: number;
  /** The number of the newest line given; a block that is sent again has the same numbers. */
  readonly lastSeq: number;
}

export type LogPosition = ReadonlyMap<HostKey, HostPosition>;

export interface LogPage {
  readonly entries: readonly LogEntry[];
  readonly position: LogPosition;
  readonly more: boolean;
}

/** The entries of one host's blocks after the last one given, in the order of the stream. */
export function entriesAbove(
  messages: readonly ReadMessage[],
  lastSeq: number,
  onMalformed: () => void,
): { entries: LogEntry[]; lastSeq: number } {
  const entries: LogEntry[] = [];
  let last = lastSeq;
  for (const message of messages) {
    for (const entry of linesOf(message, onMalformed)) {
      if (entry.seq <= last) continue;
      entries.push(entry);
      last = entry.seq;
    }
  }
  return { entries, lastSeq: last };
}

function linesOf(message: ReadMessage, onMalformed: () => void): readonly LogEntry[] {
  try {
    return decodeBlock(message.data).lines;
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    onMalformed();
    return [];
  }
}

const bySeq = (one: LogEntry, other: LogEntry): number => one.seq - other.seq;

/** The newest `limit` entries, oldest first, each number once. */
export function newestOf(entries: readonly LogEntry[], limit: number): LogEntry[] {
  const sorted = entries.toSorted(bySeq);
  return sorted.filter((entry, at) => entry.seq !== sorted[at - 1]?.seq).slice(-limit);
}

export class LogReader {
  readonly #reader: SubjectReader;
  readonly #onMalformed: () => void;

  constructor(nc: Promise<NatsConnection>, clock: Clock, onMalformed: () => void) {
    this.#reader = new SubjectReader(nc, 'logs', clock);
    this.#onMalformed = onMalformed;
  }

  /** The newest lines, and where a follower continues. */
  async newest(tenant: TenantId, id: ContainerId, history: readonly HostKey[], limit: number): Promise<LogPage> {
    const ofHosts = await Promise.all(history.map((host) => this.#newestOfHost(host, tenant, id, limit)));
    return {
      entries: newestOf(
        ofHosts.flatMap(({ entries }) => entries),
        limit,
      ),
      position: new Map(history.map((host, at) => [host, ofHosts[at]?.position ?? { next: 1, lastSeq: -1 }])),
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
        const [oldest] = linesOf(message, this.#onMalformed);
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
      const { entries, lastSeq } = entriesAbove(page.messages, from.lastSeq, this.#onMalformed);
      const next = (page.messages.at(-1)?.sequence ?? from.next - 1) + 1;
      return { host, entries, more: page.pending > 0, at: { next, lastSeq } };
    });
    const pages = await Promise.all(reads);
    return {
      entries: pages.flatMap(({ entries }) => entries).toSorted(bySeq),
      position: new Map(pages.map(({ host, at }) => [host, at])),
      more: pages.some(({ more }) => more),
    };
  }

  async #newestOfHost(host: HostKey, tenant: TenantId, id: ContainerId, limit: number) {
    const read = async (pages: AsyncIterable<readonly ReadMessage[]>) => {
      let entries: LogEntry[] = [];
      let next = 1;
      for await (const messages of pages) {
        // Only what could still be among the newest is kept: memory is bounded by the limit, not by
        // the subject.
        const found = messages.flatMap((message) => linesOf(message, this.#onMalformed));
        entries = newestOf([...entries, ...found], limit);
        next = (messages.at(-1)?.sequence ?? next - 1) + 1;
      }
      return { entries, position: { next, lastSeq: entries.at(-1)?.seq ?? -1 } };
    };
    return this.#reader.newest(subjects.hostLog(host, tenant, id), read, ({ entries }) => entries.length / limit);
  }
}
