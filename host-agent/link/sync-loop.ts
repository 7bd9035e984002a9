/**
 * Keeps the desired set in step with its owners: asks when a doorbell rings, after a reconnect, and
 * from time to time, until every partition in the ask has answered.
 */
import { EventEmitter } from 'node:events';
import type { NatsConnection } from '@nats-io/transport-node';
import { backoffMs, jitter, type BackoffBounds } from '../../lib/time/backoff.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createNotify } from '../../lib/notify.ts';
import { limits } from '../../schemas/limits.ts';
import { incarnationOfEpoch } from '../../schemas/records/cluster.ts';
import type { Faults } from '../faults.ts';
import type { Metrics } from '../metrics.ts';
import type { Workload } from '../desired/workload.ts';
import type { Connection } from './connection.ts';
import type { Credentials } from './identity/credentials.ts';
import type { Lease } from './lease.ts';
import { sync, type SyncParts, type SyncResult } from './sync.ts';

interface SyncLoopEvents {
  /** A sync of all partitions is over: complete, or without any answer. */
  full: [];
  /** An owner's answer calls for another session. */
  renew: [];
}

export interface SyncLoop {
  readonly events: EventEmitter<SyncLoopEvents>;
  /** These partitions are due: asks at once. */
  ring(partitions: 'all' | readonly number[]): void;
  run(nc: NatsConnection, signal: AbortSignal): Promise<void>;
  /**
   * The time at which every partition last answered, in milliseconds since 1970; `null` before
   * that.
   */
  lastSyncMs(): number | null;
}

export interface SyncLoopParts extends Pick<SyncParts, 'sender' | 'members' | 'volumes' | 'log'> {
  readonly workload: SyncParts['workload'] & Pick<Workload, 'asked'>;
  readonly lease: SyncParts['lease'] & Pick<Lease, 'synced'>;
  readonly credentials: Pick<Credentials, 'signer'>;
  readonly faults: Pick<Faults, 'restate' | 'clear'>;
  readonly connection: Pick<Connection, 'asked' | 'heard'>;
  readonly syncMs: number;
  readonly retry: BackoffBounds;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, 'sync'>;
}

export function createSyncLoop(parts: SyncLoopParts): SyncLoop {
  const { workload, lease, connection, clock, metrics } = parts;
  const events = new EventEmitter<SyncLoopEvents>();
  const doorbell = createNotify();
  let due: Due = 'all';
  let lastSyncMs: number | null = null;
  let incarnation = 0;
  const ofSync: SyncParts = {
    ...parts,
    onSigner: (key) => {
      if (parts.credentials.signer(key)) events.emit('renew');
    },
    onIncarnation: (announced) => {
      // The cluster was restored: it has lost what it acknowledged since the backup, so the agent
      // reports everything again in a new session. This holds before the first answer too: the
      // cluster may have acknowledged reports by then.
      if (announced > incarnation) events.emit('renew');
      incarnation = Math.max(announced, incarnation);
    },
    onObeyed: noteObeyed(parts.faults),
  };

  /**
   * @returns `isDone`: every partition in the ask has answered; `isFull`: the ask was for all of
   * them
   */
  const syncOnce = async (nc: NatsConnection, signal: AbortSignal): Promise<{ isDone: boolean; isFull: boolean }> => {
    const asked = due;
    due = nothingDue;
    connection.asked();
    workload.asked();
    const only = asked === 'all' ? undefined : [...asked];
    const result = await sync(nc, ofSync, only, limits.syncTimeoutMs, signal);
    metrics.sync(result.kind);
    due = dueAfter(due, asked, result);
    const isDone = result.kind === 'complete';
    const isFull = asked === 'all';
    if (isDone || result.kind === 'partial') {
      lease.synced();
      connection.heard();
    }
    if (isDone && isFull) lastSyncMs = clock.nowMs();
    if (isFull && (isDone || result.kind === 'silent')) events.emit('full');
    return { isDone, isFull };
  };

  return {
    events,
    ring: (partitions) => {
      due = alsoDue(due, partitions);
      doorbell.notify();
    },
    run: async (nc, signal) => {
      let fullAtMs = clock.monotonicMs();
      for (let failures = 0; !signal.aborted;) {
        if (clock.monotonicMs() >= fullAtMs) due = 'all';
        if (!isDue(due)) {
          await doorbell.wait(fullAtMs - clock.monotonicMs(), signal);
          continue;
        }
        const { isDone, isFull } = await syncOnce(nc, signal);
        // Jittered, so that hosts do not sync in step.
        if (isDone && isFull) fullAtMs = clock.monotonicMs() + parts.syncMs * (0.75 + Math.random() / 2);
        failures = isDone ? 0 : failures + 1;
        // A doorbell ends the pause: the control plane is there.
        if (!isDone) await doorbell.wait(jitter(backoffMs(failures - 1, parts.retry)), signal);
      }
    },
    lastSyncMs: () => lastSyncMs,
  };
}

const behind = (epoch: number): string =>
  'this host ignores the control plane, which was restored by a machine whose clock was behind: restore again with ' +
  `--incarnation-above ${incarnationOfEpoch(epoch)}, or let this host forget (docs/runbook.md, "Host faults")`;

/** Raises the fault of a host that has seen higher epochs than those of its owners. */
export function noteObeyed(faults: Pick<Faults, 'restate' | 'clear'>): SyncParts['onObeyed'] {
  let syncsAhead = 0;
  return (ahead) => {
    syncsAhead = ahead === undefined ? 0 : syncsAhead + 1;
    if (ahead === undefined) faults.clear('control_plane_behind');
    // During a takeover a former owner may answer once more.
    else if (syncsAhead > 1) faults.restate('control_plane_behind', behind(ahead));
  };
}

/* The partitions of the next sync. Pure. */

export type Due = 'all' | ReadonlySet<number>;

export const nothingDue: Due = new Set();

export const isDue = (due: Due): boolean => due === 'all' || due.size > 0;

export const alsoDue = (due: Due, more: 'all' | Iterable<number>): Due =>
  due === 'all' || more === 'all' ? 'all' : new Set([...due, ...more]);

/**
 * @param due the partitions that became due during the sync
 * @param asked the partitions in the ask
 */
export function dueAfter(due: Due, asked: Due, result: SyncResult): Due {
  switch (result.kind) {
    case 'complete':
      return alsoDue(due, result.due);
    case 'partial':
      return alsoDue(due, result.missing);
    case 'silent':
      // Only the same partitions again: sixteen questions would not help an owner that is slow to
      // answer one.
      return alsoDue(due, asked);
    case 'refused':
      return 'all';
  }
}
