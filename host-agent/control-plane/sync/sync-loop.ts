/**
 * Keeps the desired set in step with its owners: asks when a doorbell rings, after a reconnect, and
 * from time to time, until every partition in the ask has answered.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { backoffMs, jitter, type BackoffBounds } from '../../../lib/time/backoff.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import type { Log } from '../../../lib/log.ts';
import { createNotify } from '../../../lib/notify.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Metrics } from '../../metrics.ts';
import type { Line } from '../line.ts';
import { alsoDue, dueAfter, isDue, nothingDue, type Due } from './due.ts';
import { sync, type SyncTarget } from './sync.ts';

export interface SyncLoop {
  /** These partitions are due: ask now. */
  ring(partitions: 'all' | readonly number[]): void;
  run(nc: NatsConnection, signal: AbortSignal): Promise<void>;
  /** When every partition last answered; null before that. */
  lastSyncMs(): number | null;
}

export interface SyncLoopParts {
  readonly target: SyncTarget;
  readonly line: Pick<Line, 'asked' | 'heard'>;
  readonly syncMs: number;
  readonly retry: BackoffBounds;
  /** An ask leaves. */
  readonly onAsk?: () => void;
  /** An owner has answered. */
  readonly onSynced: () => void;
  /** A sync of all partitions is over: complete, or without any answer. */
  readonly onFullSync: () => void;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, 'sync'>;
  readonly log: Log;
}

export function createSyncLoop(parts: SyncLoopParts): SyncLoop {
  const { target, line, clock, metrics, log } = parts;
  const doorbell = createNotify();
  let due: Due = 'all';
  let lastSyncMs: number | null = null;

  /** @returns whether every partition in the ask has answered */
  const syncOnce = async (nc: NatsConnection, signal: AbortSignal): Promise<{ isDone: boolean; isFull: boolean }> => {
    const asked = due;
    due = nothingDue;
    line.asked();
    parts.onAsk?.();
    const only = asked === 'all' ? undefined : [...asked];
    const result = await sync(nc, target, only, log, limits.syncTimeoutMs, signal);
    metrics.sync(result.kind);
    due = dueAfter(due, asked, result);
    const isDone = result.kind === 'complete';
    const isFull = asked === 'all';
    if (isDone || result.kind === 'partial') {
      parts.onSynced();
      line.heard();
    }
    if (isDone && isFull) lastSyncMs = clock.nowMs();
    if (isFull && (isDone || result.kind === 'silent')) parts.onFullSync();
    return { isDone, isFull };
  };

  return {
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
