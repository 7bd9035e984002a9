/**
 * The agent's side of the control plane: session, desired set, heartbeats. Each resumes by itself
 * when the connection returns; without a connection the agent works from what it knows.
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
import type { Credentials } from './identity/credentials.ts';
import { createNotify } from '../../lib/notify.ts';
import type { Metrics } from '../metrics.ts';
import type { Reporter } from './reporter.ts';
import { askBound, farewell, hello, type HelloParts } from './session.ts';
import { sync, type SyncResult, type SyncTarget } from './sync/sync.ts';
import type { Request } from './line.ts';

const decodeReportAnswer = messageDecoder(ReportAnswer);
const decodeDoorbell = messageDecoder(
  Type.Object({ partition: Type.Integer(), rid: Type.Union([Type.String(), Type.Null()]) }),
);

export interface Control {
  /** Rejects while there is no connection. */
  readonly request: Request;
  /**
   * Serves until the signal aborts, or until other credentials need a new connection. Requests in
   * flight end with the connection.
   */
  run(nc: NatsConnection, reporter: Reporter, signal: AbortSignal): Promise<void>;
  /** Announces the end of this agent where the control plane relies on it to stop containers. */
  leave(): Promise<void>;
  /** The control plane knows a newer session of this host: ask for another. */
  renewSession(): void;
  /** There are new strangers: ask about them now. */
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
  /** Owners have sent what this host should run, so it knows what moved while it was cut off. */
  readonly onSynced: () => void;
  readonly hello: Omit<HelloParts, 'request' | 'held' | 'sender' | 'onUnknown' | 'credentials'> & {
    readonly credentials: Credentials;
  };
  readonly beat: () => Omit<Beat, 'v' | 'session'>;
  readonly beatMs: number;
  readonly syncMs: number;
  readonly retry: BackoffBounds;
  /** Whether silence of the control plane stops the containers. */
  readonly isCountedOn: () => boolean;
  readonly clock: Clock;
  /** Counts requests to the control plane, and its answers. */
  readonly answers: Answers;
  readonly metrics: Pick<Metrics, 'sync'>;
  readonly log: Log;
}

export function createControl(parts: ControlParts): Control {
  const { target, clock, answers, metrics, log } = parts;
  const { credentials } = parts.hello;
  const { sender } = credentials;
  const doorbell = createNotify();
  const stale = createNotify();
  const unknown = createNotify();
  /** Of this connection alone. */
  const ownAnswers = new Answers(clock);
  let connection: NatsConnection | undefined;
  let session: number | undefined;
  let isGreeting = false;
  let lastSyncMs: number | null = null;
  /** The next sync asks for these partitions, or for all. */
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
    doorbell.notify();
  };

  const hearDoorbells = (nc: NatsConnection): void => {
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
        await doorbell.wait(fullAtMs - clock.monotonicMs(), signal);
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
      // Jittered, so that hosts do not sync in step.
      if (wanted === 'all' && (isDone || result.kind === 'silent')) void checkSession();
      if (isDone && wanted === 'all') fullAtMs = clock.monotonicMs() + parts.syncMs * (0.75 + Math.random() / 2);
      failures = isDone ? 0 : failures + 1;
      // A doorbell ends the pause: the control plane is there.
      if (!isDone) await doorbell.wait(jitter(backoffMs(failures - 1, parts.retry)), signal);
    }
  };
  const isDue = (): boolean => due === 'all' || due.size > 0;

  /** True: every partition answered. Partitions without an answer stay due. */
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
        // Only what was asked: sixteen questions would not help an owner that is slow to answer
        // one.
        due = due === 'all' || wanted === 'all' ? 'all' : new Set([...due, ...wanted]);
        return false;
      case 'refused':
        due = 'all';
        return false;
    }
  };

  /**
   * A host without news sends no reports for a long time; the answer to an empty one says whether
   * its session is still current. An agent whose key is no longer enrolled gets no other answer.
   */
  const checkSession = async (): Promise<void> => {
    const { partitions } = target.current();
    if (session === undefined || partitions === null) return;
    const report: Report = { v: 1, ...spoken, partition: partitionOf(sender().host, partitions), session, items: [] };
    try {
      const payload = await request(subjects.hostReport(sender()), JSON.stringify(report), limits.reportTimeoutMs);
      const answer = decodeReportAnswer(payload);
      // Ignore an answer about an earlier session, or one that comes while a new session is
      // requested.
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

  /** A new hello renews credentials that are about to expire. */
  const keepCredentials = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      await sleep(credentials.checkEveryMs, signal);
      if (credentials.renewKey() !== undefined) stale.notify();
    }
  };

  /**
   * Much less than the shortest STOP_ON_DISCONNECT_MS, so that a trial of credentials stops no
   * container.
   */
  const trialMs = parts.syncMs / 2;
  /** Credentials that worked before get more time: the control plane is more likely to be away. */
  const silentMs = (): number => (credentials.isOnTrial() ? trialMs : 2 * parts.syncMs);

  /** @returns whether the next connection uses bound credentials; undefined: there was no answer */
  const offerBound = async (): Promise<boolean | undefined> => {
    const offer = await askBound(helloParts);
    if (offer === undefined) return undefined;
    // A refusal is no contact: the containers of an unknown host may be placed elsewhere.
    if (offer.isKnown) onContact();
    if (credentials.offered(offer.jwt)) {
      // Later requests use the new credentials.
      connection = undefined;
      return true;
    }
    // A control plane from before 0.1.0 has started another session for that hello.
    if (offer.isKnown && session !== undefined) stale.notify();
    return false;
  };

  /**
   * At the start of a connection with unbound credentials, asks for bound ones first, for a limited
   * time.
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

  /** Resolves when other credentials need a new connection, or when the signal aborts. */
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
    hearDoorbells(nc);
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

/** For the log: the id that follows a request from the gateway to this host. */
function requestIdOf(data: Uint8Array): string | undefined {
  try {
    return decodeDoorbell(data).rid ?? undefined;
  } catch {
    return undefined;
  }
}
