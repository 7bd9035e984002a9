/**
 * A partition that serves: its memory, and what commits, checkpoints and publishes what its turns
 * change. All of it lives as long as one epoch.
 */
import { CautiousClock, noReading } from '../../lib/time/cautious-clock.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Slices } from '../../lib/time/slices.ts';
import { keys } from '../../schemas/records/buckets.ts';
import { limits } from '../../schemas/limits.ts';
import type { Domain, DomainTypes, Memory } from './domain.ts';
import { EventOutbox } from './events/event-outbox.ts';
import { eventKind, lineKind, Outboxes } from './events/outboxes.ts';
import { startCheckpointer, type Checkpointer } from './journal/checkpoint.ts';
import type { Commit } from './journal/codec.ts';
import { Commits } from './journal/commits.ts';
import type { Journal } from './journal/journal.ts';
import type { Group } from './journal/group.ts';
import type { RecordsDigest } from './journal/digest.ts';
import type { Loaded } from './journal/load.ts';
import { encodeMark, type Mark } from './journal/mark.ts';
import { Operations } from './operations.ts';
import type { Fence } from './store/fence.ts';
import type { EventSink, Store } from './store/store.ts';
import { WaitingAnswers } from './waiting-answers.ts';

/**
 * The parts of a partition that exist only while it serves, so that nothing uses them otherwise.
 */
export interface Serving<D extends DomainTypes> {
  /** The epoch of the load; the fence may have moved since. */
  readonly epoch: number;
  readonly fence: Fence;
  readonly journal: Journal;
  readonly state: Memory<D>;
  readonly operations: Operations;
  readonly commits: Commits<D['Effect']>;
  readonly checkpointer: Checkpointer;
  readonly answers: WaitingAnswers;
  readonly outbox: Outboxes;
  /** The digest of the records under their own keys. */
  readonly digest: RecordsDigest;
  /** Keys of records that the load could not read. */
  readonly quarantined: ReadonlySet<string>;
  /** The clock of deletions by time. */
  readonly expiry: CautiousClock;
  /** The monotonic time of the load. */
  readonly startedMs: number;
}

export interface ServingOptions<D extends DomainTypes> {
  readonly number: number;
  readonly domain: Domain<D>;
  readonly store: Store;
  readonly events: EventSink;
  readonly audit: EventSink;
  readonly clock: Clock;
  readonly slices: Slices;
  readonly log: Log;
  readonly onCommitted: (group: Group<D['Effect']>, seconds: number) => void;
  readonly observer: ServingObserver;
}

export interface ServingObserver {
  quarantined(partition: number, count: number): void;
  uncheckpointed(partition: number, commits: number): void;
  /** Called when writes are refused from now on, or accepted again. */
  room(partition: number, hasRoom: boolean): void;
  /** Events and lines of the audit that wait in the bucket for their streams. */
  parked(partition: number, events: number): void;
}

/** The result of a load, and the parts that continue from it. */
export interface Start<D extends DomainTypes> {
  readonly epoch: number;
  readonly loaded: Loaded<D['Record']>;
  /** An empty memory. */
  readonly state: Memory<D>;
  readonly signal: AbortSignal;
  readonly fence: Fence;
  readonly journal: Journal;
}

/** The cause for which the partition refuses writes, for the message of the refusal. */
export function causeOf({
  outbox,
  journal,
  commits,
}: Pick<Serving<DomainTypes>, 'outbox' | 'journal' | 'commits'>): string {
  if (journal.isHeld) return 'the store went back in time, and has lost what was acknowledged; try again later';
  if (outbox.full !== undefined) return `the stream ${outbox.full} takes no events, and no more can be parked`;
  if (journal.isStalled) return 'the journal does not acknowledge its next entry';
  return commits.isQueueFull ? 'too many writes wait for the journal' : 'the checkpoint is behind';
}

export async function startServing<D extends DomainTypes>(
  options: ServingOptions<D>,
  start: Start<D>,
): Promise<Serving<D>> {
  const { domain, clock } = options;
  const { epoch, fence, journal, loaded, state } = start;
  if (loaded.isOverridden) {
    const { mark, records } = loaded;
    options.log.error('records_unverified', { partition: options.number, mark, records: records.length });
  }
  const operations = new Operations();
  const quarantined = await fill(options, start, operations);
  // If the stored time is damaged, time continues from the newest time in a record.
  const newestMs = domain.newestMs(state);
  const newest = newestMs === undefined ? undefined : { ...noReading, atMs: newestMs };
  const expiry = new CautiousClock(clock, limits.clockAgreedMs, loaded.clock ?? newest);
  const outbox = await openOutboxes(options, start);
  const { checkpointer, commits } = await startWriting(options, start, { outbox, expiry });
  const onFault = (error: unknown): void => options.log.error('answer_failed', { partition: options.number, error });
  const answers = new WaitingAnswers({ commits, clock, slices: options.slices, onFault });
  const startedMs = clock.monotonicMs();
  const kept = { epoch, fence, journal, state, operations, outbox, digest: loaded.digest, quarantined };
  return { ...kept, commits, checkpointer, answers, expiry, startedMs };
}

async function fill<D extends DomainTypes>(
  options: ServingOptions<D>,
  { loaded, state, signal }: Start<D>,
  operations: Operations,
): Promise<ReadonlySet<string>> {
  const { domain, slices, log, number, observer } = options;
  const quarantined = new Set<string>();
  const quarantine = (key: string): void => {
    quarantined.add(key);
    domain.quarantine(state, key);
    log.error('record_quarantined', { partition: number, key });
  };
  await slices.run('load', filling(options, { loaded, state }, operations, quarantine), signal);
  observer.quarantined(number, quarantined.size);
  return quarantined;
}

/** A record is a step, and so is an operation. */
function* filling<D extends DomainTypes>(
  { domain, log, number }: ServingOptions<D>,
  { loaded, state }: Pick<Start<D>, 'loaded' | 'state'>,
  operations: Operations,
  quarantine: (key: string) => void,
): Generator<void, void, void> {
  for (const record of loaded.records) {
    try {
      domain.put(state, record);
    } catch (error) {
      // A bug of ours, or a record that is not what it seems: it harms itself, and not its
      // partition.
      const key = domain.records.keyOf(record);
      log.error('record_load_failed', { partition: number, key, error });
      domain.remove(state, key);
      quarantine(key);
    }
    yield;
  }
  for (const operation of loaded.operations) {
    operations.add({ ...operation, tenant: '' });
    yield;
  }
  for (const key of loaded.quarantined) {
    quarantine(key);
    yield;
  }
}

async function openOutboxes<D extends DomainTypes>(
  { events, audit, log, number, clock, slices }: ServingOptions<D>,
  { loaded, signal }: Start<D>,
): Promise<Outboxes> {
  const { last, mark, pending, checkpointed, parked, parkedLines } = loaded;
  const onFailure = (error: unknown): void => log.warn('events_publish_failed', { partition: number, error });
  const at = { clock, last, mark, onFailure };
  const ofEvents = EventOutbox.opening({ ...at, kind: eventKind, sink: events, pending, checkpointed, parked });
  const ofLines = EventOutbox.opening({
    ...at,
    kind: lineKind,
    sink: audit,
    pending: pending.map(linesOf),
    checkpointed: checkpointed.map(linesOf),
    parked: parkedLines,
  });
  const outbox = new Outboxes(await slices.run('load', ofEvents, signal), await slices.run('load', ofLines, signal));
  for (const key of loaded.damagedEvents) log.error('events_damaged', { partition: number, key });
  return outbox;
}

const linesOf = ({ number, lines = [] }: Commit) => ({ number, events: lines });

/** The mark names this member's journal before the first commit goes there. */
async function startWriting<D extends DomainTypes>(
  options: ServingOptions<D>,
  { fence, journal, loaded: { last, mark, journals, pending, digest } }: Start<D>,
  { outbox, expiry }: Pick<Serving<D>, 'outbox' | 'expiry'>,
): Promise<Pick<Serving<D>, 'checkpointer' | 'commits'>> {
  const { store, log, number, observer, clock, onCommitted } = options;
  const observeParked = parkedObserver(options);
  observeParked(outbox.parkedEvents);
  const former = journals.filter((member) => member !== journal.member);
  const markAt = (at: number): Mark => ({
    number: at,
    journals: at >= last ? [journal.member] : [journal.member, ...former],
  });
  await fence.write((epoch) => store.put({ key: keys.checkpoint, value: encodeMark(markAt(mark)) }, epoch));
  if (journal.isHeld) throw new Error('the store went back in time during the load');
  const onMark = (to: number): void => {
    journal.checkpointed(number, to);
    commits.checkpointed(to);
    observer.uncheckpointed(number, commits.commitsAboveMark);
    // There may be room again; this notifies the observer.
    commits.hasRoom();
    observeParked(outbox.parkedEvents);
  };
  const checkpointer = startCheckpointer({
    store,
    outbox,
    fence,
    clock,
    expiry,
    mark,
    pending,
    digest,
    markAt,
    journal: { isFilling: () => journal.isFilling(number), inTurn: (write) => journal.inTurn(write) },
    onMark,
  });
  observer.room(number, true);
  const commits = new Commits<D['Effect']>({
    partition: number,
    journal,
    outbox,
    expiry,
    last,
    checkpointer,
    onCommitted,
    onRoom: (hasRoom, load) => {
      observer.room(number, hasRoom);
      const event = hasRoom ? 'writes_taken_again' : 'writes_refused';
      log.warn(event, { partition: number, ...load, cause: causeOf({ outbox, journal, commits }) });
    },
    onFault: (error) => log.error('answer_failed', { partition: number, error }),
  });
  return { checkpointer, commits };
}

/** Observes how many events are parked, and logs when that begins and when it ends. */
function parkedObserver({
  log,
  number,
  observer,
}: Pick<ServingOptions<DomainTypes>, 'log' | 'number' | 'observer'>): (count: number) => void {
  let parked = 0;
  return (count) => {
    if (count > 0 && parked === 0) log.warn('events_parked', { partition: number, events: count });
    if (count === 0 && parked > 0) log.warn('events_published_again', { partition: number });
    parked = count;
    observer.parked(number, count);
  };
}
