/**
 * Sessions: the control plane numbers the starts of an agent, and so recognises a report of an
 * earlier start as old.
 */
import { join } from 'node:path';
import Type from 'typebox';
import { backoffMs, jitter, sleep, type BackoffBounds } from '../../lib/time/backoff.ts';
import { decoder, messageDecoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import type { Capacity } from '../../schemas/api/host.ts';
import { limits } from '../../schemas/limits.ts';
import { HelloAnswer, type Hello } from '../../schemas/wire/host.ts';
import { subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { ProtocolError, spoken } from '../../schemas/wire/version.ts';
import type { Credentials } from './identity/credentials.ts';
import { createLazyFile, readDecoded } from '../disk/files.ts';
import type { StateDisk } from '../disk/state-disk.ts';
import type { Request } from './line.ts';

export type Greeting = Extract<HelloAnswer, { ok: true }>;

const decodeAnswer = messageDecoder(HelloAnswer);
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

export interface HelloParts {
  readonly sender: Sender;
  readonly cluster: string;
  readonly version: string;
  readonly capacity: () => Capacity;
  /** How long after losing contact every container has stopped; null: never. */
  readonly stopsAfterMs: () => number | null;
  readonly onFenced: () => void;
  readonly sessions: SessionNumber;
  readonly credentials: Pick<Credentials, 'renewKey' | 'renewed'>;
  /** The credentials are now of another signing key than those of the connection. */
  readonly onOtherSigner?: () => void;
  /** The session that this process holds. */
  readonly held: () => number | undefined;
  /**
   * Another agent with this identity started later and is at work; this agent asks again until that
   * one is silent.
   */
  readonly onSuperseded: (isSuperseded: boolean) => void;
  readonly request: Request;
  readonly backoff: BackoffBounds;
  readonly log: Log;
}

/**
 * Asks until it gets a session above every one that this host has used. Undefined when the signal
 * aborts first. A restored control plane answers with a low number; each further request raises it.
 */
export async function hello(parts: HelloParts, signal: AbortSignal): Promise<Greeting | undefined> {
  const { sessions, log } = parts;
  for (let attempt = 0; !signal.aborted; attempt++) {
    try {
      const answer = await ask(parts);
      const fault = faultOf(answer, parts.cluster, sessions.highest());
      if (answer.ok && fault === undefined) {
        sessions.used(answer.session);
        parts.onSuperseded(false);
        if (answer.jwt !== undefined && parts.credentials.renewed(answer.jwt)) parts.onOtherSigner?.();
        return answer;
      }
      if (!answer.ok && answer.error === 'fenced') parts.onFenced();
      if (!answer.ok && answer.error === 'superseded') parts.onSuperseded(true);
      else log.error('hello_refused', { why: fault, answer });
    } catch (error) {
      if (error instanceof ProtocolError) log.error('protocol_refused', { error });
      else log.debug('hello_unanswered', { error });
    }
    await sleep(jitter(backoffMs(attempt, parts.backoff)), signal);
  }
  return undefined;
}

function faultOf(answer: HelloAnswer, cluster: string, highest: number): string | undefined {
  if (!answer.ok) return answer.error;
  if (answer.cluster !== cluster) return 'another cluster answers: this host is enrolled in a different one';
  return answer.session <= highest ? `session ${answer.session} is not above ${highest}` : undefined;
}

/**
 * Says that this agent ends while its containers keep running: its silence no longer means that
 * they stopped. Rejects without an answer.
 */
export async function farewell(parts: HelloParts): Promise<void> {
  await ask({ ...parts, stopsAfterMs: () => null }, limits.farewellMs);
}

async function ask(parts: HelloParts, timeoutMs: number = limits.reportTimeoutMs): Promise<HelloAnswer> {
  const { sender, version, capacity, stopsAfterMs, held, sessions, credentials, request } = parts;
  const renewKey = credentials.renewKey();
  const session = held();
  const message: Hello = {
    v: 1,
    ...spoken,
    agent_version: version,
    capacity: capacity(),
    ...(session === undefined ? {} : { session }),
    highest_session: sessions.highest(),
    stops_after_ms: stopsAfterMs(),
    ...(renewKey === undefined ? {} : { renew_key: renewKey }),
  };
  return decodeAnswer(await request(subjects.hostHello(sender), JSON.stringify(message), timeoutMs));
}
