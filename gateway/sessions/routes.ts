/**
 * Sessions: over WebSocket, a process in a container and a connection to one of its ports; and a
 * process whose output is an answer.
 */
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import { timestamp } from '../../lib/time/timestamp.ts';
import type { Tunnel } from '../../lib/tunnel/tunnel.ts';
import type { SessionProtocol } from '../../schemas/api/sessions/control.ts';
import { limits } from '../../schemas/limits.ts';
import { loggedEnd, type SessionAbout, type SessionEnd } from '../../schemas/wire/session.ts';
import type { Log } from '../../lib/log.ts';
import type { AskOwner } from '../../lib/rpc/partition-client.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { AuditNotes } from '../audit/notes.ts';
import { succeeded, tenantOf, type Call, type CallOf, type Handled, type HandlerOf, type Handlers } from '../call.ts';
import { everyAnswer, failure } from '../http/respond.ts';
import { judgeHandshake } from './handshake.ts';
import { Bridge, type Passed } from './bridge.ts';
import { refusalOf } from './close.ts';
import { execFraming, forwardFraming, type Framing } from './framing.ts';
import { Run } from './runs.ts';
import type { Sessions } from './sessions.ts';

export interface SessionRoutesOptions {
  readonly ask: AskOwner;
  readonly sessions: Pick<Sessions, 'open' | 'withPermit' | 'stillGood'>;
  readonly notes: Pick<AuditNotes, 'begin' | 'noteLater'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Routes that go on with WebSocket. */
export type SessionRoute = 'container.exec' | 'container.forward' | 'container.run';

const nothingPassed = { bytesIn: 0, bytesOut: 0, exitCode: null };

interface Session {
  readonly kind: 'exec' | 'forward' | 'run';
  readonly about: Pick<SessionAbout, 'exec' | 'forward'>;
  /** `undefined` if it goes on without WebSocket. */
  readonly protocol: SessionProtocol | undefined;
  /** Joins the client to the tunnel, until the session is over. */
  readonly join: (tunnel: Tunnel, isStillGood: () => boolean) => Promise<Joined>;
}

interface Joined extends Passed {
  readonly handled: Handled;
}

/** Every refusal is an answer over HTTP; after the handshake there are reasons of its close. */
async function open(options: SessionRoutesOptions, call: CallOf<SessionRoute>, session: Session): Promise<Handled> {
  const { exchange, identity } = call;
  if (identity === undefined) return failure('unauthenticated');
  const container = { tenant: tenantOf(call), id: call.params.id };
  const question = { type: 'container.session', ...container, ...call.origin } as const;
  const outcome = await options.ask('read', question, call.deadlineMs);
  if (outcome.code === 'not_found') return outcome;
  const { protocol } = session;
  const misfit = protocol && judgeHandshake(exchange.handshake, protocol);
  if (misfit !== undefined) return misfit;
  if (!succeeded(outcome)) return outcome;
  const { data: place } = decodeAnswer('container.session', outcome.body);
  return options.sessions.withPermit(call, container.tenant, () =>
    hold(options, call, session, { ...container, placement: place.placement, ...session.about }, place),
  );
}

async function hold(
  { sessions, notes, clock, log }: SessionRoutesOptions,
  call: CallOf<SessionRoute>,
  { kind, join }: Session,
  about: SessionAbout,
  place: Parameters<Sessions['open']>[0],
): Promise<Handled> {
  const { identity, requestId, origin, cause } = call;
  if (identity === undefined || cause === undefined) return failure('unauthenticated');
  const { tenant, id } = about;
  const target = about.forward === undefined ? cause.target : { ...cause.target, port: String(about.forward.port) };
  const session = { ...cause, target };
  // Before the session begins: none is open that the audit does not have.
  const refusal = await notes.begin(tenant, session, cause, call);
  if (refusal !== undefined) return refusal;
  const startedAtMs = clock.nowMs();
  const ended = (end: SessionEnd, { bytesIn, bytesOut, exitCode }: Omit<Passed, 'end'>): void => {
    const summary = {
      started_at: timestamp(startedAtMs),
      bytes_in: bytesIn,
      bytes_out: bytesOut,
      exit_code: exitCode,
      reason: end.reason,
    };
    notes.noteLater(
      tenant,
      { ...session, action: `${cause.action}.ended`, outcome: 'done', detail: { session: summary } },
      origin,
    );
  };
  const opening = await sessions.open(place, about);
  if (!opening.ok) {
    ended(opening.end, nothingPassed);
    return refusalOf(opening.end);
  }
  const { tunnel } = opening;
  const isStillGood = (): boolean => sessions.stillGood(identity);
  const { subject, tokenName } = identity;
  const fields = { kind, tenant, container: id, host: place.host, subject, token: tokenName, requestId };
  log.info('session_opened', fields);
  const startedMs = clock.monotonicMs();
  const { handled, end, ...passed } = await join(tunnel, isStillGood);
  const { bytesIn, bytesOut } = passed;
  ended(end, passed);
  const ms = Math.round(clock.monotonicMs() - startedMs);
  log.info('session_ended', { ...fields, ms, bytes_in: bytesIn, bytes_out: bytesOut, ...loggedEnd(end) });
  return handled;
}

/** Goes on over WebSocket. */
const overSocket =
  ({ clock }: SessionRoutesOptions, { exchange, requestId }: Call, framing: Framing): Session['join'] =>
  async (tunnel, isStillGood) => {
    const bridge = new Bridge({ tunnel, framing, clock, isStillGood });
    const socket = isStillGood() ? exchange.upgrade(framing.protocol, everyAnswer(requestId), bridge) : undefined;
    if (socket !== undefined) return { ...(await bridge.pass(socket)), handled: 'streamed' };
    const end = { reason: 'left', message: 'the client has left' } as const;
    tunnel.end(end);
    return { end, ...nothingPassed, handled: failure('unauthenticated') };
  };

/** Answers when the process has ended. */
const asAnswer =
  ({ clock }: SessionRoutesOptions, { exchange }: Call, timeoutMs: number): Session['join'] =>
  async (tunnel, isStillGood) => {
    const process = new Run({ tunnel, clock, timeoutMs, isStillGood });
    exchange.onAborted(() => process.leave());
    const { answer: handled, ...passed } = await process.pass();
    return { ...passed, handled };
  };

export function sessionRoutes(options: SessionRoutesOptions) {
  const exec: HandlerOf<'container.exec'> = (call) => {
    const { command, tty, stdin, user, workdir } = call.query;
    const about = {
      command: [...command],
      tty,
      stdin,
      ...(user === undefined ? {} : { user }),
      ...(workdir === undefined ? {} : { workdir }),
    };
    const framing = execFraming(about);
    const join = overSocket(options, call, framing);
    return open(options, call, { kind: 'exec', about: { exec: about }, protocol: framing.protocol, join });
  };
  const forward: HandlerOf<'container.forward'> = (call) => {
    const about = { forward: { port: call.query.port } };
    const join = overSocket(options, call, forwardFraming);
    return open(options, call, { kind: 'forward', about, protocol: forwardFraming.protocol, join });
  };
  const run: HandlerOf<'container.run'> = (call) => {
    const { command, timeout = limits.waitDefaultSeconds } = call.body;
    const about = { exec: { command: [...command], tty: false, stdin: false } };
    const join = asAnswer(options, call, timeout * 1000);
    return open(options, call, { kind: 'run', about, protocol: undefined, join });
  };
  return { 'container.exec': exec, 'container.forward': forward, 'container.run': run } satisfies Partial<Handlers>;
}
