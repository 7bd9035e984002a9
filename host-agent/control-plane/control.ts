/**
 * The agent's side of the control plane: a session, the desired set, heartbeats. Each goes on by
 * itself when the connection comes back; without a connection the agent works from what it knows.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import Type from 'typebox';
import { Answers } from '../../lib/nats/answers.ts';
import { backoffMs, jitter, sleep, type BackoffBounds } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageDecoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import { ReportAnswer, type Beat, type Report } from '../../schemas/wire/host.ts';
import { partitionOf, subjects } from '../../schemas/wire/subjects.ts';
import { spoken } from '../../schemas/wire/version.ts';
import type { Credentials } from './credentials.ts';
import { createNotify } from '../../lib/notify.ts';
import type { Metrics } from '../metrics.ts';
import type { Reporter } from './reporter.ts';
import { askBound, farewell, hello, type HelloParts } from './session.ts';
import { sync, type SyncResult, type SyncTarget } from './sync.ts';
import type { Request } from './request.ts';

const decodeReportAnswer = messageDecoder(ReportAnswer);
const decodeBell = messageDecoder(
  Type.Object({ partition: Type.Integer(), rid: Type.Union([Type.String(), Type.Null()]) }),
);

export interface Control {
  /** Rejects while there is no connection. */
  readonly request: Request;
  /**
   * Serves until the signal aborts, or until the next connection is to be made with other
   * credentials. What is under way then ends with the connection.
   */
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
  readonly target: SyncTarget;
  /** A session was given. */
  readonly onGreeted: () => void;
  /** The control plane has answered. */
  readonly onContact: () => void;
  /**
   * Owners have said what this host should run: what was moved while this host was cut off is
   * known.
   */
  readonly onSynced: () => void;
  readonly hello: Omit<HelloParts, 'request' | 'held' | 'sender' | 'onUnknown' | 'credentials'> & {
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
  const { target, clock, answers, metrics, log } = parts;
  const { credentials } = parts.hello;
  const { sender } = credentials;
  const bell = createNotify();
  const stale = createNotify();
  const unknown = createNotify();
  /** On this connection. */
  const ownAnswers = new Answers(clock);
  let connection: NatsConnection | undefined;
  let session: number | undefined;
  let isGreeting = false;
  let lastSyncMs: number | null = null;
  /** What is to be asked for next: partitions that a bell named, or all. */
  let due: Set<number> | 'all' = 'all';

  const asked = (): void => {
    answers.asked();
    ownAnswers.asked();
  };
  const heard = (): void => {
    answers.heard();
    ownAnswers.heard();
  };
  const onContact = (): void => {
    parts.onContact();
    heard();
  };
  const request: Request = async (subject, payload, timeoutMs) => {
    if (connection === undefined) throw new Error('not connected');
    asked();
    const { data } = await connection.request(subject, payload, { timeout: timeoutMs });
    heard();
    return data;
  };

  const helloParts: HelloParts = {
    ...parts.hello,
    sender,
    request,
    held: () => session,
    onUnknown: () => unknown.notify(),
  };

  const ring = (partition: number | 'all'): void => {
    if (partition === 'all') due = 'all';
    else if (due !== 'all') due.add(partition);
    bell.notify();
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
      credentials.proved();
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
      const wanted = due;
      due = new Set();
      asked();
      const result = await sync(
        nc,
        target,
        wanted === 'all' ? undefined : [...wanted],
        log,
        limits.syncTimeoutMs,
        signal,
      );
      metrics.sync(result.kind);
      const isDone = takeResult(result, wanted);
      // Every host at its own time, and none in step with another.
      if (wanted === 'all' && (isDone || result.kind === 'silent')) void checkSession();
      if (isDone && wanted === 'all') fullAtMs = clock.monotonicMs() + parts.syncMs * (0.75 + Math.random() / 2);
      failures = isDone ? 0 : failures + 1;
      // A bell is a sign of life: no need to wait longer.
      if (!isDone) await bell.wait(jitter(backoffMs(failures - 1, parts.retry)), signal);
    }
  };
  const isDue = (): boolean => due === 'all' || due.size > 0;

  /** True: nothing is owed to us. What a bell named, and nobody answered for, stays due. */
  const takeResult = (result: SyncResult, wanted: typeof due): boolean => {
    switch (result.kind) {
      case 'complete':
        parts.onSynced();
        heard();
        if (wanted === 'all') lastSyncMs = clock.nowMs();
        if (due !== 'all') due = new Set([...due, ...result.due]);
        return true;
      case 'partial':
        parts.onSynced();
        heard();
        if (due !== 'all') due = new Set([...due, ...result.missing]);
        return false;
      case 'silent':
        // No more than was asked: whoever is slow to answer for one partition is not helped by
        // sixteen questions.
        due = due === 'all' || wanted === 'all' ? 'all' : new Set([...due, ...wanted]);
        return false;
      case 'refused':
        due = 'all';
        return false;
    }
  };

  /**
   * A host without news says nothing for long; asked with an empty report, the control plane tells
   * whose session it is. It tells an agent nothing else whose key is no longer the enrolled one.
   */
  const checkSession = async (): Promise<void> => {
    const { partitions } = target.current();
    if (session === undefined || partitions === null) return;
    const report: Report = { v: 1, ...spoken, partition: partitionOf(sender().host, partitions), session, items: [] };
    try {
      const payload = await request(subjects.hostReport(sender()), JSON.stringify(report), limits.reportTimeoutMs);
      const answer = decodeReportAnswer(payload);
      // An answer about an earlier session, or while another is on its way, is no news.
      const isCurrent = report.session === session && !isGreeting;
      if (isCurrent && !answer.ok && answer.error === 'stale_session') stale.notify();
    } catch (error) {
      log.debug('session_not_checked', { error });
    }
  };

  const keepBeating = async (nc: NatsConnection, signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      if (session !== undefined) {
        const beat: Beat = { v: 1, ...spoken, session, ...parts.beat() };
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
      ownAnswers.reconnected();
      ring('all');
      reporter.repeat();
    }
  };

  /** Credentials that come to their end are renewed by a new hello. */
  const keepCredentials = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      await sleep(credentials.checkEveryMs, signal);
      if (credentials.renewKey() !== undefined) stale.notify();
    }
  };

  /**
   * Much less than the shortest STOP_ON_DISCONNECT_MS: no container is stopped because credentials
   * were tried.
   */
  const trialMs = parts.syncMs / 2;
  /**
   * Credentials that were answered before are left later: the control plane is more likely to be
   * away.
   */
  const silentMs = (): number => (credentials.isOnTrial() ? trialMs : 2 * parts.syncMs);

  /**
   * @returns whether the next connection is to be made with bound credentials; undefined: there was
   * no answer
   */
  const offerBound = async (): Promise<boolean | undefined> => {
    const offer = await askBound(helloParts);
    if (offer === undefined) return undefined;
    // A refusal is no contact: the containers of a host that is not known may be placed elsewhere.
    if (offer.isKnown) onContact();
    if (credentials.offered(offer.jwt)) {
      // What is asked from here on is asked with them.
      connection = undefined;
      return true;
    }
    // A control plane from before 0.1.0 has counted that as the start of another session.
    if (offer.isKnown && session !== undefined) stale.notify();
    return false;
  };

  /**
   * At the start of a connection with unbound credentials: asked before anything else, for a while.
   */
  const offerBoundFirst = async (signal: AbortSignal): Promise<boolean | undefined> => {
    const untilMs = clock.monotonicMs() + trialMs;
    for (let attempt = 0; credentials.askBoundInMs() === 0 && !signal.aborted; attempt++) {
      const isOffered = await offerBound();
      if (isOffered !== undefined) return isOffered;
      if (clock.monotonicMs() >= untilMs) return undefined;
      await sleep(jitter(backoffMs(attempt, parts.retry)), signal);
    }
    return false;
  };

  /**
   * Resolves when the next connection is to be made with other credentials, or the signal aborts.
   */
  const watchBinding = async (nc: NatsConnection, signal: AbortSignal): Promise<void> => {
    for (let unanswered = 0; !signal.aborted;) {
      await sleep(Math.min(limits.natsSilenceLookMs, trialMs), signal);
      const askInMs = credentials.askBoundInMs();
      if (askInMs !== undefined) {
        await unknown.wait(askInMs + jitter(backoffMs(unanswered, parts.retry)), signal);
        const isOffered = signal.aborted ? false : await offerBound();
        if (isOffered === true) return;
        unanswered = isOffered === undefined ? unanswered + 1 : 0;
      } else if (credentials.hasFallback() && !nc.isClosed() && ownAnswers.silentMs() >= silentMs()) {
        log.error('bound_credentials_unanswered', { silentMs: Math.round(ownAnswers.silentMs()) });
        connection = undefined;
        credentials.fallBack();
        return;
      }
    }
  };

  const serve = async (nc: NatsConnection, reporter: Reporter, signal: AbortSignal): Promise<void> => {
    const ending = new AbortController();
    const serving = AbortSignal.any([signal, ending.signal]);
    hearBells(nc);
    void watchConnection(nc, reporter);
    await Promise.all([
      greet(reporter, serving),
      keepSynced(nc, serving),
      keepBeating(nc, serving),
      keepCredentials(serving),
      watchBinding(nc, serving).finally(() => ending.abort()),
    ]);
  };

  return {
    request,
    run: async (nc, reporter, signal) => {
      connection = nc;
      answers.reconnected();
      ownAnswers.reconnected();
      const isOffered = await offerBoundFirst(signal);
      if (isOffered === true) return;
      if (isOffered === undefined && credentials.returnToBound()) {
        connection = undefined;
        return;
      }
      await serve(nc, reporter, signal);
    },
    leave: async () => {
      if (session === undefined || !parts.isCountedOn()) return;
      try {
        await farewell(helloParts);
      } catch (error) {
        log.warn('farewell_unanswered', { error });
      }
    },
    renewSession: () => stale.notify(),
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
