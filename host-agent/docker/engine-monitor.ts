/**
 * Watches the engine: probes it at an interval, with a deadline, and reads its events while it
 * answers. While the engine is away the agent decides nothing; when it is back the agent reconciles
 * everything.
 */
import { backoffMs, jitter, sleep, withAbort, type BackoffBounds } from '../../lib/time/backoff.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import type { EngineEvent } from './answers.ts';
import type { Engine } from './engine.ts';
import { createNotify } from '../../lib/notify.ts';
import { type Owner, ownerLabels } from './ownership.ts';

/** Failed probes in a row before the engine counts as away: a busy machine may lose one. */
export const engineProbesFailed = 2;

export type EngineStatus =
  /** `watchedSinceMs` is by a clock that never steps. */
  | { readonly phase: 'up'; readonly version: string; readonly sinceMs: number; readonly watchedSinceMs: number }
  | { readonly phase: 'away'; readonly sinceMs: number };

export interface EngineMonitor {
  status(): EngineStatus;
  /** A call found the engine away or hanging: probe now. */
  suspect(): void;
  run(watcher: EngineWatcher, signal: AbortSignal): Promise<void>;
}

/** Is called when the engine comes, goes or changes. */
export interface EngineWatcher {
  /** The engine answers again: reconcile everything. Rejects if it goes away meanwhile. */
  readonly onUp: () => Promise<void>;
  readonly onAway: (sinceMs: number) => void;
  /** @param isWatched `true` if `onEvent` and `onChange` get every event from now on */
  readonly onWatched: (isWatched: boolean) => void;
  /** An event of a container of this host. */
  readonly onEvent: (event: EngineEvent) => void;
  /** An image or a network of the engine has changed. */
  readonly onChange: () => void;
}

interface MonitorParts {
  readonly engine: Engine;
  readonly owner: Owner;
  readonly probeIntervalMs: number;
  readonly backoff: BackoffBounds;
  readonly clock: Clock;
  readonly steadyMs: () => number;
  readonly log: Log;
}

export function createEngineMonitor(parts: MonitorParts): EngineMonitor {
  const { engine, clock, log } = parts;
  const doubt = createNotify();
  let status: EngineStatus = { phase: 'away', sinceMs: clock.nowMs() };
  let isDoubted = false;
  let isAwayTold = false;

  const goUp = (version: string): void => {
    log.info('engine_up', { engine: version });
    status = { phase: 'up', version, sinceMs: clock.nowMs(), watchedSinceMs: parts.steadyMs() };
    isAwayTold = false;
  };
  const goAway = (watcher: EngineWatcher, error: unknown): void => {
    if (isAwayTold) return;
    log.warn('engine_away', { error });
    if (status.phase === 'up') status = { phase: 'away', sinceMs: clock.nowMs() };
    isAwayTold = true;
    watcher.onAway(status.sinceMs);
  };

  const forward = async (events: AsyncIterable<EngineEvent>, onEvent: (event: EngineEvent) => void): Promise<never> => {
    for await (const event of events) onEvent(event);
    throw new Error('the event stream ended');
  };

  /** Rejects when the engine fails to answer; resolves when the signal aborts. */
  const watch = async (signal: AbortSignal): Promise<void> => {
    for (let failures = 0; !signal.aborted;) {
      if (!isDoubted) await doubt.wait(parts.probeIntervalMs, signal);
      isDoubted = false;
      try {
        await engine.probe(limits.engineProbeMs);
        failures = 0;
      } catch (error) {
        failures += 1;
        if (failures >= engineProbesFailed) throw error;
      }
    }
  };

  /**
   * Serves from the first answer until events or answers stop. It reads events before everything is
   * reconciled.
   */
  const attend = async (watcher: EngineWatcher, signal: AbortSignal, onLooked: () => void): Promise<void> => {
    try {
      const events = await engine.events(ownerLabels(parts.owner), signal);
      const changes = await engine.changes(signal);
      watcher.onWatched(true);
      const forwarding = Promise.race([forward(events, watcher.onEvent), forward(changes, watcher.onChange)]);
      forwarding.catch(() => undefined);
      await watcher.onUp();
      onLooked();
      await Promise.race([watch(signal), forwarding]);
    } finally {
      watcher.onWatched(false);
    }
  };

  return {
    status: () => status,
    suspect: () => {
      isDoubted = true;
      doubt.notify();
    },
    run: async (watcher, signal) => {
      for (let failures = 0; !signal.aborted; failures++) {
        try {
          const { version } = await engine.probe(limits.engineProbeMs);
          if (status.phase === 'away') goUp(version);
          // An engine that answers but cannot list its containers is asked again with growing
          // pauses.
          await withAbort([signal], (leaving) => attend(watcher, leaving.signal, () => (failures = 0)));
        } catch (error) {
          if (signal.aborted) return;
          // Only the event stream broke: the engine itself is there.
          const isThere = await engine.probe(limits.engineProbeMs).then(
            () => true,
            () => false,
          );
          if (isThere) log.warn('engine_events_lost', { error });
          else goAway(watcher, error);
        }
        await sleep(jitter(backoffMs(failures, parts.backoff)), signal);
      }
    },
  };
}
