/** A session: the control plane numbers the starts of an agent, so that a report of an earlier one is known as old. */
import { join } from 'node:path';
import Type from 'typebox';
import { backoffMs, jitter, sleep, type BackoffBounds } from '../lib/backoff.ts';
import { decoder } from '../lib/decode.ts';
import type { Log } from '../lib/log.ts';
import type { Capacity } from '../schemas/host.ts';
import type { HostKey } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import { HelloAnswer, type Hello } from '../schemas/messages.ts';
import { subjects } from '../schemas/subjects.ts';
import type { Credentials } from './credentials.ts';
import { readDecoded, writeAtomically } from './files.ts';
import type { Request } from './logs/publish.ts';

export type Greeting = Extract<HelloAnswer, { ok: true }>;

const decodeAnswer = decoder(HelloAnswer);
const decodeHighest = decoder(Type.Object({ v: Type.Literal(1), session: Type.Integer({ minimum: 0 }) }));

export interface HelloParts {
  readonly host: HostKey;
  readonly cluster: string;
  readonly version: string;
  readonly capacity: () => Capacity;
  readonly stateDir: string;
  readonly credentials: Pick<Credentials, 'renewKey' | 'renewed'>;
  readonly request: Request;
  readonly backoff: BackoffBounds;
  readonly log: Log;
}

/**
 * Asks until there is a session above every one that this host has used. Undefined when the signal aborts first. A
 * control plane that was set back answers with a low number; asking again raises it.
 */
export async function hello(parts: HelloParts, signal: AbortSignal): Promise<Greeting | undefined> {
  const { log } = parts;
  const path = join(parts.stateDir, 'session.json');
  const highest = (await readDecoded(path, decodeHighest, log))?.session ?? 0;
  for (let attempt = 0; !signal.aborted; attempt++) {
    try {
      const answer = await ask(parts);
      const fault = faultOf(answer, parts.cluster, highest);
      if (answer.ok && fault === undefined) {
        await writeAtomically(path, JSON.stringify({ v: 1, session: answer.session }));
        if (answer.jwt !== undefined) await parts.credentials.renewed(answer.jwt);
        return answer;
      }
      log.error('hello_refused', { why: fault, answer });
    } catch (error) {
      log.debug('hello_unanswered', { error });
    }
    await sleep(jitter(backoffMs(attempt, parts.backoff)), signal);
  }
  return undefined;
}

function faultOf(answer: HelloAnswer, cluster: string, highest: number): string | undefined {
  if (!answer.ok) return answer.error;
  if (answer.cluster !== cluster) return 'another cluster answers: this host was enrolled in a different one';
  return answer.session <= highest ? `session ${answer.session} is not above ${highest}` : undefined;
}

async function ask({ host, version, capacity, credentials, request }: HelloParts): Promise<HelloAnswer> {
  const renewKey = credentials.renewKey();
  const message: Hello = {
    v: 1,
    agent_version: version,
    capacity: capacity(),
    ...(renewKey === undefined ? {} : { renew_key: renewKey }),
  };
  return decodeAnswer(await request(subjects.hostHello(host), JSON.stringify(message), limits.reportTimeoutMs));
}
