/** Sessions over WebSocket: a process in a container, and a connection to one of its ports. */
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import { timestamp } from '../../lib/time/timestamp.ts';
import type { SessionAbout, SessionEnd } from '../../schemas/wire/session.ts';
import type { Log } from '../../lib/log.ts';
import type { AskOwner } from '../../lib/rpc/partition-client.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { AuditNotes } from '../audit/notes.ts';
import { succeeded, tenantOf, type CallOf, type Handled, type HandlerOf, type Handlers } from '../call.ts';
import { everyAnswer, failure } from '../http/respond.ts';
import { judgeHandshake } from './handshake.ts';
import { Bridge, type Passed } from './bridge.ts';
import { refusalOf } from './close.ts';
import { execFraming, forwardFraming, type Framing } from './framing.ts';
import type { Sessions } from './sessions.ts';

export interface SessionRoutesOptions {
  readonly ask: AskOwner;
  readonly sessions: Pick<Sessions, 'open' | 'withPlace' | 'stillGood'>;
  readonly notes: Pick<AuditNotes, 'note' | 'noteLater' | 'leaves'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Routes that go on with WebSocket. */
export type SessionRoute = 'container.exec' | 'container.forward';

const notAudited = failure('unavailable', 'the audit could not take a line about this session; try again');
const nothingPassed = { bytesIn: 0, bytesOut: 0, exitCode: null };

interface Session {
  readonly kind: 'exec' | 'forward';
  readonly about: Pick<SessionAbout, 'exec' | 'forward'>;
  readonly framing: Framing;
}

/** Every refusal is an answer over HTTP; after the handshake there are reasons of its close. */
async function open(options: SessionRoutesOptions, call: CallOf<SessionRoute>, session: Session): Promise<Handled> {
  const { exchange, identity } = call;
  if (identity === undefined) return failure('unauthenticated');
  const container = { tenant: tenantOf(call), id: call.params.id };
  const question = { type: 'container.session', ...container, ...call.origin } as const;
  const outcome = await options.ask('read', question, call.deadlineMs);
  if (outcome.code === 'not_found') return outcome;
  const misfit = judgeHandshake(exchange.handshake, session.framing.protocol);
  if (misfit !== undefined) return misfit;
  if (!succeeded(outcome)) return outcome;
  const { data: place } = decodeAnswer('container.session', outcome.body);
  return options.sessions.withPlace(call, container.tenant, () =>
    run(options, call, session, { ...container, placement: place.placement, ...session.about }, place),
  );
}

async function run(
  { sessions, notes, clock, log }: SessionRoutesOptions,
  call: CallOf<SessionRoute>,
  { kind, framing }: Session,
  about: SessionAbout,
  place: Parameters<Sessions['open']>[0],
): Promise<Handled> {
  const { exchange, identity, requestId, origin, cause } = call;
  if (identity === undefined || cause === undefined) return failure('unauthenticated');
  const { tenant, id } = about;
  const target = about.forward === undefined ? cause.target : { ...cause.target, port: String(about.forward.port) };
  const session = { ...cause, target };
  // Before the session begins: none is open that the audit does not have.
  if (!(await notes.note(tenant, { ...session, outcome: 'done', detail: null }, call))) return notAudited;
  notes.leaves(cause);
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
  const bridge = new Bridge({ tunnel, framing, clock, isStillGood });
  const socket = isStillGood() ? exchange.upgrade(framing.protocol, everyAnswer(requestId), bridge) : undefined;
  if (socket === undefined) {
    const end = { reason: 'left', message: 'the client has left' } as const;
    tunnel.end(end);
    ended(end, nothingPassed);
    return failure('unauthenticated');
  }
  const { subject, tokenName } = identity;
  const fields = { kind, tenant, container: id, host: place.host, subject, token: tokenName, requestId };
  log.info('session_opened', fields);
  const startedMs = clock.monotonicMs();
  const passed = await bridge.pass(socket);
  const { end, bytesIn, bytesOut } = passed;
  ended(end, passed);
  const ms = Math.round(clock.monotonicMs() - startedMs);
  log.info('session_ended', { ...fields, ms, bytes_in: bytesIn, bytes_out: bytesOut, ...end });
  return 'streamed';
}

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
    return open(options, call, { kind: 'exec', about: { exec: about }, framing: execFraming(about) });
  };
  const forward: HandlerOf<'container.forward'> = (call) =>
    open(options, call, { kind: 'forward', about: { forward: { port: call.query.port } }, framing: forwardFraming });
  return { 'container.exec': exec, 'container.forward': forward } satisfies Partial<Handlers>;
}
