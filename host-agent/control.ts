/**
 * The agent's side of the control plane: a session, the desired set, heartbeats. Each goes on by itself when the
 * connection comes back; without a connection the agent works from what it knows.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import Type from 'typebox';
import type { Answers } from '../lib/answers.ts';
import { backoffMs, jitter, sleep, type BackoffBounds } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { decoder } from '../lib/decode.ts';
import type { Log } from '../lib/log.ts';
import { limits } from '../schemas/limits.ts';
import { ReportAnswer, type Beat, type Report } from '../schemas/messages.ts';
import { partitionOf, subjects, type Sender } from '../schemas/subjects.ts';
import type { Credentials } from './credentials.ts';
import { createLatch } from './latch.ts';
import type { Request } from './logs/publish.ts';
import type { Metrics } from './metrics.ts';
import type { Reporter } from './reporter.ts';
import { askBound, farewell, hello, type HelloParts } from './session.ts';
import { sync, type SyncResult, type SyncTarget } from './sync.ts';

const decodeReportAnswer = decoder(ReportAnswer);
const decodeBell = decoder(Type.Object({ partition: Type.Integer(), rid: Type.Union([Type.String(), Type.Null()]) }));

export interface Control {
  /** Rejects while there is no connection. */
  readonly request: Request;
  /** Trades credentials of the last release for others, over a connection of its own. */
  exchange(nc: NatsConnection, signal: AbortSignal): Promise<void>;
  /** Serves until the signal aborts. What is under way then ends with the connection. */
  run(nc: NatsConnection, reporter: Reporter, signal: AbortSignal): Promise<void>;
  /** Says that this agent ends, where the control plane counts on it to stop its containers. */
  leave(): Promise<void>;
  /** A newer session of this host is known to the control plane: ask for another. */
  renewSession(): void;
  /** Strangers have come to light: ask about them now. */
  syncSoon(): void;
  /** The control plane has answered. */
  onContact(): void;
  lastSyncMs(): number | null;
  hasSession(): boolean;
}

export interface ControlParts {
  /** Who this agent is by the credentials of its connection. */
  readonly sender: () => Sender;
  readonly target: SyncTarget;
  /** A session was given. */
  readonly onGreeted: () => void;
  /** The control plane has answered. */
  readonly onContact: () => void;
  /** Owners have said what this host should run: what was moved while this host was cut off is known. */
  readonly onSynced: () => void;
  readonly hello: Omit<HelloParts, 'request' | 'held' | 'sender' | 'credentials'> & {
    readonly credentials: Credentials;
  };
  readonly beat: () => Omit<Beat, 'v' | 'session'>;
  readonly beatMs: number;
  readonly syncMs: number;
  readonly retry: BackoffBounds;
  /** Whether the containers are stopped when the control plane is silent. */
  readonly isCountedOn: () => boolean;
  readonly clock: Clock;
  /** Learns what is asked of the control plane, and what it answers. */
  readonly answers: Answers;
  readonly metrics: Pick<Metrics, 'sync'>;
  readonly log: Log;
}

export function createControl(parts: ControlParts): Control {
  const { sender, target, clock, answers, metrics, log } = parts;
  const bell = createLatch();
  const stale = createLatch();
  let connection: NatsConnection | undefined;
  let session: number | undefined;
  let isGreeting = false;
  let lastSyncMs: number | null = null;
  /** What is to be asked for next: partitions that a bell named, or all. */
  let due: Set<number> | 'all' = 'all';

  const onContact = (): void => {
    parts.onContact();
    answers.heard();
  };
  const request: Request = async (subject, payload, timeoutMs) => {
    if (connection === undefined) throw new Error('not connected');
    answers.asked();
    const { data } = await connection.request(subject, payload, { timeout: timeoutMs });
    answers.heard();
    return data;
  };

  const helloParts: HelloParts = { ...parts.hello, sender, request, held: () => session };

  const ring = (partition: number | 'all'): void => {
    if (partition === 'all') due = 'all';
    else if (due !== 'all') due.add(partition);
    bell.wake();
  };

  const hearBells = (nc: NatsConnection): void => {
    nc.subscribe(subjects.desiredOfHost(sender().host), {
      callback: (error, message) => {
        if (error !== null) {
          log.warn('bell_subscription_failed', { error });
          return;
        }
        const partition = Number(message.subject.split('.')[2]);
        log.info('bell', { partition, requestId: requestIdOf(message.data) });
        ring(Number.isInteger(partition) && partition >= 0 ? partition : 'all');
      },
    });
  };

  const greet = async (reporter: Reporter, signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      isGreeting = true;
      const greeting = await hello(helloParts, signal);
      if (greeting === undefined) return;
      session = greeting.session;
      isGreeting = false;
      log.info('session', { session, partitions: greeting.partitions });
      parts.onGreeted();
      onContact();
      target.orphanWord(greeting.orphan_word);
      reporter.restart({ session: greeting.session, partitions: greeting.partitions });
      ring('all');
      await stale.wait(undefined, signal);
      if (!signal.aborted) log.info('session_again', { session });
    }
  };

  const keepSynced = async (nc: NatsConnection, signal: AbortSignal): Promise<void> => {
    let fullAtMs = clock.monotonicMs();
    for (let failures = 0; !signal.aborted;) {
      if (clock.monotonicMs() >= fullAtMs) due = 'all';
      if (!isDue()) {
        await bell.wait(fullAtMs - clock.monotonicMs(), signal);
        continue;
      }
      const asked = due;
      due = new Set();
      answers.asked();
      const result = await sync(
        nc,
        target,
        asked === 'all' ? undefined : [...asked],
        log,
        limits.syncTimeoutMs,
        signal,
      );
      metrics.sync(result.kind);
      const isDone = takeResult(result, asked);
      // Every host at its own time, and none in step with another.
      if (asked === 'all' && (isDone || result.kind === 'silent')) void checkSession();
      if (isDone && asked === 'all') fullAtMs = clock.monotonicMs() + parts.syncMs * (0.75 + Math.random() / 2);
      failures = isDone ? 0 : failures + 1;
      // A bell is a sign of life: no need to wait longer.
      if (!isDone) await bell.wait(jitter(backoffMs(failures - 1, parts.retry)), signal);
    }
  };
  const isDue = (): boolean => due === 'all' || due.size > 0;

  /** True: nothing is owed to us. What a bell named, and nobody answered for, stays due. */
  const takeResult = (result: SyncResult, asked: typeof due): boolean => {
    switch (result.kind) {
      case 'complete':
        parts.onSynced();
        answers.heard();
        if (asked === 'all') lastSyncMs = clock.nowMs();
        if (due !== 'all') due = new Set([...due, ...result.due]);
        return true;
      case 'partial':
        parts.onSynced();
        answers.heard();
        if (due !== 'all') due = new Set([...due, ...result.missing]);
        return false;
      case 'silent':
        // No more than was asked: whoever is slow to answer for one partition is not helped by sixteen questions.
        due = due === 'all' || asked === 'all' ? 'all' : new Set([...due, ...asked]);
        return false;
      case 'refused':
        due = 'all';
        return false;
    }
  };

  /**
   * A host without news says nothing for long; asked with an empty report, the control plane tells whose session it is. It
   * tells an agent nothing else whose key is no longer the enrolled one.
   */
  const checkSession = async (): Promise<void> => {
    const { partitions } = target.current();
    if (session === undefined || partitions === null) return;
    const report: Report = { v: 1, partition: partitionOf(sender().host, partitions), session, items: [] };
    try {
      const payload = await request(subjects.hostReport(sender()), JSON.stringify(report), limits.reportTimeoutMs);
      const answer = decodeReportAnswer(payload);
      // An answer about an earlier session, or while another is on its way, is no news.
      const isCurrent = report.session === session && !isGreeting;
      if (isCurrent && !answer.ok && answer.error === 'stale_session') stale.wake();
    } catch (error) {
      log.debug('session_not_checked', { error });
    }
  };

  const keepBeating = async (nc: NatsConnection, signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      if (session !== undefined) {
        const beat: Beat = { v: 1, session, ...parts.beat() };
        try {
          nc.publish(subjects.hostBeat(sender()), JSON.stringify(beat));
        } catch (error) {
          log.debug('beat_not_sent', { error });
        }
      }
      await sleep(parts.beatMs, signal);
    }
  };

  const watchConnection = async (nc: NatsConnection, reporter: Reporter): Promise<void> => {
    for await (const status of nc.status()) {
      if (status.type !== 'reconnect') continue;
      ring('all');
      reporter.repeat();
    }
  };

  /** Credentials that come to their end are renewed by a new hello. */
  const keepCredentials = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      await sleep(parts.hello.credentials.checkEveryMs, signal);
      if (parts.hello.credentials.renewKey() !== undefined) stale.wake();
    }
  };

  return {
    request,
    exchange: async (nc, signal) => {
      const exchange: Request = async (subject, payload, timeoutMs) =>
        (await nc.request(subject, payload, { timeout: timeoutMs })).data;
      const jwt = await askBound({ ...helloParts, request: exchange }, signal);
      if (jwt !== undefined) parts.hello.credentials.renewed(jwt);
    },
    run: async (nc, reporter, signal) => {
      connection = nc;
      hearBells(nc);
      void watchConnection(nc, reporter);
      await Promise.all([
        greet(reporter, signal),
        keepSynced(nc, signal),
        keepBeating(nc, signal),
        keepCredentials(signal),
      ]);
    },
    leave: async () => {
      if (session === undefined || !parts.isCountedOn()) return;
      try {
        await farewell(helloParts);
      } catch (error) {
        log.warn('farewell_unanswered', { error });
      }
    },
    renewSession: () => stale.wake(),
    syncSoon: () => ring('all'),
    onContact,
    lastSyncMs: () => lastSyncMs,
    hasSession: () => session !== undefined,
  };
}

/** For the log alone: a request is followed by it from the gateway to here. */
function requestIdOf(data: Uint8Array): string | undefined {
  try {
    return decodeBell(data).rid ?? undefined;
  } catch {
    return undefined;
  }
}
