/** Keeps a session: asks for one on each connection, and again when it is no longer current. */
import { messageDecoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { createNotify } from '../../lib/notify.ts';
import { limits } from '../../schemas/limits.ts';
import { ReportAnswer, type Report } from '../../schemas/wire/host.ts';
import { partitionOf, subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { spoken } from '../../schemas/wire/version.ts';
import type { Request } from './line.ts';
import type { Greeting } from './session.ts';

const decodeReportAnswer = messageDecoder(ReportAnswer);

type Held =
  | { readonly phase: 'none' }
  | { readonly phase: 'current'; readonly session: number }
  /** The agent asks for another. */
  | { readonly phase: 'renewing'; readonly session: number };

export interface SessionLoop {
  run(signal: AbortSignal): Promise<void>;
  /** Undefined before the first. */
  session(): number | undefined;
  /** The session may be old: ask for another. */
  renew(): void;
  /**
   * A host without news sends no reports for a long time; the answer to an empty one says whether
   * its session is still current. An agent whose key is no longer enrolled gets no other answer.
   */
  check(partitions: number | null): Promise<void>;
}

export interface SessionLoopParts {
  readonly sender: Sender;
  readonly request: Request;
  /** Asks until it gets a session. Undefined: the signal aborted first. */
  readonly hello: (signal: AbortSignal) => Promise<Greeting | undefined>;
  readonly onGreeted: (greeting: Greeting) => void;
  readonly log: Log;
}

export function createSessionLoop(parts: SessionLoopParts): SessionLoop {
  const { sender, request, log } = parts;
  const stale = createNotify();
  let held: Held = { phase: 'none' };

  return {
    run: async (signal) => {
      while (!signal.aborted) {
        if (held.phase === 'current') held = { phase: 'renewing', session: held.session };
        const greeting = await parts.hello(signal);
        if (greeting === undefined) return;
        const { session } = greeting;
        held = { phase: 'current', session };
        log.info('session', { session, partitions: greeting.partitions });
        parts.onGreeted(greeting);
        await stale.wait(undefined, signal);
        if (!signal.aborted) log.info('session_again', { session });
      }
    },
    session: () => (held.phase === 'none' ? undefined : held.session),
    renew: () => stale.notify(),
    check: async (partitions) => {
      if (held.phase === 'none' || partitions === null) return;
      const asked = held.session;
      const partition = partitionOf(sender.host, partitions);
      const report: Report = { v: 1, ...spoken, partition, session: asked, items: [] };
      try {
        const payload = await request(subjects.hostReport(sender), JSON.stringify(report), limits.reportTimeoutMs);
        const answer = decodeReportAnswer(payload);
        // An answer about an earlier session, or while a new one is requested, says nothing.
        const isCurrent = held.phase === 'current' && held.session === asked;
        if (isCurrent && !answer.ok && answer.error === 'stale_session') stale.notify();
      } catch (error) {
        log.debug('session_not_checked', { error });
      }
    },
  };
}
