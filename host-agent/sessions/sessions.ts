/**
 * The sessions that gateways open at this host (ADR 39). A ring has no content: the agent asks for
 * the subject of the session, finds the container, and lets the kind of the session handle it.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import type { Clock } from '../../lib/time/clock.ts';
import { messageDecoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import type { Tunnel, TunnelPort } from '../../lib/tunnel/tunnel.ts';
import { Tunnels } from '../../lib/tunnel/tunnels.ts';
import type { Permit, Permits, NoPermit } from '../../lib/permits.ts';
import {
  isSessionId,
  loggedEnd,
  SessionAnswer,
  type SessionAbout,
  type SessionAsk,
  type SessionEnd,
} from '../../schemas/wire/session.ts';
import { subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { protocolFields } from '../../schemas/wire/version.ts';
import type { Request } from '../link/connection.ts';
import type { Metrics } from '../metrics.ts';
import { loggedFault, sessionFault } from './faults.ts';
import type { SessionTarget } from './target.ts';

/** Requests under way of one agent: anyone who can make it hear a ring could cause them. */
export const sessionFetches = 32;

/** The timeout of an agent's request for the subject of a session. */
const sessionFetchMs = 3000;

const decodeAnswer = messageDecoder(SessionAnswer);

/** Handles sessions of one kind. */
export interface SessionKind {
  /** The name in the log and the metrics. */
  readonly name: string;
  isOf(about: SessionAbout): boolean;
  /** The bounds for this host and for each container; kinds may share them. */
  readonly permits: Permits;
  /** The level at which the end of such a session is logged. */
  readonly logLevel: 'info' | 'debug';
  /**
   * Prepares the session; it is open once its port is there. The port's `onEnd` is called whatever
   * happens later. Rejects if it cannot be opened.
   */
  open(target: SessionTarget, about: SessionAbout, tunnel: Tunnel): Promise<TunnelPort | SessionEnd>;
}

export interface SessionsParts {
  readonly kinds: readonly SessionKind[];
  readonly targetOf: (about: SessionAbout) => Promise<SessionTarget | SessionEnd>;
  readonly request: Request;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, 'tunnelOpened' | 'tunnelEnded'>;
  readonly log: Log;
}

export interface Sessions {
  /** Serves the rings of this connection until it is closed. */
  serve(nc: NatsConnection, agent: Sender): void;
  readonly count: () => number;
  /** Ends every session now, and opens no more. */
  stop(): void;
}

/**
 * The messages of a gateway in a tunnel that came before the agent knew the subject of the session.
 */
interface Early {
  readonly messages: Uint8Array[];
}

export function createSessions(parts: SessionsParts): Sessions {
  const { kinds, request, clock, metrics, log } = parts;
  const tunnels = new Tunnels();
  const open = new Map<string, Tunnel>();
  const early = new Map<string, Early>();
  let isStopping = false;

  const fetchAbout = async (agent: Sender, session: string): Promise<SessionAnswer> => {
    const ask: SessionAsk = { v: 1, ...protocolFields, session };
    return decodeAnswer(await request(subjects.hostSession(agent), JSON.stringify(ask), sessionFetchMs));
  };

  const takeUp = async (about: SessionAbout, kind: SessionKind, tunnel: Tunnel): Promise<void> => {
    try {
      const target = await parts.targetOf(about);
      const port = 'reason' in target ? target : await kind.open(target, about, tunnel);
      if ('reason' in port) tunnel.end(port);
      else tunnel.attach(port);
    } catch (error) {
      log.warn('session_failed', { kind: kind.name, container: about.id, ...loggedFault(error) });
      tunnel.end({ reason: 'failed', message: `the host could not open the session: ${sessionFault(error)}` });
    }
  };

  const begin = (nc: NatsConnection, agent: Sender, session: string, { gateway, about }: SessionAnswer): void => {
    const kind = kinds.find((one) => one.isOf(about));
    const name = kind?.name ?? 'unknown';
    const subject = subjects.tunnel(gateway, agent, session);
    let permit: Permit | NoPermit | undefined;
    const tunnel = tunnels.add({
      publish: (message) => nc.publish(subject, message),
      clock,
      onEnded: (end) => {
        open.delete(session);
        if (typeof permit === 'object') permit.release();
        metrics.tunnelEnded(name, end.reason);
        const { tenant, id: container } = about;
        log[kind?.logLevel ?? 'info']('session_ended', { kind: name, tenant, container, ...loggedEnd(end) });
      },
    });
    open.set(session, tunnel);
    metrics.tunnelOpened(name);
    for (const message of early.get(session)?.messages ?? []) tunnel.receive(message);
    early.delete(session);
    if (tunnel.ended !== undefined) return;
    if (kind === undefined) {
      tunnel.end({ reason: 'unsupported', message: 'the agent of this host has no such sessions: upgrade it' });
    } else if (isStopping) {
      tunnel.end({ reason: 'stopping', message: 'the agent of the host stops' });
    } else {
      const { inAll, perClient } = kind.permits.bounds;
      permit = kind.permits.take(about.id);
      if (permit === 'full') {
        tunnel.end({ reason: 'too_many', message: `the host has ${inAll} sessions; close one` });
      } else if (typeof permit === 'string') {
        tunnel.end({ reason: 'too_many', message: `the container has ${perClient} sessions; close one` });
      } else void takeUp(about, kind, tunnel);
    }
  };

  const ring = async (nc: NatsConnection, agent: Sender, session: string): Promise<void> => {
    // A flood of rings makes the agent ask no more often than this.
    if (isStopping || early.size >= sessionFetches) return;
    early.set(session, { messages: [] });
    try {
      const answer = await fetchAbout(agent, session);
      begin(nc, agent, session, answer);
    } catch (error) {
      log.debug('session_fetch_failed', { error });
    } finally {
      early.delete(session);
    }
  };

  const onMessage = (nc: NatsConnection, agent: Sender, session: string, content: Uint8Array): void => {
    const tunnel = open.get(session);
    if (tunnel !== undefined) tunnel.receive(content);
    else if (content.length > 0) keepEarly(early.get(session), content);
    else if (isSessionId(session) && !early.has(session)) void ring(nc, agent, session);
  };

  return {
    serve: (nc, agent) => {
      nc.subscribe(subjects.sessionsOfHost(agent), {
        callback: (error, { subject, data }) => {
          if (error === null) onMessage(nc, agent, subject.slice(subject.lastIndexOf('.') + 1), data);
          else log.warn('sessions_subscription_failed', { error });
        },
      });
      void endWhenCut(nc, tunnels);
    },
    count: () => tunnels.count,
    stop: () => {
      isStopping = true;
      tunnels.endAll({ reason: 'stopping', message: 'the agent of the host stops' });
    },
  };
}

/**
 * Before it is open, a gateway sends beats and perhaps the end; of more than that, the tunnel
 * misses one and ends.
 */
function keepEarly(early: Early | undefined, content: Uint8Array): void {
  if (early !== undefined && early.messages.length < earlyMessages) early.messages.push(content);
}
const earlyMessages = 8;

/** Messages under way when a connection breaks or is closed may be lost, so its tunnels end. */
async function endWhenCut(nc: NatsConnection, tunnels: Tunnels): Promise<void> {
  const lost = { reason: 'lost', message: 'the host lost its connection to NATS' } as const;
  for await (const { type } of nc.status()) if (type === 'disconnect') tunnels.endAll(lost);
  tunnels.endAll(lost);
}
