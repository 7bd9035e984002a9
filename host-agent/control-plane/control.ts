/**
 * The agent's side of the control plane: session, desired set, heartbeats. Each resumes by itself
 * when the connection returns; without a connection the agent works from what it knows.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import Type from 'typebox';
import { sleep, type BackoffBounds } from '../../lib/time/backoff.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { messageDecoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import type { Answers } from '../../lib/nats/answers.ts';
import type { Beat } from '../../schemas/wire/host.ts';
import { subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { spoken } from '../../schemas/wire/version.ts';
import type { Metrics } from '../metrics.ts';
import type { Credentials } from './identity/credentials.ts';
import { createLine, type Request } from './line.ts';
import type { Reporter } from './reporter.ts';
import { createSessionLoop } from './session-loop.ts';
import { farewell, hello, type HelloParts } from './session.ts';
import { createSyncLoop } from './sync/sync-loop.ts';
import type { SyncTarget } from './sync/sync.ts';

const decodeDoorbell = messageDecoder(
  Type.Object({ partition: Type.Integer(), rid: Type.Union([Type.String(), Type.Null()]) }),
);

export interface Control {
  /** Rejects while there is no connection. */
  readonly request: Request;
  /** Serves until the signal aborts. Requests in flight end with the connection. */
  run(nc: NatsConnection, reporter: Reporter, signal: AbortSignal): Promise<void>;
  /** Announces the end of this agent where the control plane relies on it to stop containers. */
  leave(): Promise<void>;
  /** The control plane knows a newer session of this host: ask for another. */
  renewSession(): void;
  /** There are new strangers: ask about them now. */
  syncSoon(): void;
  /** The control plane has answered. */
  onContact(): void;
  lastSyncMs(): number | null;
  hasSession(): boolean;
}

export interface ControlParts {
  readonly sender: Sender;
  readonly target: SyncTarget;
  /** A session was given. */
  readonly onGreeted: () => void;
  /** The control plane has answered. */
  readonly onContact: () => void;
  /** An ask for what this host should run leaves. */
  readonly onAsk?: () => void;
  /** Owners have sent what this host should run, so it knows what moved while it was cut off. */
  readonly onSynced: () => void;
  readonly hello: Omit<HelloParts, 'request' | 'held' | 'onOtherSigner' | 'sender' | 'credentials' | 'backoff' | 'log'>;
  readonly credentials: Credentials;
  /** Serves the sessions that gateways open. Absent: this agent has none. */
  readonly sessions?: { serve(nc: NatsConnection, sender: Sender): void };
  readonly beat: () => Omit<Beat, 'v' | 'session'>;
  readonly beatMs: number;
  readonly syncMs: number;
  readonly retry: BackoffBounds;
  /** Whether silence of the control plane stops the containers. */
  readonly isCountedOn: () => boolean;
  readonly clock: Clock;
  /** Counts requests to the control plane, and its answers. */
  readonly answers: Answers;
  readonly metrics: Pick<Metrics, 'sync'>;
  readonly log: Log;
}

export function createControl(parts: ControlParts): Control {
  const { target, credentials, sender, retry, log } = parts;
  const line = createLine(parts.answers);
  const { request } = line;
  let reporter: Reporter | undefined;

  const onContact = (): void => {
    parts.onContact();
    line.heard();
  };
  const helloParts: HelloParts = {
    ...parts.hello,
    credentials,
    sender,
    request,
    backoff: retry,
    log,
    held: () => sessions.session(),
    // The server knows this connection by the earlier credentials, and ends it when their signing
    // key is revoked: all hosts at once. Here each connects again when it has others.
    onOtherSigner: () => void line.reopen().catch((error: unknown) => log.warn('not_reconnected', { error })),
  };
  const sessions = createSessionLoop({
    sender,
    request,
    hello: (signal) => hello(helloParts, signal),
    onGreeted: (greeting) => {
      parts.onGreeted();
      onContact();
      target.orphanWord(greeting.orphan_word);
      reporter?.restart({ session: greeting.session, partitions: greeting.partitions });
      syncs.ring('all');
    },
    log,
  });
  const syncs = createSyncLoop({
    ...parts,
    line,
    onFullSync: () => void sessions.check(target.current().partitions),
  });

  const serve = async (nc: NatsConnection, signal: AbortSignal): Promise<void> => {
    parts.sessions?.serve(nc, sender);
    hearDoorbells(nc, subjects.desiredOfHost(sender.host), syncs.ring, log);
    void watchReconnects(nc, () => {
      syncs.ring('all');
      reporter?.repeat();
    });
    const beat = (): void => {
      const session = sessions.session();
      if (session === undefined) return;
      const message: Beat = { v: 1, ...spoken, session, ...parts.beat() };
      try {
        nc.publish(subjects.hostBeat(sender), JSON.stringify(message));
      } catch (error) {
        log.debug('beat_not_sent', { error });
      }
    };
    await Promise.all([
      sessions.run(signal),
      syncs.run(nc, signal),
      keepBeating(beat, parts.beatMs, signal),
      keepCredentials(credentials, sessions.renew, signal),
    ]);
  };

  return {
    request,
    run: async (nc, reporting, signal) => {
      reporter = reporting;
      line.open(nc);
      await serve(nc, signal);
    },
    leave: async () => {
      if (sessions.session() === undefined || !parts.isCountedOn()) return;
      try {
        await farewell(helloParts);
      } catch (error) {
        log.warn('farewell_unanswered', { error });
      }
    },
    renewSession: sessions.renew,
    syncSoon: () => syncs.ring('all'),
    onContact,
    lastSyncMs: syncs.lastSyncMs,
    hasSession: () => sessions.session() !== undefined,
  };
}

function hearDoorbells(
  nc: NatsConnection,
  subject: string,
  ring: (partitions: 'all' | readonly number[]) => void,
  log: Log,
): void {
  nc.subscribe(subject, {
    callback: (error, message) => {
      if (error !== null) {
        log.warn('bell_subscription_failed', { error });
        return;
      }
      const partition = Number(message.subject.split('.')[2]);
      log.info('bell', { partition, requestId: requestIdOf(message.data) });
      ring(Number.isInteger(partition) && partition >= 0 ? [partition] : 'all');
    },
  });
}

/** For the log: the id that follows a request from the gateway to this host. */
function requestIdOf(data: Uint8Array): string | undefined {
  try {
    return decodeDoorbell(data).rid ?? undefined;
  } catch {
    return undefined;
  }
}

async function watchReconnects(nc: NatsConnection, onReconnect: () => void): Promise<void> {
  for await (const status of nc.status()) if (status.type === 'reconnect') onReconnect();
}

async function keepBeating(beat: () => void, everyMs: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    beat();
    // Not in step with other hosts, which may have connected in the same moment.
    await sleep(everyMs * (0.9 + Math.random() / 5), signal);
  }
}

/** A new hello renews credentials that are about to expire. */
async function keepCredentials(credentials: Credentials, renew: () => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(credentials.checkEveryMs, signal);
    if (credentials.renewKey() !== undefined) renew();
  }
}
