/**
 * Reports observations to the control plane. Only the newest observation of a container waits;
 * containers of one partition go together, and the reporter repeats them in their newest form until
 * their owner has committed them. Reports are ordered by (generation, session, seq). An observation
 * gets its `seq` when it is first sent in a session and keeps it when it is sent again, so that the
 * owner recognises a repetition and commits nothing for it.
 *
 * A status that passes soon, such as `starting`, waits for `reportHoldMs`: most often the next
 * observation takes its place, so that a quick start is one report.
 */
import { EventEmitter } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { backoffMs, jitter, sleep, type BackoffBounds } from '../../lib/time/backoff.ts';
import { messageDecoder } from '../../lib/decode.ts';
import { fill } from '../../lib/fill.ts';
import type { Log } from '../../lib/log.ts';
import type { ContainerId, TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { ReportAnswer, type Report, type ReportItem } from '../../schemas/wire/host.ts';
import type { ContainerStatus, Observation } from '../../schemas/api/container.ts';
import { partitionOf, subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { protocolFields } from '../../schemas/wire/version.ts';
import type { Metrics } from '../metrics.ts';
import type { Request } from './connection.ts';
import { KiB } from '../../schemas/limits/units.ts';

/** The time that the report of a state that should soon pass waits for the next one. */
const reportHoldMs = 200;
/** Bytes of the items of one report, encoded as JSON. */
const reportBytes = 512 * KiB;

const decodeAnswer = messageDecoder(ReportAnswer);

export interface Description {
  /** `true` if the container is removed as asked, or was refused at admission. */
  readonly gone: boolean;
  /** The container has run to its end, and its policy does not start it again. */
  readonly ended?: true;
  readonly observation: Observation;
}

export interface Observed {
  readonly tenant: TenantId;
  readonly id: ContainerId;
  readonly generation: number;
  /** The placement that the container is prepared for. */
  readonly prepared?: number;
  readonly update?: NonNullable<ReportItem['update']>;
  readonly description: Description;
}

export interface Session {
  readonly session: number;
  readonly partitions: number;
}

interface ReporterEvents {
  /** A newer session of this host exists. */
  stale: [];
}

export interface Reporter {
  readonly events: EventEmitter<ReporterEvents>;
  set(observed: Observed): void;
  /** This container needs no more reports. */
  forget(id: ContainerId): void;
  /** A new session: reports everything in it. */
  restart(session: Session): void;
  /** A lost connection is back: reports everything again. */
  repeat(): void;
  /** The newest observation of each container. */
  all(): Iterable<Observed>;
  /** `undefined` before the first. */
  session(): Session | undefined;
}

export interface ReporterParts {
  readonly sender: Sender;
  readonly request: Request;
  readonly backoff: BackoffBounds;
  readonly metrics: Pick<Metrics, 'report'>;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** The control plane has answered. */
  readonly onContact: () => void;
}

interface Entry {
  readonly observed: Observed;
  /**
   * `true` if the owner refused a batch with this item as invalid: it goes alone, so that it blocks
   * no other.
   */
  readonly isSuspect: boolean;
  /** The timer of an observation that may pass soon; `undefined` if it goes at once. */
  readonly hold: NodeJS.Timeout | undefined;
  /** Its number in a session; `undefined` until it has been sent in one. */
  readonly sent: { readonly session: number; readonly seq: number } | undefined;
}

type Numbered = Entry & { readonly sent: NonNullable<Entry['sent']> };

export function createReporter(parts: ReporterParts): Reporter {
  const { sender, request, metrics, log, signal } = parts;
  const events = new EventEmitter<ReporterEvents>();
  const entries = new Map<ContainerId, Entry>();
  /** The containers without an acknowledgement, by partition. */
  let dirty: Set<ContainerId>[] = [];
  const sending = new Set<number>();
  let current: Session | undefined;
  let seq = 0;

  /** The entry with its number in this session. */
  const numbered = (entry: Entry, { session }: Session): Numbered => {
    const sent = entry.sent?.session === session ? entry.sent : { session, seq: ++seq };
    const next = { ...entry, sent };
    entries.set(entry.observed.id, next);
    return next;
  };

  /** The entries that may go together: a suspect goes alone. */
  function* due(partition: number): Generator<Entry, void, void> {
    let isFirst = true;
    for (const id of dirty[partition] ?? []) {
      const entry = entries.get(id);
      if (entry === undefined || entry.hold !== undefined) continue;
      if (isFirst || !entry.isSuspect) yield entry;
      if (isFirst && entry.isSuspect) return;
      isFirst = false;
    }
  }

  const batchOf = (partition: number, session: Session): Numbered[] => {
    const bounds = { bytes: reportBytes, items: limits.reportItems };
    const { values } = fill(due(partition), bounds, (value) => ({
      value,
      bytes: JSON.stringify(value.observed.description).length + itemOverheadBytes,
    }));
    return values.map((entry) => numbered(entry, session));
  };

  /** The entries of a batch without a newer observation; the others still have to be sent. */
  const unchanged = (batch: readonly Entry[]): Entry[] =>
    batch.filter((sent) => entries.get(sent.observed.id) === sent);
  const settle = (batch: readonly Entry[], partition: number): void => {
    for (const sent of unchanged(batch)) {
      dirty[partition]?.delete(sent.observed.id);
      entries.set(sent.observed.id, { ...sent, isSuspect: false });
    }
  };

  const send = async (batch: readonly Numbered[], partition: number, { session }: Session) => {
    const items = batch.map(
      ({ observed: { tenant, id, generation, prepared, update, description }, sent }): ReportItem => ({
        tenant,
        id,
        generation,
        seq: sent.seq,
        ...(prepared === undefined ? {} : { prepared }),
        ...(update === undefined ? {} : { update }),
        ...description,
      }),
    );
    const report: Report = { v: 1, ...protocolFields, partition, session, items };
    const answer = await request(subjects.hostReport(sender), JSON.stringify(report), limits.reportTimeoutMs);
    return decodeAnswer(answer);
  };

  /** @returns `true` to continue at once */
  const attempt = async (batch: readonly Numbered[], partition: number, session: Session): Promise<boolean> => {
    const answer = await send(batch, partition, session);
    parts.onContact();
    if (answer.ok) {
      metrics.report('acknowledged', batch.length);
      settle(batch, partition);
      return true;
    }
    switch (answer.error) {
      case 'invalid':
        return onInvalid(batch, partition);
      case 'stale_session':
        metrics.report('failed', batch.length);
        if (current === session) events.emit('stale');
        return false;
      case 'unavailable':
        return onUnavailable(batch, partition, answer.later);
    }
  };

  /**
   * Moves the entries that the owner cannot take now behind all others, so that they block none.
   */
  const onUnavailable = (batch: readonly Entry[], partition: number, places?: readonly number[]): boolean => {
    const isLater = new Set(places ?? batch.keys());
    const later = batch.filter((_, place) => isLater.has(place));
    const taken = batch.filter((_, place) => !isLater.has(place));
    metrics.report('failed', later.length);
    if (taken.length > 0) metrics.report('acknowledged', taken.length);
    settle(taken, partition);
    if (places !== undefined) {
      for (const { observed } of unchanged(later)) {
        dirty[partition]?.delete(observed.id);
        dirty[partition]?.add(observed.id);
      }
    }
    return taken.length > 0;
  };

  const onInvalid = (batch: readonly Entry[], partition: number): boolean => {
    const [only, ...others] = batch;
    metrics.report('refused', batch.length);
    if (others.length > 0) {
      for (const entry of unchanged(batch)) entries.set(entry.observed.id, { ...entry, isSuspect: true });
      return true;
    }
    log.error('report_refused', { container: only?.observed.id, description: only?.observed.description });
    settle(batch, partition);
    return true;
  };

  const run = async (partition: number): Promise<void> => {
    for (let failures = 0; !signal.aborted;) {
      const session = current;
      const batch = session === undefined ? [] : batchOf(partition, session);
      if (session === undefined || batch.length === 0) break;
      let isGoing = false;
      try {
        isGoing = await attempt(batch, partition, session);
      } catch (error) {
        metrics.report('failed', batch.length);
        log.debug('report_failed', { partition, error });
      }
      failures = isGoing ? 0 : failures + 1;
      if (!isGoing) await sleep(jitter(backoffMs(failures - 1, parts.backoff)), signal);
    }
    // In the same tick as the last check for waiting items, so that no later one is missed.
    sending.delete(partition);
  };

  const wake = (partition: number): void => {
    if (sending.has(partition)) return;
    sending.add(partition);
    // At the end of this tick, so that observations set together go together.
    setImmediate(() => void run(partition));
  };

  /** Marks it for the next report of its partition. */
  const soil = ({ id, tenant }: Observed): void => {
    if (current === undefined) return;
    const partition = partitionOf(tenant, current.partitions);
    dirty[partition]?.add(id);
    wake(partition);
  };

  const repeat = (): void => {
    const { partitions = 0 } = current ?? {};
    dirty = Array.from({ length: partitions }, () => new Set());
    for (const { observed, hold } of entries.values()) {
      if (hold !== undefined) release(observed);
      soil(observed);
    }
  };

  /** The observation that it was held for has not come. */
  const release = ({ id }: Observed): void => {
    const entry = entries.get(id);
    if (entry === undefined) return;
    clearTimeout(entry.hold);
    entries.set(id, { ...entry, hold: undefined });
  };

  /** The timer from the first passing state on, until a state that stays. */
  const holdOf = (observed: Observed, before: Entry | undefined): NodeJS.Timeout | undefined => {
    if (!isPassing(observed)) {
      clearTimeout(before?.hold);
      return undefined;
    }
    return before?.hold ?? setTimeout(onHeld, reportHoldMs, observed.id).unref();
  };
  const onHeld = (id: ContainerId): void => {
    const observed = entries.get(id)?.observed;
    if (observed === undefined || signal.aborted) return;
    release(observed);
    soil(observed);
  };

  return {
    events,
    set: (observed) => {
      const before = entries.get(observed.id);
      if (before !== undefined && isDeepStrictEqual(before.observed, observed)) return;
      const hold = holdOf(observed, before);
      entries.set(observed.id, { observed, hold, isSuspect: false, sent: undefined });
      if (hold === undefined) soil(observed);
    },
    forget: (id) => {
      const entry = entries.get(id);
      if (entry === undefined) return;
      clearTimeout(entry.hold);
      entries.delete(id);
      // No answer would take it out: an answer settles what is still known.
      if (current !== undefined) dirty[partitionOf(entry.observed.tenant, current.partitions)]?.delete(id);
    },
    restart: (session) => {
      if (current?.session !== session.session) seq = 0;
      current = session;
      repeat();
    },
    repeat,
    *all() {
      for (const { observed } of entries.values()) yield observed;
    },
    session: () => current,
  };
}

const passing: ReadonlySet<ContainerStatus> = new Set(['pending', 'pulling', 'starting', 'stopping', 'removing']);

/** `true` if the agent works on the container, or will. */
const isPassing = ({ description: { gone, observation } }: Observed): boolean =>
  !gone && passing.has(observation.status) && observation.reason === null;

/** Ids, numbers and names around an item's observation. */
const itemOverheadBytes = 250;
