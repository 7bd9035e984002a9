/**
 * What hosts say and ask: hello, sync, report, heartbeat. A host's messages are checked like those
 * of a stranger, and believed only about itself (invariant A7): its key, and that of its agent, are
 * read from the subject, which the server holds the agent to. An agent is believed only while its
 * key is the one that is enrolled (ADR 22).
 */
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { DecodeError, messageDecoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import type { Slices } from '../../lib/slices.ts';
import type { SparingLog } from '../../lib/sparing.ts';
import { incarnationOf, announcedEpoch, type Cluster } from '../../schemas/records/cluster.ts';
import type { ContainerRecord } from '../../schemas/api/container.ts';
import { isHostKey, type ContainerId, type HostKey } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import {
  Beat,
  Hello,
  Report,
  SyncAsk,
  type HelloAnswer,
  type ReportAnswer,
  type Stranger,
  type SyncAnswer,
} from '../../schemas/wire/host.ts';
import {
  anySender,
  anyUnboundSender,
  partitionOf,
  senderOfSubject,
  subjects,
  type Sender,
} from '../../schemas/wire/subjects.ts';
import { ProtocolError, spoken } from '../../schemas/wire/version.ts';
import { observe } from '../domain/container/observe.ts';
import { hostDirtyKey } from '../domain/domain.ts';
import { desiredOf } from '../domain/desired.ts';
import type { Fleet } from './fleet.ts';
import { hello } from '../domain/host/decide.ts';
import { isEnrolled } from '../domain/host/sender.ts';
import { inParts, partText } from '../../lib/rpc/parts.ts';
import type { Partition } from '../partition.ts';
import type { PartitionView } from '../domain/state.ts';
import { goneFrom, keysOf } from '../domain/host/strangers.ts';
import type { Changes, TurnContext } from '../domain/turn.ts';

export interface HostServerOptions {
  readonly nc: NatsConnection;
  readonly cluster: Cluster;
  /**
   * Signs NATS credentials for an enrolled host's key; `isUnbound`: for an agent from
   * before 0.1.0.
   */
  readonly signJwt: (host: HostKey, publicKey: string, isUnbound?: boolean) => Promise<string>;
  /** Those that this process owns and serves. */
  readonly owned: () => Iterable<Partition>;
  readonly fleet: Fleet;
  readonly slices: Slices;
  /** Of a sender whose key is not the one that is enrolled, or of a host that is not there. */
  readonly onRefused: (kind: HostMessage, sender: Sender) => void;
  readonly log: Log;
  /** For what hosts can cause at will. */
  readonly refusals: SparingLog;
}

export type HostMessage = 'hello' | 'sync' | 'report' | 'beat';

const decodeHello = messageDecoder(Hello);
const decodeSync = messageDecoder(SyncAsk);
const decodeReport = messageDecoder(Report);
const decodeBeat = messageDecoder(Beat);

export function serveHosts(options: HostServerOptions): Subscription[] {
  const { nc, log, refusals, fleet } = options;

  /**
   * Calls the handler with what a host sent. What is not well formed, or of a release that does not
   * work together with this one, is refused, where an answer is due.
   */
  const serve = <T>(
    subjectOf: (sender: Sender<'*'>) => string,
    decode: (bytes: Uint8Array) => T,
    handle: (sender: Sender, value: T, message: Msg) => void,
    refuse: (message: Msg, cause: DecodeError | ProtocolError) => void,
  ): Subscription[] =>
    [anySender, anyUnboundSender].map(subjectOf).map((subject) =>
      nc.subscribe(subject, {
        callback: (error, message) => {
          if (error !== null) {
            log.error('subscription_failed', { subject, error });
            return;
          }
          const { host, user } = senderOfSubject(message.subject);
          if (!isHostKey(host)) return;
          try {
            handle({ host, user }, decode(message.data), message);
          } catch (cause) {
            const event = cause instanceof ProtocolError ? 'protocol_refused' : 'host_message_refused';
            refusals.warn(event, { subject: message.subject, error: cause });
            if (cause instanceof DecodeError || cause instanceof ProtocolError) refuse(message, cause);
          }
        },
      }),
    );

  const respond = (message: Msg, answer: HelloAnswer | ReportAnswer): void => {
    message.respond(JSON.stringify({ ...spoken, ...answer }));
  };

  return [
    ...serve(
      subjects.hostHello,
      decodeHello,
      (sender, value, message) => {
        answerHello(options, sender, value, (answer) => respond(message, answer)).catch((error: unknown) =>
          log.error('hello_failed', { host: sender.host, error }),
        );
      },
      (message, cause) => respond(message, { ok: false, error: 'invalid', message: cause.message }),
    ),
    ...serve(
      subjects.hostSync,
      decodeSync,
      (sender, ask, message) => answerSync(options, sender, ask, (text) => void message.respond(text)),
      () => {},
    ),
    ...serve(
      subjects.hostReport,
      decodeReport,
      (sender, report, message) => takeReport(options, sender, report, (answer) => respond(message, answer)),
      // An agent drops what is invalid; what an upgrade makes readable it must keep.
      (message, cause) =>
        respond(message, { ok: false, error: cause instanceof ProtocolError ? 'unavailable' : 'invalid' }),
    ),
    ...serve(
      subjects.hostBeat,
      decodeBeat,
      (sender, beat) => {
        // The silence of a fenced host is counted from when its word ceased to count.
        if (fleet.standing(sender.host) === 'fenced') return;
        if (fleet.isEnrolled(sender)) fleet.hear(sender.host, beat);
        else countRefused(options, 'beat', sender);
      },
      () => {},
    ),
  ];
}

/**
 * Not before it is known which key is enrolled: a process that has just started knows no host's.
 */
function countRefused({ fleet, onRefused }: HostServerOptions, kind: HostMessage, sender: Sender): void {
  if (fleet.isSynced(sender.host) && !fleet.isUnreadable(sender.host)) onRefused(kind, sender);
}

const ownedPartition = ({ owned }: HostServerOptions, number: number): Partition | undefined => {
  for (const partition of owned()) if (partition.number === number) return partition;
  return undefined;
};

/** Answered by the owner of the host's partition alone; the others are silent. */
async function answerHello(
  options: HostServerOptions,
  sender: Sender,
  value: Hello,
  respond: (answer: HelloAnswer) => void,
): Promise<void> {
  const { fleet } = options;
  const { host } = sender;
  const partition = ownedPartition(options, partitionOf(host, options.cluster.partitions));
  if (partition === undefined) return;
  if (value.wants_bound === true && sender.user === undefined) {
    respond(await boundCredentials(options, partition, host, value));
    return;
  }
  const refusal = refusalOfHello(partition.view, fleet, sender, value);
  if (refusal !== undefined) {
    if (refusal === 'unknown_host' || !isEnrolled(partition.view.host(host), sender))
      countRefused(options, 'hello', sender);
    respond({ ok: false, error: refusal });
    return;
  }
  const { renew_key: key } = value;
  const isDue = (state: PartitionView): boolean => state.host(host)?.publicKey === key;
  const jwt =
    key !== undefined && isDue(partition.view)
      ? await options.signJwt(host, key, sender.user === undefined)
      : undefined;
  let answer: HelloAnswer = { ok: false, error: 'unknown_host' };
  const isTaken = partition.change(
    'hello',
    (state, context) => {
      // It may have been enrolled again while the key was signed.
      const refused = refusalOfHello(state, fleet, sender, value);
      const greeted = refused === undefined ? hello(state, sender, value, context) : undefined;
      if (greeted === undefined) {
        answer = { ok: false, error: refused ?? 'unknown_host' };
        return [];
      }
      const { session, orphanWord } = greeted.record;
      const { id: cluster, partitions } = options.cluster;
      const renewed = jwt !== undefined && isDue(state) ? { jwt } : {};
      answer = { ok: true, cluster, partitions, session, orphan_word: orphanWord, ...renewed };
      return [greeted.changes];
    },
    () => {
      if (answer.ok) fleet.greeted(host);
      respond(answer);
    },
  );
  if (!isTaken) respond({ ok: false, error: 'unavailable' });
}

/** Why a hello gets no session; undefined: it does. */
function refusalOfHello(
  state: PartitionView,
  fleet: Fleet,
  sender: Sender,
  { session: held }: Hello,
): 'unknown_host' | 'fenced' | 'superseded' | undefined {
  const record = state.host(sender.host);
  if (record === undefined || record.publicKey === null) return 'unknown_host';
  if (record.fencedAtMs !== undefined) return 'fenced';
  if (!isEnrolled(record, sender)) {
    // Where the agent that is enrolled is heard, this one must stop its containers. Else it is left
    // alone: after a restore its own enrolment may be what was forgotten.
    return fleet.isSuperseded(sender.host, -1, record.session) ? 'superseded' : 'unknown_host';
  }
  return held !== undefined && fleet.isSuperseded(sender.host, held, record.session) ? 'superseded' : undefined;
}

/**
 * Credentials in place of those from before 0.1.0. Whoever asks gets them, for they are of use to
 * the enrolled key alone, and nothing is changed: an agent that crashes before they are on its disk
 * asks again.
 */
async function boundCredentials(
  options: HostServerOptions,
  partition: Partition,
  host: HostKey,
  { renew_key: key }: Hello,
): Promise<HelloAnswer> {
  const record = partition.view.host(host);
  if (record === undefined || key === undefined || record.publicKey !== key)
    return { ok: false, error: 'unknown_host' };
  if (record.fencedAtMs !== undefined) return { ok: false, error: 'fenced' };
  const { session, orphanWord } = record;
  const { id: cluster, partitions } = options.cluster;
  return { ok: true, cluster, partitions, session, orphan_word: orphanWord, jwt: await options.signJwt(host, key) };
}

/**
 * Every owner answers for what it owns; the answer leaves when what it says is committed (invariant
 * A3).
 */
function answerSync(options: HostServerOptions, sender: Sender, ask: SyncAsk, send: (text: string) => void): void {
  const { cluster, slices, log } = options;
  const { host } = sender;
  const wanted = ask.partitions === undefined ? undefined : new Set(ask.partitions);
  for (const partition of options.owned()) {
    if (wanted !== undefined && !wanted.has(partition.number)) continue;
    const strangers = (ask.strangers ?? []).filter(
      ({ tenant }) => partitionOf(tenant, cluster.partitions) === partition.number,
    );
    partition.project(
      [hostDirtyKey(host), ...keysOf(strangers)],
      (state) => lookFor(options, partition, state, { sender, ask, strangers }),
      (synced) => {
        if (synced === undefined) {
          countRefused(options, 'sync', sender);
          return;
        }
        // Where too much waits already, the host hears nothing of this partition and asks again.
        slices.begin('sync', syncAnswers(synced, send), (error) => log.error('sync_failed', { host, error }));
      },
    );
  }
}

/**
 * What a partition answers to a sync: the answer without its lists, and what the lists are made
 * of.
 */
interface Synced {
  readonly head: Omit<SyncAnswer, 'part' | 'parts' | 'containers' | 'hold' | 'gone'>;
  readonly gone: NonNullable<SyncAnswer['gone']>;
  readonly placed: readonly ContainerRecord[];
  readonly hold: readonly ContainerId[];
}

type Common = Omit<Synced['head'], 'same' | 'fenced' | 'orphan_word' | 'draining'>;

/** Undefined: the sender gets no answer. */
function lookFor(
  { cluster, fleet }: HostServerOptions,
  partition: Partition,
  state: PartitionView,
  {
    sender,
    ask,
    strangers,
  }: { readonly sender: Sender; readonly ask: SyncAsk; readonly strangers: readonly Stranger[] },
): Synced | undefined {
  const { number } = partition;
  const { host } = sender;
  const incarnation = incarnationOf(cluster);
  const version = { epoch: announcedEpoch(cluster, number, partition.epoch), revision: state.revisionOf(host) };
  const common: Common = {
    v: 1,
    ...spoken,
    cluster: cluster.id,
    partitions: cluster.partitions,
    partition: number,
    incarnation,
    ...version,
  };
  const isHome = number === partitionOf(host, cluster.partitions);
  const home = isHome ? state.host(host) : undefined;
  const held = ask.held[String(number)];
  if (isHome ? [...state.damagedHosts()].includes(host) : fleet.isUnreadable(host)) {
    return held === undefined ? undefined : keepsWhatItRuns(common, held);
  }
  if ((isHome && home === undefined && wasRemoved(state, sender)) || fleet.standing(host) === 'fenced') {
    // It is thrown out; what it should run is none of its business any more.
    const head = { ...common, same: true, fenced: true as const, orphan_word: null, draining: null };
    return { head, gone: [], placed: [], hold: [] };
  }
  if (!(home === undefined ? fleet.isEnrolled(sender) : isEnrolled(home, sender))) return undefined;
  const same = held !== undefined && held[0] === version.epoch && held[1] === version.revision;
  return {
    head: { ...common, same, orphan_word: home?.orphanWord ?? null, draining: home?.draining ?? null },
    gone: goneFrom(state, host, strangers, incarnation).map(({ id, placement }) => ({ id, placement })),
    placed: same ? [] : [...state.placedOn(host).values()],
    // Of this version as the containers are.
    hold: same ? [] : [...state.damagedContainers()],
  };
}

/**
 * For a host whose record is damaged. Which key is enrolled for it is not known, so it is told
 * nothing that it did not say itself: that is enough for an agent with STOP_ON_DISCONNECT_MS to
 * keep its containers. They are placed nowhere else meanwhile, for the host is not taken for lost.
 */
function keepsWhatItRuns(common: Common, [epoch, revision]: readonly [number, number]): Synced {
  const head = { ...common, epoch, revision, same: true, orphan_word: null, draining: null };
  return { head, gone: [], placed: [], hold: [] };
}

/**
 * Whether an operator removed this host, which leaves its key among the revoked ones. A host
 * without a record may also be one that a restore has forgotten: it hears nothing and keeps what it
 * runs (invariant A4).
 */
const wasRemoved = (state: PartitionView, { host, user }: Sender): boolean =>
  user === undefined
    ? [...state.revokedKeys().values()].some((revoked) => revoked.host === host)
    : state.revokedKeys().has(user);

/** In parts that fit a message; a container is a step. */
function* syncAnswers({ head, gone, placed, hold }: Synced, send: (text: string) => void): Generator<void, void, void> {
  const parts = yield* inParts({ containers: desiredOf(placed), hold });
  for (const [part, lists] of parts.entries()) {
    const verdict = part === 0 && gone.length > 0 ? { gone } : {};
    send(partText({ ...head, ...verdict, part, parts: parts.length }, lists));
    yield;
  }
}

/** Why nothing of a report is taken in; undefined: it may be. */
function refusalOf(
  options: HostServerOptions,
  partition: Partition,
  sender: Sender,
  { session }: Report,
): ReportRefusal | undefined {
  const { fleet, cluster } = options;
  const { host } = sender;
  // What a host says that was thrown out changes nothing (invariant A7).
  if (fleet.standing(host) === 'fenced') return 'unavailable';
  // An owner that has just come does not know which sessions it heard last: the host's own session
  // says which is over.
  if (!fleet.isSynced(host)) return 'unavailable';
  const isHome = partition.number === partitionOf(host, cluster.partitions);
  if (!(isHome ? isEnrolled(partition.view.host(host), sender) : fleet.isEnrolled(sender))) {
    countRefused(options, 'report', sender);
    // The owner of the host's partition knows, and sends its agent to say hello; others may not
    // have heard yet.
    return isHome ? 'stale_session' : 'unavailable';
  }
  return session < (fleet.session(host) ?? 0) ? 'stale_session' : undefined;
}
type ReportRefusal = Extract<ReportAnswer, { ok: false }>['error'];

function takeReport(
  options: HostServerOptions,
  sender: Sender,
  report: Report,
  respond: (answer: ReportAnswer) => void,
): void {
  const { slices, log } = options;
  const partition = ownedPartition(options, report.partition);
  if (partition === undefined) return;
  const onFault = (error: unknown): void => log.error('report_failed', { host: sender.host, error });
  const isBegun = slices.begin('report', takingIn(options, partition, { sender, report, respond }), onFault);
  if (!isBegun) respond({ ok: false, error: 'unavailable' });
}

/** A few containers in a turn; acknowledged when all of them are committed. */
function* takingIn(
  options: HostServerOptions,
  partition: Partition,
  {
    sender,
    report,
    respond,
  }: { readonly sender: Sender; readonly report: Report; readonly respond: (answer: ReportAnswer) => void },
): Generator<void, void, void> {
  const { items } = report;
  // One without containers is a turn, too.
  let turnsLeft = Math.max(1, Math.ceil(items.length / limits.reportItemsPerTurn));
  const onCommitted = (): void => {
    if (--turnsLeft === 0) respond({ ok: true });
  };
  for (let from = 0; from === 0 || from < items.length; from += limits.reportItemsPerTurn) {
    const taken = items.slice(from, from + limits.reportItemsPerTurn);
    const refusal = refusalOf(options, partition, sender, report);
    const isTaken =
      refusal === undefined &&
      partition.change('report', observing(options, sender.host, report.session, taken), onCommitted);
    if (!isTaken) {
      respond({ ok: false, error: refusal ?? 'unavailable' });
      return;
    }
    yield;
  }
}

const observing = ({ log }: HostServerOptions, host: HostKey, session: number, items: Report['items']) =>
  function* (state: PartitionView, context: TurnContext): Generator<Changes, void, void> {
    for (const item of items) {
      let changes: Changes;
      try {
        changes = observe(state, host, session, item, context);
      } catch (error) {
        // A bug of ours with this item; the others are none the worse for it.
        log.error('turn_failed', { kind: 'report', host, container: item.id, error });
        continue;
      }
      yield changes;
    }
  };
