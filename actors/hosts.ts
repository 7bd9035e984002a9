/**
 * What hosts say and ask: hello, sync, report, heartbeat. A host's messages are checked like those of a stranger, and
 * believed only about itself (invariant A7): its key is read from the subject, which the server holds it to.
 */
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { DecodeError, decoder } from '../lib/decode.ts';
import type { Log } from '../lib/log.ts';
import { incarnationOf, toldEpoch, type Cluster } from '../schemas/cluster.ts';
import { isHostKey, type HostKey } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import {
  Beat,
  Hello,
  Report,
  SyncAsk,
  type DesiredContainer,
  type HelloAnswer,
  type ReportAnswer,
  type SyncAnswer,
} from '../schemas/messages.ts';
import { hostKeyOfSubject, partitionOf, subjects } from '../schemas/subjects.ts';
import { observe } from './container/observe.ts';
import { desiredOf } from './desired.ts';
import type { Fleet } from './fleet.ts';
import { hello } from './host/decide.ts';
import type { Partition } from './runtime/partition.ts';
import type { PartitionView } from './state.ts';
import { goneFrom, keysOf } from './strangers.ts';
import type { Changes } from './turn.ts';

export interface HostServerOptions {
  readonly nc: NatsConnection;
  readonly cluster: Cluster;
  /** Signs NATS credentials for an enrolled host's key. */
  readonly signJwt: (host: HostKey, publicKey: string) => Promise<string>;
  /** Those that this process owns and serves. */
  readonly owned: () => Iterable<Partition>;
  readonly fleet: Fleet;
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

  const respond = (message: Msg, answer: HelloAnswer | ReportAnswer | SyncAnswer): void => {
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
      (host, ask, message) => answerSync(options, host, ask, (answer) => respond(message, answer)),
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
function answerSync(
  options: HostServerOptions,
  host: HostKey,
  ask: SyncAsk,
  respond: (answer: SyncAnswer) => void,
): void {
  const { cluster } = options;
  const wanted = ask.partitions === undefined ? undefined : new Set(ask.partitions);
  const incarnation = incarnationOf(cluster);
  for (const partition of options.owned()) {
    if (wanted !== undefined && !wanted.has(partition.number)) continue;
    const strangers = (ask.strangers ?? []).filter(
      ({ tenant }) => partitionOf(tenant, cluster.partitions) === partition.number,
    );
    partition.project(
      host,
      (state) => {
        const epoch = toldEpoch(cluster, partition.number, partition.epoch);
        const version = { epoch, revision: partition.revisionOf(host) };
        const held = ask.held[String(partition.number)];
        const same = held !== undefined && held[0] === version.epoch && held[1] === version.revision;
        const isHome = partition.number === partitionOf(host, cluster.partitions);
        if (options.fleet.standing(host) === 'fenced') return [fencedAnswer(cluster, partition.number, version)];
        const gone = goneFrom(state, host, strangers, incarnation).map(({ id, placement }) => ({ id, placement }));
        const common = {
          v: 1 as const,
          cluster: cluster.id,
          partitions: cluster.partitions,
          partition: partition.number,
          incarnation,
          ...version,
          same,
          hold: [...state.damagedContainers()],
          orphan_word: isHome ? (state.host(host)?.orphanWord ?? null) : null,
          draining: isHome ? (state.host(host)?.draining ?? null) : null,
        };
        const parts = same ? [[]] : inParts(desiredOf(state, host));
        return parts.map((containers, part): SyncAnswer => {
          const verdict = part === 0 && gone.length > 0 ? { gone } : {};
          return { ...common, ...verdict, part, parts: parts.length, containers };
        });
      },
      (answers) => answers.forEach(respond),
      keysOf(strangers),
    );
  }
}

/** Says that the host is thrown out; what it should run is none of its business any more. */
const fencedAnswer = (
  cluster: Cluster,
  partition: number,
  version: Pick<SyncAnswer, 'epoch' | 'revision'>,
): SyncAnswer => ({
  v: 1,
  cluster: cluster.id,
  partitions: cluster.partitions,
  partition,
  incarnation: incarnationOf(cluster),
  ...version,
  part: 0,
  parts: 1,
  same: true,
  fenced: true,
  containers: [],
  hold: [],
  orphan_word: null,
  draining: null,
});

/** As many containers as fit a message; one part at least. */
export function inParts(containers: readonly DesiredContainer[]): DesiredContainer[][] {
  const parts: DesiredContainer[][] = [[]];
  let bytes = 0;
  for (const container of containers) {
    const size = Buffer.byteLength(JSON.stringify(container)) + 1;
    if (bytes + size > limits.answerPartBytes && bytes > 0) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)?.push(container);
    bytes += size;
  }
  return parts;
}

function takeReport(
  options: HostServerOptions,
  host: HostKey,
  report: Report,
  respond: (answer: ReportAnswer) => void,
): void {
  const { fleet } = options;
  const partition = ownedPartition(options, report.partition);
  if (partition === undefined) return;
  // What a host says that was thrown out changes nothing (invariant A7).
  if (fleet.standing(host) === 'fenced') {
    respond({ ok: false, error: 'unavailable' });
    return;
  }
  // An owner that has just come does not know which sessions it heard last: the host's own session says which is over.
  if (!fleet.isTold(host)) {
    respond({ ok: false, error: 'unavailable' });
    return;
  }
  if (report.session < (fleet.session(host) ?? 0)) {
    respond({ ok: false, error: 'stale_session' });
    return;
  }
  const isTaken = partition.change(
    'report',
    function* (state, context) {
      for (const item of report.items) {
        let changes: Changes;
        try {
          changes = observe(state, host, report.session, item, context);
        } catch (error) {
          // A bug of ours with this item; the others are none the worse for it.
          options.log.error('turn_failed', { kind: 'report', host, container: item.id, error });
          continue;
        }
        yield changes;
      }
    },
    () => respond({ ok: true }),
  );
  if (!isTaken) respond({ ok: false, error: 'unavailable' });
}
