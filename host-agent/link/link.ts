/**
 * The link to the control plane: session, desired set, heartbeats. Each resumes by itself when the
 * connection returns; without a connection the agent works from its last known state.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import Type from 'typebox';
import { messageDecoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { every } from '../../lib/time/every.ts';
import type { Beat } from '../../schemas/wire/host.ts';
import { subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { protocolFields } from '../../schemas/wire/version.ts';
import type { Connection } from './connection.ts';
import type { Credentials } from './identity/credentials.ts';
import type { Lease } from './lease.ts';
import type { Reporter } from './reporter.ts';
import { createSession, type Session, type SessionParts } from './session.ts';
import { createSyncLoop, type SyncLoopParts } from './sync-loop.ts';

const decodeDoorbell = messageDecoder(
  Type.Object({ partition: Type.Integer(), rid: Type.Union([Type.String(), Type.Null()]) }),
);

export interface Link {
  readonly events: Session['events'];
  /** Serves until the signal aborts. Requests in flight end with the connection. */
  run(nc: NatsConnection, signal: AbortSignal): Promise<void>;
  /** Announces the end of this agent where the control plane relies on it to stop containers. */
  leave(): Promise<void>;
  /** There are new strangers: asks about them at once. */
  syncSoon(): void;
  lastSyncMs(): number | null;
  hasSession(): boolean;
}

export interface LinkParts extends SessionParts, SyncLoopParts {
  readonly connection: Connection;
  readonly credentials: Credentials;
  readonly lease: SessionParts['lease'] & SyncLoopParts['lease'] & Pick<Lease, 'events' | 'greeted' | 'heard'>;
  readonly reporter: Pick<Reporter, 'events' | 'restart' | 'repeat'>;
  /** Serves the sessions that gateways open. Absent if this agent has none. */
  readonly serveSessions?: (nc: NatsConnection, sender: Sender) => void;
  readonly beat: () => Omit<Beat, 'v' | 'session'>;
  readonly beatMs: number;
  /** `true` if silence of the control plane stops the containers. */
  readonly isCountedOn: () => boolean;
}

export function createLink(parts: LinkParts): Link {
  const { workload, lease, reporter, credentials, sender, log } = parts;
  const session = createSession(parts);
  const syncs = createSyncLoop(parts);

  session.events.on('greeted', ({ session, partitions, orphan_word }) => {
    lease.greeted();
    lease.heard();
    workload.approveOrphans(orphan_word);
    reporter.restart({ session, partitions });
    syncs.ring('all');
  });
  syncs.events.on('full', () => void session.check(workload.desired().partitions));
  syncs.events.on('renew', session.renew);
  lease.events.on('fenced', session.renew);
  reporter.events.on('stale', session.renew);

  const beat = (nc: NatsConnection): void => {
    const current = session.current();
    if (current === undefined) return;
    const message: Beat = { v: 1, ...protocolFields, session: current, ...parts.beat() };
    try {
      nc.publish(subjects.hostBeat(sender), JSON.stringify(message));
    } catch (error) {
      log.debug('heartbeat_send_failed', { error });
    }
  };

  return {
    events: session.events,
    run: async (nc, signal) => {
      parts.serveSessions?.(nc, sender);
      subscribeDoorbells(nc, subjects.desiredOfHost(sender.host), syncs.ring, log);
      void watchReconnects(nc, () => {
        syncs.ring('all');
        reporter.repeat();
      });
      // A new hello renews credentials that are about to expire.
      const renew = (): void => {
        if (credentials.renewKey() !== undefined) session.renew();
      };
      const running = Promise.all([session.run(signal), syncs.run(nc, signal)]);
      beat(nc);
      await Promise.all([
        running,
        // Not in step with other hosts, which may have connected in the same moment.
        every(
          () => parts.beatMs * (0.9 + Math.random() / 5),
          () => beat(nc),
          signal,
        ),
        every(() => credentials.checkEveryMs, renew, signal),
      ]);
    },
    leave: async () => {
      if (session.current() === undefined || !parts.isCountedOn()) return;
      try {
        await session.leave();
      } catch (error) {
        log.warn('session_leave_failed', { error });
      }
    },
    syncSoon: () => syncs.ring('all'),
    lastSyncMs: syncs.lastSyncMs,
    hasSession: () => session.current() !== undefined,
  };
}

function subscribeDoorbells(
  nc: NatsConnection,
  subject: string,
  ring: (partitions: 'all' | readonly number[]) => void,
  log: Log,
): void {
  nc.subscribe(subject, {
    callback: (error, message) => {
      if (error !== null) {
        log.warn('doorbell_subscription_failed', { error });
        return;
      }
      const partition = Number(message.subject.split('.')[2]);
      log.info('doorbell_received', { partition, requestId: requestIdOf(message.data) });
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
