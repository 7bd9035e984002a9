/**
 * The sessions that this gateway opens at hosts (ADR 39): it rings at the agent, tells the agent
 * that asks what the session is about, and holds this end of the tunnel.
 */
import { randomBytes } from 'node:crypto';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import type { Clock } from '../../lib/time/clock.ts';
import { DecodeError, messageDecoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { userOf } from '../../lib/nats/inbox.ts';
import { rateLimitedLog, type RateLimitedLog } from '../../lib/rate-limited-log.ts';
import type { Tunnel } from '../../lib/tunnel/tunnel.ts';
import { Tunnels } from '../../lib/tunnel/tunnels.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { SessionPlace } from '../../schemas/wire/answers.ts';
import { SessionAsk, type SessionAbout, type SessionAnswer, type SessionEnd } from '../../schemas/wire/session.ts';
import { anySender, senderOfSubject, subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { ProtocolError, protocolFields } from '../../schemas/wire/version.ts';
import type { Identity } from '../auth/claims.ts';
import { noPermitFor } from '../http/refusals.ts';
import type { Result } from '../http/respond.ts';
import { Permits } from '../../lib/permits.ts';

/** From the ring at the host to its word that the session is open. */
const sessionOpenMs = 5000;
/** The time between two rings while the agent does not ask. */
const sessionRingMs = 1000;
/** 128 random bits: nobody guesses the id of a session. */
const sessionIdBytes = 16;

const decodeAsk = messageDecoder(SessionAsk);

export type Opening = { readonly ok: true; readonly tunnel: Tunnel } | { readonly ok: false; readonly end: SessionEnd };

/** A session that an agent has not asked for yet. */
interface Rung {
  readonly agent: Sender;
  readonly about: SessionAbout;
}

interface Line {
  readonly nc: NatsConnection;
  /** The token of this gateway's subjects. */
  readonly token: string;
}

const away = (message: string): Opening => ({ ok: false, end: { reason: 'lost', message } });
const noRights = away(
  'the NATS credentials of this gateway do not permit sessions; its operator runs nats-keys again (docs/upgrades.md)',
);

const noPermit = noPermitFor('sessions');

export interface SessionsParts {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly log: Log;
  /** True while the token that opened a session is valid. */
  readonly stillGood: (identity: Identity) => boolean;
}

export class Sessions {
  readonly #clock: SessionsParts['clock'];
  readonly #log: Log;
  readonly #refusals: RateLimitedLog;
  readonly stillGood: SessionsParts['stillGood'];
  readonly #tunnels = new Tunnels();
  /** Of clients; what the gateway itself opens needs none. */
  readonly #permits = new Permits({
    inAll: limits.sessions,
    perClient: limits.sessions,
    perTenant: limits.sessionsPerTenant,
  });
  readonly #rung = new Map<string, Rung>();
  #line: Line | 'no rights' | undefined;
  #isStopping = false;

  constructor({ clock, log, stillGood }: SessionsParts) {
    this.stillGood = stillGood;
    this.#clock = clock;
    this.#log = log;
    this.#refusals = rateLimitedLog(log, limits.refusalLogMs, clock);
  }

  get count(): number {
    return this.#tunnels.count;
  }

  /** From now on sessions go over this connection. */
  serve(nc: NatsConnection): void {
    const token = userOf(nc);
    this.#line = token === undefined ? 'no rights' : { nc, token };
    nc.subscribe(subjects.hostSession(anySender), {
      callback: (error, message) => {
        if (error === null) {
          this.#answer(message);
          return;
        }
        this.#line = 'no rights';
        this.#log.warn('sessions_subscription_failed', { error });
      },
    });
    void this.#watch(nc);
  }

  /** Ends all sessions if the connection breaks: messages in flight may be lost. */
  async #watch(nc: NatsConnection): Promise<void> {
    for await (const { type } of nc.status()) {
      if (type === 'disconnect') this.#endAll({ reason: 'lost', message: 'the gateway lost its connection to NATS' });
    }
  }

  /** Ends every session now, and opens no more. */
  stop(): void {
    this.#isStopping = true;
    this.#endAll({ reason: 'stopping', message: 'the gateway is stopping' });
  }

  #endAll(end: SessionEnd): void {
    this.#tunnels.endAll(end);
  }

  /** Holds a permit of the tenant while `work` runs; a refusal if there is none. */
  async withPermit<T>(
    { client, releasePermit }: { readonly client: string; readonly releasePermit: () => void },
    tenant: TenantId,
    work: () => Promise<T>,
  ): Promise<T | Result> {
    const permit = this.#permits.takeFor(client, tenant);
    if (typeof permit === 'string') return noPermit[permit];
    releasePermit();
    try {
      return await work();
    } finally {
      permit.release();
    }
  }

  /**
   * Resolves when the agent has taken the session up or refused it, or has not answered in time.
   * Nothing passes before a port is attached to the tunnel.
   */
  open({ host, agent: user }: SessionPlace, about: SessionAbout): Promise<Opening> {
    const line = this.#line;
    if (line === 'no rights') return Promise.resolve(noRights);
    if (line === undefined || line.nc.isClosed() || this.#isStopping)
      return Promise.resolve(away('this gateway is not ready'));
    const { nc, token } = line;
    const id = randomBytes(sessionIdBytes).toString('base64url');
    const agent: Sender = { host, user };
    const subject = subjects.session(agent, id);
    this.#rung.set(id, { agent, about });
    // Without content: the agent acts only on the answer to its own request. A ring may be lost.
    const ring = (): void => {
      if (this.#rung.has(id) && !nc.isClosed()) nc.publish(subject);
    };
    return new Promise((resolve) => {
      const ringing = setInterval(ring, sessionRingMs);
      const timer = setTimeout(() => tunnel.end(silent), sessionOpenMs);
      const settle = (opening: Opening): void => {
        clearInterval(ringing);
        clearTimeout(timer);
        this.#rung.delete(id);
        resolve(opening);
      };
      const tunnel = this.#tunnels.add({
        publish: (message) => nc.publish(subject, message),
        clock: this.#clock,
        onOpened: () => settle({ ok: true, tunnel }),
        onEnded: (end) => {
          subscription.unsubscribe();
          settle({ ok: false, end });
        },
      });
      const subscription = nc.subscribe(subjects.tunnel(token, agent, id), {
        callback: (error, { data }) => {
          if (error === null) tunnel.receive(data);
          else tunnel.end({ reason: 'lost', message: 'NATS refuses the tunnel of the session' });
        },
      });
      ring();
    });
  }

  /**
   * Answers each session once, and only the agent at which it was rung: the NATS server vouches for
   * the host and the key in the subject (A7). Other gateways hold the others.
   */
  #answer(message: Msg): void {
    if (this.#line === undefined || this.#line === 'no rights') return;
    try {
      const { session } = decodeAsk(message.data);
      const rung = this.#rung.get(session);
      if (rung === undefined) return;
      const { host, user } = senderOfSubject(message.subject);
      if (host !== rung.agent.host || user !== rung.agent.user) {
        this.#refusals.warn('session_ask_refused', { subject: message.subject });
        return;
      }
      this.#rung.delete(session);
      const answer: SessionAnswer = { v: 1, ...protocolFields, gateway: this.#line.token, about: rung.about };
      message.respond(JSON.stringify(answer));
    } catch (error) {
      if (!(error instanceof DecodeError || error instanceof ProtocolError)) throw error;
      this.#refusals.warn('session_ask_refused', { subject: message.subject, error });
    }
  }
}

const silent: SessionEnd = {
  reason: 'lost',
  message: `the host did not answer within ${sessionOpenMs / 1000} seconds; its agent may be away`,
};
