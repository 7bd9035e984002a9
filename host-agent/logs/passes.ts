/**
 * Passes over the logs of this host's containers: from the engine's files where this program can
 * read them, and otherwise through the engine.
 */
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import { createSemaphore } from '../../lib/semaphore.ts';
import { limits } from '../../schemas/limits.ts';
import type { Engine } from '../docker/engine.ts';
import { detailOf } from '../docker/errors.ts';
import type { LogReadFrom, LossCause, Metrics } from '../metrics.ts';
import { filePass } from './files/follow.ts';
import { isUnreadable } from './files/ring.ts';
import { enginePass, type Sink } from './pass.ts';
import type { Cursor } from './resume.ts';
import type { LogSource } from './source.ts';

export interface PassOrder {
  readonly source: LogSource;
  readonly dockerId: string;
  /** The line to resume after. */
  readonly cursor: () => Cursor;
  readonly sink: Sink;
  readonly advance: (cursor: Cursor) => void;
  /** The cause of lines that are lost now. */
  readonly lossCause: () => LossCause;
  /** Is called with the cause that delays a pass over files, at each change. */
  readonly onHeldUp: (cause: LossCause | undefined) => void;
  /** A pass through the engine continues for as long as the container runs. */
  readonly follow: boolean;
  /** A pass over files continues until this aborts, and then to their end. */
  readonly ending: AbortSignal;
  readonly signal: AbortSignal;
}

/** The log was read to its end, or a pass through the engine has ended with this result. */
export type PassEnd =
  | { readonly kind: 'whole' }
  | { readonly kind: 'asked'; readonly lines: number; readonly heldUpBy: LossCause | undefined };

export interface PassParts {
  readonly engine: Pick<Engine, 'logs'>;
  /**
   * The path of a container's log, by the engine's id; `undefined` if the engine is on another
   * machine, or its files cannot be read.
   */
  readonly logPath: (dockerId: string) => string | undefined;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly metrics: Pick<Metrics, 'logGaps' | 'logDamaged' | 'logFollowers'>;
  readonly log: Log;
}

/** @throws EngineError, also if the container is gone */
export type RunPass = (order: PassOrder) => Promise<PassEnd>;

export function createPasses({ engine, logPath, clock, metrics, log }: PassParts): RunPass {
  const openings = createSemaphore(limits.logReadersOpening);
  let isRefusalLogged = false;

  const optionsOf = (order: PassOrder) => {
    const { source, lossCause } = order;
    const onGaps = (count: number): void => {
      const cause = lossCause();
      metrics.logGaps(cause, count);
      log.warn('log_gap', { ...source, cause, why: 'the engine rotated its log before it was captured' });
    };
    return { ...order, cursor: order.cursor(), nowMs: clock.nowMs(), openings, onGaps };
  };

  const onDamaged = (source: LogSource) => (records: number) => {
    metrics.logDamaged(records);
    log.warn('log_records_damaged', { ...source, records });
  };

  const noteUnreadable = (error: unknown): void => {
    if (isRefusalLogged) return;
    isRefusalLogged = true;
    log.warn('log_files_unreadable', { why: detailOf(error), instead: 'logs are read through the engine' });
  };

  const counted = async <T>(from: LogReadFrom, work: () => Promise<T>): Promise<T> => {
    metrics.logFollowers(from, 1);
    try {
      return await work();
    } finally {
      metrics.logFollowers(from, -1);
    }
  };

  return async (order) => {
    const path = logPath(order.dockerId);
    let unreadable: unknown;
    if (path !== undefined) {
      try {
        await counted('files', () => filePass({ ...optionsOf(order), path, onDamaged: onDamaged(order.source) }));
        return { kind: 'whole' };
      } catch (error) {
        if (!isUnreadable(error)) throw error;
        unreadable = error;
      }
    }
    // Files that vanished with their container are no news: the engine does not know it either.
    const onAnswer = (): void => {
      if (unreadable !== undefined) noteUnreadable(unreadable);
    };
    const { lines, heldUpBy } = await counted('engine', () => enginePass({ ...optionsOf(order), engine, onAnswer }));
    return { kind: 'asked', lines, heldUpBy };
  };
}
