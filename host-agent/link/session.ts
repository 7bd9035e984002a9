/**
 * Sessions: the control plane numbers the starts of an agent, and so recognises a report of an
 * earlier start as old. The agent asks for one on each connection, and again when it is no longer
 * current.
 */
import { EventEmitter } from 'node:events';
import { join } from 'node:path';
import Type from 'typebox';
import { jittered, type BackoffBounds } from '../../lib/time/backoff.ts';
import { retry } from '../../lib/time/retry.ts';
import { decoder, messageDecoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { createNotify } from '../../lib/notify.ts';
import type { Capacity } from '../../schemas/api/host.ts';
import { limits } from '../../schemas/limits.ts';
import { HelloAnswer, ReportAnswer, type Hello, type Report } from '../../schemas/wire/host.ts';
import { partitionOf, subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { ProtocolError, protocolFields } from '../../schemas/wire/version.ts';
import type { Credentials } from './identity/credentials.ts';
import { createLazyFile, readDecoded } from '../disk/files.ts';
import type { StateDisk } from '../disk/state-disk.ts';
import type { Connection } from './connection.ts';
import type { Lease } from './lease.ts';

export type Greeting = Extract<HelloAnswer, { ok: true }>;

const decodeAnswer = messageDecoder(HelloAnswer);
const decodeReportAnswer = messageDecoder(ReportAnswer);
const decodeHighest = decoder(Type.Object({ v: Type.Literal(1), session: Type.Integer({ minimum: 0 }) }));

/**
 * The highest session that this host has used. The value in memory counts; the file serves the next
 * start.
 */
export interface SessionNumber {
  highest(): number;
  used(session: number): void;
  flush(): Promise<void>;
}

export async function loadSessionNumber(stateDir: string, disk: StateDisk, log: Log): Promise<SessionNumber> {
  const path = join(stateDir, 'session.json');
  let highest = (await readDecoded(path, decodeHighest, log))?.session ?? 0;
  const file = createLazyFile(path, () => JSON.stringify({ v: 1, session: highest }), 0, disk);
  return {
    highest: () => highest,
    used: (session) => {
      highest = session;
      file.touch();
    },
    flush: () => file.flush(),
  };
}

export interface SessionParts {
  readonly sender: Sender;
  readonly cluster: string;
  readonly version: string;
  readonly capacity: () => Capacity;
  /** The time after losing contact at which every container has stopped; `null` means never. */
  readonly stopsAfterMs: () => number | null;
  readonly lease: Pick<Lease, 'fenced' | 'superseded'>;
  readonly sessions: SessionNumber;
  readonly credentials: Pick<Credentials, 'renewKey' | 'renewed'>;
  readonly connection: Pick<Connection, 'request' | 'reopen'>;
  readonly retry: BackoffBounds;
  readonly log: Log;
}

/**
 * Asks until it gets a session above every one that this host has used. `undefined` if the signal
 * aborts first. A restored control plane answers with a low number; each further request raises it.
 */
export async function hello(
  parts: SessionParts,
  held: number | undefined,
  signal: AbortSignal,
): Promise<Greeting | undefined> {
  const { sessions, lease, connection, log } = parts;
  const helloOnce = async (): Promise<Greeting | undefined> => {
    const answer = await ask(parts, held);
    const fault = faultOf(answer, parts.cluster, sessions.highest());
    if (answer.ok && fault === undefined) {
      sessions.used(answer.session);
      lease.superseded(false);
      // The server knows this connection by the earlier credentials, and ends it when their signing
      // key is revoked: all hosts at once. Here each connects again when it has others.
      if (answer.jwt !== undefined && parts.credentials.renewed(answer.jwt))
        void connection.reopen().catch((error: unknown) => log.warn('connection_reopen_failed', { error }));
      return answer;
    }
    if (!answer.ok && answer.error === 'fenced') lease.fenced();
    if (!answer.ok && answer.error === 'superseded') lease.superseded(true);
    else log.error('hello_refused', { why: fault, answer });
    return undefined;
  };
  const onFailure = (error: unknown): void => {
    if (error instanceof ProtocolError) log.error('protocol_refused', { error });
    else log.debug('hello_request_failed', { error });
  };
  return retry(helloOnce, { pauseMs: jittered(parts.retry), signal, onFailure });
}

function faultOf(answer: HelloAnswer, cluster: string, highest: number): string | undefined {
  if (!answer.ok) return answer.error;
  if (answer.cluster !== cluster) return 'another cluster answers: this host is enrolled in a different one';
  return answer.session <= highest ? `session ${answer.session} is not above ${highest}` : undefined;
}

async function ask(
  { sender, version, capacity, stopsAfterMs, sessions, credentials, connection }: SessionParts,
  held: number | undefined,
  timeoutMs: number = limits.reportTimeoutMs,
): Promise<HelloAnswer> {
  const renewKey = credentials.renewKey();
  const message: Hello = {
    v: 1,
    ...protocolFields,
    agent_version: version,
    capacity: capacity(),
    ...(held === undefined ? {} : { session: held }),
    highest_session: sessions.highest(),
    stops_after_ms: stopsAfterMs(),
    ...(renewKey === undefined ? {} : { renew_key: renewKey }),
  };
  return decodeAnswer(await connection.request(subjects.hostHello(sender), JSON.stringify(message), timeoutMs));
}

type Held =
  | { readonly phase: 'none' }
  | { readonly phase: 'current'; readonly session: number }
  /** The agent is asking for another session. */
  | { readonly phase: 'renewing'; readonly session: number };

interface SessionEvents {
  /** The control plane gave a session. */
  greeted: [greeting: Greeting];
}

export interface Session {
  readonly events: EventEmitter<SessionEvents>;
  run(signal: AbortSignal): Promise<void>;
  /** `undefined` before the first. */
  current(): number | undefined;
  /** The session may be old: asks for another. */
  renew(): void;
  /**
   * Checks whether the session is still current, by an empty report: a host without news sends no
   * reports for a long time. An agent whose key is no longer enrolled gets no other answer.
   */
  check(partitions: number | null): Promise<void>;
  /**
   * Announces that this agent ends while its containers keep running: its silence no longer means
   * that they stopped. Rejects without an answer.
   */
  leave(): Promise<void>;
}

export function createSession(parts: SessionParts): Session {
  const { sender, connection, log } = parts;
  const events = new EventEmitter<SessionEvents>();
  const stale = createNotify();
  let held: Held = { phase: 'none' };
  const current = (): number | undefined => (held.phase === 'none' ? undefined : held.session);

  return {
    events,
    run: async (signal) => {
      while (!signal.aborted) {
        if (held.phase === 'current') held = { phase: 'renewing', session: held.session };
        const greeting = await hello(parts, current(), signal);
        if (greeting === undefined) return;
        const { session } = greeting;
        held = { phase: 'current', session };
        log.info('session_started', { session, partitions: greeting.partitions });
        events.emit('greeted', greeting);
        await stale.wait(undefined, signal);
        if (!signal.aborted) log.info('session_renewing', { session });
      }
    },
    current,
    renew: () => stale.notify(),
    check: async (partitions) => {
      if (held.phase === 'none' || partitions === null) return;
      const asked = held.session;
      const partition = partitionOf(sender.host, partitions);
      const report: Report = { v: 1, ...protocolFields, partition, session: asked, items: [] };
      try {
        const subject = subjects.hostReport(sender);
        const payload = await connection.request(subject, JSON.stringify(report), limits.reportTimeoutMs);
        const answer = decodeReportAnswer(payload);
        // An answer about an earlier session, or while a new one is requested, proves nothing.
        const isCurrent = held.phase === 'current' && held.session === asked;
        if (isCurrent && !answer.ok && answer.error === 'stale_session') stale.notify();
      } catch (error) {
        log.debug('session_check_failed', { error });
      }
    },
    leave: async () => {
      await ask({ ...parts, stopsAfterMs: () => null }, current(), limits.farewellMs);
    },
  };
}
