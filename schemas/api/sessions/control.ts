/** Sessions as clients see them: exec and forward over WebSocket. */
import Type, { type Static } from 'typebox';
import { limits } from '../../limits.ts';
import type { SessionReason } from '../../wire/session.ts';
import type { execProtocol, forwardProtocol } from '../../words.ts';

export type SessionProtocol = typeof execProtocol | typeof forwardProtocol;

/** Signals that a client may send to the process of an exec. */
export const execSignals = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGTERM',
  'SIGKILL',
  'SIGUSR1',
  'SIGUSR2',
  'SIGTSTP',
  'SIGCONT',
] as const;
export type ExecSignal = (typeof execSignals)[number];

const Size = Type.Integer({ minimum: 1, maximum: limits.terminalSize });

/** Control messages of a client. `end`: it sends no more bytes. */
export const ClientControl = Type.Union([
  Type.Object({ type: Type.Literal('resize'), cols: Size, rows: Size }, { additionalProperties: false }),
  Type.Object({ type: Type.Literal('signal'), signal: Type.Enum([...execSignals]) }, { additionalProperties: false }),
  Type.Object({ type: Type.Literal('end') }, { additionalProperties: false }),
]);
export type ClientControl = Static<typeof ClientControl>;

/** Control messages of a host. The gateway itself adds `window`. */
export const HostControl = Type.Union([
  /**
   * The process has begun. `ends_process`: it is killed when the session ends; false where the
   * agent does not see the processes of its engine.
   */
  Type.Object({ type: Type.Literal('started'), ends_process: Type.Boolean() }),
  Type.Object({ type: Type.Literal('exit'), code: Type.Integer() }),
  /** The host sends no more bytes. */
  Type.Object({ type: Type.Literal('end') }),
  /** A control message of the client could not be carried out. */
  Type.Object({ type: Type.Literal('error'), message: Type.String() }),
]);
export type HostControl = Static<typeof HostControl>;

/** The code with which a WebSocket is closed, by the reason (RFC 6455 section 7.4). */
export const closeCodes: Readonly<Record<SessionReason, number>> = {
  done: 1000,
  left: 1000,
  stopping: 1001,
  invalid: 1008,
  over_window: 1009,
  failed: 1011,
  unauthenticated: 4401,
  idle: 4408,
  not_running: 4409,
  too_many: 4429,
  unsupported: 4501,
  refused: 4502,
  lost: 4503,
};
