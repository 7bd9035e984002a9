/**
 * What hosts say and ask: hello, sync, report, heartbeat. A host's messages are checked like those of a stranger, and
 * believed only about itself (invariant A7): its key is read from the subject, which the server holds it to.
 */
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { DecodeError, decoder } from '../lib/decode.ts';
import type { Log } from '../lib/log.ts';
import type { Slices } from '../lib/slices.ts';
import { incarnationOf, toldEpoch, type Cluster } from '../schemas/cluster.ts';
import type { ContainerRecord } from '../schemas/container.ts';
import { isHostKey, type ContainerId, type HostKey } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import {
  Beat,
  Hello,
  Report,
  SyncAsk,
  type HelloAnswer,
  type ReportAnswer,
  type Stranger,
  type SyncAnswer,
} from '../schemas/messages.ts';
import { hostKeyOfSubject, partitionOf, subjects } from '../schemas/subjects.ts';
import { observe } from './container/observe.ts';
import { desiredOf } from './desired.ts';
import type { Fleet } from './fleet.ts';
import { hello } from './host/decide.ts';
import { inParts, partText } from './parts.ts';
import type { Partition } from './runtime/partition.ts';
import type { PartitionView } from './state.ts';
import { goneFrom, keysOf } from './strangers.ts';
import type { Changes, TurnContext } from './turn.ts';

export interface HostServerOptions {
  readonly nc: NatsConnection;
  readonly cluster: Cluster;
  /** Signs NATS credentials for an enrolled host's key. */
  readonly signJwt: (host: HostKey, publicKey: string) => Promise<string>;
  /** Those that this process owns and serves. */
  readonly owned: () => Iterable<Partition>;
  readonly fleet: Fleet;
  readonly slices: Slices;
  readonly log: Log;
}

const decodeHello = decoder(Hello);
const decodeSync = decoder(SyncAsk);
const decodeReport = decoder(Report);
const decodeBeat = decoder(Beat);

export function serveHosts(options: HostServerOptions): Subscription[] {
  const { nc, log, fleet } = options;

  /** Calls the handler with what a host sent; what is not well formed is answered `invalid`, where an answer is due. */
  const serve = <T>(
    subject: string,
    decode: (bytes: Uint8Array) => T,
    handle: (host: HostKey, value: T, message: Msg) => void,
    onInvalid: (message: Msg) => void,
  ): Subscription =>
    nc.subscribe(subject, {
      callback: (error, message) => {
        if (error !== null) {
          log.error('subscription_failed', { subject, error });
          return;
        }
        const host = hostKeyOfSubject(message.subject);
        if (!isHostKey(host)) return;
        try {
          handle(host, decode(message.data), message);
        } catch (cause) {
          log.warn('host_message_refused', { subject: message.subject, error: cause });
          if (cause instanceof DecodeError) onInvalid(message);
        }
      },
    });

  const respond = (message: Msg, answer: HelloAnswer | ReportAnswer): void => {
    message.respond(JSON.stringify(answer));
  };
  const invalid = (message: Msg): void => respond(message, { ok: false, error: 'invalid' });

  return [
    serve(
      subjects.hostHello('*'),
      decodeHello,
      (host, value, message) => {
        answerHello(options, host, value, (answer) => respond(message, answer)).catch((error: unknown) =>
          log.error('hello_failed', { host, error }),
        );
      },
      invalid,
    ),
    serve(
      subjects.hostSync('*'),
      decodeSync,
      (host, ask, message) => answerSync(options, host, ask, (text) => void message.respond(text)),
      () => {},
    ),
    serve(
      subjects.hostReport('*'),
      decodeReport,
      (host, report, message) => takeReport(options, host, report, (answer) => respond(message, answer)),
      invalid,
    ),
    serve(
      subjects.hostBeat('*'),
      decodeBeat,
      // The silence of a fenced host is counted from when its word ceased to count.
      (host, beat) => {
        if (fleet.standing(host) !== 'fenced') fleet.hear(host, beat);
      },
      () => {},
    ),
  ];
}

const ownedPartition = ({ owned }: HostServerOptions, number: number): Partition | undefined => {
  for (const partition of owned()) if (partition.number === number) return partition;
  return undefined;
};

/** Answered by the owner of the host's partition alone; the others are silent. */
async function answerHello(
  options: HostServerOptions,
  host: HostKey,
  value: Hello,
  respond: (answer: HelloAnswer) => void,
): Promise<void> {
  const { fleet } = options;
  const partition = ownedPartition(options, partitionOf(host, options.cluster.partitions));
  if (partition === undefined) return;
  const newest = partition.view.host(host)?.session;
  if (value.session !== undefined && newest !== undefined && fleet.isSuperseded(host, value.session, newest)) {
    respond({ ok: false, error: 'superseded' });
    return;
  }
  // A key that is no longer the enrolled one gets nothing new: a host that was enrolled again leaves its old key behind.
  const { renew_key: key } = value;
  const isEnrolled = (state: PartitionView): boolean => {
    const known = state.host(host);
    return known?.publicKey === key && known?.fencedAtMs === undefined;
  };
  const jwt = key !== undefined && isEnrolled(partition.view) ? await options.signJwt(host, key) : undefined;
  let answer: HelloAnswer = { ok: false, error: 'unknown_host' };
  const isTaken = partition.change(
    'hello',
    (state, context) => {
      const greeted = hello(state, host, value, context);
      if (greeted === undefined) {
        if (state.host(host) !== undefined) answer = { ok: false, error: 'fenced' };
        return [];
      }
      const { session, orphanWord } = greeted.record;
      const { id: cluster, partitions } = options.cluster;
      // It may have been enrolled again while the old key was signed.
      const renewed = jwt !== undefined && isEnrolled(state) ? { jwt } : {};
      answer = { ok: true, cluster, partitions, session, orphan_word: orphanWord, ...renewed };
      return [greeted.changes];
    },
    () => {
      if (answer.ok) options.fleet.greeted(host);
      respond(answer);
    },
  );
  if (!isTaken) respond({ ok: false, error: 'unavailable' });
}

/** Every owner answers for what it owns; the answer leaves when what it says is committed (invariant A3). */
function answerSync(options: HostServerOptions, host: HostKey, ask: SyncAsk, send: (text: string) => void): void {
  const { cluster, slices, log } = options;
  const wanted = ask.partitions === undefined ? undefined : new Set(ask.partitions);
  for (const partition of options.owned()) {
    if (wanted !== undefined && !wanted.has(partition.number)) continue;
    const strangers = (ask.strangers ?? []).filter(
      ({ tenant }) => partitionOf(tenant, cluster.partitions) === partition.number,
    );
    partition.project(
      host,
      (state) => lookFor(options, partition, state, { host, ask, strangers }),
      (told) => {
        // Where too much waits already, the host hears nothing of this partition and asks again.
        slices.begin('sync', telling(told, send), (error) => log.error('sync_failed', { host, error }));
      },
      keysOf(strangers),
    );
  }
}

/** What a partition has to tell a host: the answer without its lists, and what the lists are made of. */
interface Told {
  readonly head: Omit<SyncAnswer, 'part' | 'parts' | 'containers' | 'hold' | 'gone'>;
  readonly gone: NonNullable<SyncAnswer['gone']>;
  readonly placed: readonly ContainerRecord[];
  readonly hold: readonly ContainerId[];
}

function lookFor(
  { cluster, fleet }: HostServerOptions,
  partition: Partition,
  state: PartitionView,
  { host, ask, strangers }: { readonly host: HostKey; readonly ask: SyncAsk; readonly strangers: readonly Stranger[] },
): Told {
  const { number } = partition;
  const incarnation = incarnationOf(cluster);
  const version = { epoch: toldEpoch(cluster, number, partition.epoch), revision: partition.revisionOf(host) };
  const common = {
    v: 1 as const,
    cluster: cluster.id,
    partitions: cluster.partitions,
    partition: number,
    incarnation,
    ...version,
  };
  if (fleet.standing(host) === 'fenced') {
    // It is thrown out; what it should run is none of its business any more.
    const head = { ...common, same: true, fenced: true as const, orphan_word: null, draining: null };
    return { head, gone: [], placed: [], hold: [] };
  }
  const held = ask.held[String(number)];
  const same = held !== undefined && held[0] === version.epoch && held[1] === version.revision;
  const home = number === partitionOf(host, cluster.partitions) ? state.host(host) : undefined;
  return {
    head: { ...common, same, orphan_word: home?.orphanWord ?? null, draining: home?.draining ?? null },
    gone: goneFrom(state, host, strangers, incarnation).map(({ id, placement }) => ({ id, placement })),
    placed: same ? [] : [...state.placedOn(host).values()],
    // Of this version as the containers are.
    hold: same ? [] : [...state.damagedContainers()],
  };
}

/** In parts that fit a message; a container is a step. */
function* telling({ head, gone, placed, hold }: Told, send: (text: string) => void): Generator<void, void, void> {
  const parts = yield* inParts({ containers: desiredOf(placed), hold });
  for (const [part, lists] of parts.entries()) {
    const verdict = part === 0 && gone.length > 0 ? { gone } : {};
    send(partText({ ...head, ...verdict, part, parts: parts.length }, lists));
    yield;
  }
}

/** Why nothing of a report is taken in; undefined: it may be. */
function refusalOf({ fleet }: HostServerOptions, host: HostKey, { session }: Report): ReportRefusal | undefined {
  // What a host says that was thrown out changes nothing (invariant A7).
  if (fleet.standing(host) === 'fenced') return 'unavailable';
  // An owner that has just come does not know which sessions it heard last: the host's own session says which is over.
  if (!fleet.isTold(host)) return 'unavailable';
  return session < (fleet.session(host) ?? 0) ? 'stale_session' : undefined;
}
type ReportRefusal = Extract<ReportAnswer, { ok: false }>['error'];

function takeReport(
  options: HostServerOptions,
  host: HostKey,
  report: Report,
  respond: (answer: ReportAnswer) => void,
): void {
  const { slices, log } = options;
  const partition = ownedPartition(options, report.partition);
  if (partition === undefined) return;
  const onFault = (error: unknown): void => log.error('report_failed', { host, error });
  const isBegun = slices.begin('report', takingIn(options, partition, { host, report, respond }), onFault);
  if (!isBegun) respond({ ok: false, error: 'unavailable' });
}

/** A few containers in a turn; acknowledged when all of them are committed. */
function* takingIn(
  options: HostServerOptions,
  partition: Partition,
  {
    host,
    report,
    respond,
  }: { readonly host: HostKey; readonly report: Report; readonly respond: (answer: ReportAnswer) => void },
): Generator<void, void, void> {
  const { items } = report;
  // One without containers is a turn, too.
  let turnsLeft = Math.max(1, Math.ceil(items.length / limits.reportItemsPerTurn));
  const onCommitted = (): void => {
    if (--turnsLeft === 0) respond({ ok: true });
  };
  for (let from = 0; from === 0 || from < items.length; from += limits.reportItemsPerTurn) {
    const taken = items.slice(from, from + limits.reportItemsPerTurn);
    const refusal = refusalOf(options, host, report);
    const isTaken =
      refusal === undefined && partition.change('report', observing(options, host, report.session, taken), onCommitted);
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
