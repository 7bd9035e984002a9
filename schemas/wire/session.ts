/**
 * Sessions between a gateway and a host (ADR 39).
 *
 * The gateway rings at `session.<host>.<user key>.<session>`, without content. The agent asks for
 * what the session is about (`agent.<host>.<user key>.session`), so that it acts only on the answer
 * to its own request, and says on the tunnel that the session is open. From there on both send
 * tunnel.ts: the gateway where it rang, the agent at
 * `tunnel.<gateway>.<host>.<user key>.<session>`.
 */
import Type, { type Static } from 'typebox';
import { ContainerStats } from '../api/usage/stats.ts';
import { ContainerId, TenantId } from '../ids.ts';
import { limits } from '../limits.ts';

const Protocol = Type.Optional(Type.Integer());

/** The 128 random bits of a session's id. Nobody can speak or listen without it. */
export const sessionIdPattern = '^[A-Za-z0-9_-]{22}$';
const isId = new RegExp(sessionIdPattern);
export const isSessionId = (text: string): boolean => isId.test(text);

export const SessionAsk = Type.Object({
  v: Type.Literal(1),
  protocol: Protocol,
  session: Type.String({ pattern: sessionIdPattern }),
});
export type SessionAsk = Static<typeof SessionAsk>;

/** The container that a session is about, as its owner placed it on the host. */
const containerFields = {
  tenant: TenantId,
  id: ContainerId,
  /** The generation of its placement (Placement.since). */
  placement: Type.Integer({ minimum: 0 }),
};

/** A process in the container. */
export const ExecAbout = Type.Object({
  command: Type.Array(Type.String({ maxLength: limits.execArgumentChars }), {
    minItems: 1,
    maxItems: limits.execArguments,
  }),
  tty: Type.Boolean(),
  stdin: Type.Boolean(),
  /** If absent, those of the container. */
  user: Type.Optional(Type.String({ maxLength: limits.execUserChars })),
  workdir: Type.Optional(Type.String({ maxLength: limits.execWorkdirChars })),
});
export type ExecAbout = Static<typeof ExecAbout>;

/** A connection to a TCP port of the container. */
export const ForwardAbout = Type.Object({ port: Type.Integer({ minimum: 1, maximum: 65535 }) });
export type ForwardAbout = Static<typeof ForwardAbout>;

/** Resources in use, once a second: the host sends a `StatsMessage` for each sample. */
export const StatsAbout = Type.Object({});

/** A control message of the tunnel. A later release may say more. */
export const StatsMessage = Type.Object({
  type: Type.Literal('stats'),
  stats: Type.Object(ContainerStats.properties),
});
export type StatsMessage = Static<typeof StatsMessage>;

/** Each kind of session has its own field; an agent refuses one that has none that it knows. */
export const SessionAbout = Type.Object({
  ...containerFields,
  exec: Type.Optional(ExecAbout),
  forward: Type.Optional(ForwardAbout),
  stats: Type.Optional(StatsAbout),
});
export type SessionAbout = Static<typeof SessionAbout>;

export const SessionAnswer = Type.Object({
  v: Type.Literal(1),
  protocol: Protocol,
  /** The token of the tunnel's subject, at which this gateway listens. */
  gateway: Type.String({ pattern: '^[A-Z2-7]{1,64}$' }),
  about: SessionAbout,
});
export type SessionAnswer = Static<typeof SessionAnswer>;

/**
 * Reasons for the end of a session, or for none being opened. An end that does not know the reason
 * of the other takes it for `failed`.
 */
export const sessionReasons = [
  /** Its purpose is fulfilled. */
  'done',
  /** The client has left. */
  'left',
  /** The token has expired or was revoked. */
  'unauthenticated',
  'idle',
  /** A program at one of its ends stops. */
  'stopping',
  /** The container does not run here, or has ended. */
  'not_running',
  /** The container, the host or the gateway has as many sessions as it may have. */
  'too_many',
  /** Nobody listens on the port, or the command can't be started. */
  'refused',
  /** This release of the agent has no such sessions. */
  'unsupported',
  /** An end broke the rules of the protocol. */
  'invalid',
  /** More was sent than the window allows. */
  'over_window',
  /** A message between the ends was lost, or one of them is gone. */
  'lost',
  'failed',
] as const;
export type SessionReason = (typeof sessionReasons)[number];

export const SessionEnd = Type.Object({
  reason: Type.String({ maxLength: 64 }),
  /** In words, for people. */
  message: Type.Optional(Type.String({ maxLength: limits.sessionReasonChars })),
});
export interface SessionEnd {
  readonly reason: SessionReason;
  readonly message?: string;
}

/** As a log has it: the words about a wrong message may quote what somebody typed. */
export const loggedEnd = ({ reason, message }: SessionEnd): SessionEnd =>
  reason === 'invalid' || message === undefined ? { reason } : { reason, message };

const known: ReadonlySet<string> = new Set(sessionReasons);
export const sessionReasonOf = (text: string): SessionReason => (known.has(text) ? (text as SessionReason) : 'failed');
