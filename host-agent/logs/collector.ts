/**
 * Follows the logs of this host's containers: one follower for each, started again with every run,
 * and a last pass that drains the rest before a container is removed.
 */
import { backoffMs, jitter, sleep, within, type BackoffBounds } from '../../lib/time/backoff.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { MiB, seconds } from '../../schemas/limits/units.ts';
import { detailOf, EngineError, isRefusal, isUnreachable } from '../docker/errors.ts';
import type { LossCause, Metrics } from '../metrics.ts';
import type { RunId } from '../docker/observed.ts';
import type { Cursors } from './cursors.ts';
import type { PassEnd, RunPass } from './passes.ts';
import type { Publish } from './publish.ts';
import type { Spool } from './spool.ts';
import { createTail } from './tail.ts';
import type { LogSource } from './source.ts';

/** Attempts in a row to read the last lines of a container, before it is removed without them. */
const logDrainAttempts = 5;
/** The time between two mentions of one container's rate in the agent's log. */
const logOverRateMentionMs = 60 * seconds;

/** Bytes of the newest lines of one container in the spool. */
const logSpoolContainerBytes = 8 * MiB;
/**
 * The time between two reads of a log that is behind: for each, the engine reads all files of
 * that log.
 */
const logCatchUpMs = 10 * seconds;

export interface LogCollector {
  /**
   * Level-triggered: the reconciler calls it at every observation of a container that runs or has
   * run.
   */
  follow(source: LogSource, dockerId: string, run: RunId): void;
  /**
   * Resolves when every line is acknowledged or on disk to be sent later, or after
   * `logDrainAttempts` failed attempts to read or keep the log; then its rest is lost and counted.
   * The container must be down. Its place is on disk then: another copy may write next, and lines
   * that are read again after those of another copy get other numbers.
   */
  drain(source: LogSource, dockerId: string): Promise<void>;
  /** Level-triggered. @param dockerIds all of the engine's copies of the container */
  keep(id: ContainerId, dockerIds: readonly string[]): void;
  /** The container is gone for ever: its log is no longer followed. */
  forget(id: ContainerId): void;
  stop(): Promise<void>;
}

export interface CollectorParts {
  readonly runPass: RunPass;
  readonly cursors: Cursors;
  readonly spool: Spool;
  readonly publish: Publish;
  readonly backoff: BackoffBounds;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly metrics: Pick<Metrics, 'logDropped' | 'logAbandoned'>;
  readonly log: Log;
}

interface Follower {
  readonly dockerId: string;
  /** The run that was last requested; if it is not the run being read, another pass follows. */
  run: RunId;
  /** The cause that last delayed its lines, while it is behind. */
  heldUpBy: LossCause | undefined;
  /** The earliest time for the next question to the engine, in milliseconds since 1970. */
  catchUpFromMs: number;
  /** The earliest time for the next mention of its rate, in milliseconds since 1970. */
  mentionFromMs: number;
  /** Aborts when the container is down, and nobody starts it again. */
  readonly ending: AbortController;
  readonly controller: AbortController;
  readonly done: Promise<void>;
  isDone: boolean;
}

export function createCollector(parts: CollectorParts): LogCollector {
  const { runPass, cursors, spool, publish, clock, metrics, log } = parts;
  const followers = new Map<ContainerId, Follower>();
  /** Drains that failed in a row, by the engine's id. */
  const attempts = new Map<string, number>();
  /** Lines that were read but did not reach the disk, by the engine's id. */
  const unkept = new Map<string, number>();
  let isStopped = false;

  const noteHeldUp = (source: LogSource, follower: Follower, heldUpBy: LossCause | undefined): void => {
    const isNew = heldUpBy === 'rate' && follower.heldUpBy === undefined;
    follower.heldUpBy = heldUpBy;
    if (!isNew || clock.monotonicMs() < follower.mentionFromMs) return;
    follower.mentionFromMs = clock.monotonicMs() + logOverRateMentionMs;
    log.info('log_rate_exceeded', { ...source });
  };

  const once = (source: LogSource, follower: Follower): Promise<PassEnd> =>
    runPass({
      source,
      dockerId: follower.dockerId,
      cursor: () => cursors.of(source.id, follower.dockerId),
      follow: follower.heldUpBy === undefined,
      sink: ({ payload, lines }, abort) => publish(source, payload, lines, abort),
      lossCause: () => follower.heldUpBy ?? 'late',
      onHeldUp: (cause) => noteHeldUp(source, follower, cause),
      advance: (cursor) => cursors.set(source.id, cursor),
      ending: follower.ending.signal,
      signal: follower.controller.signal,
    });

  /** If the follower is behind, delays its next read, so that the engine can rest. */
  const rest = async (follower: Follower): Promise<void> => {
    if (follower.heldUpBy === undefined) return;
    await sleep(follower.catchUpFromMs - clock.monotonicMs(), follower.controller.signal);
    follower.catchUpFromMs = clock.monotonicMs() + logCatchUpMs;
  };

  /** Repeats passes until one finds nothing new: the container is down, and its lines are safe. */
  const followToEnd = async (source: LogSource, follower: Follower): Promise<void> => {
    const { signal } = follower.controller;
    await spool.settled(source, signal);
    for (let failures = 0; !signal.aborted;) {
      const { run } = follower;
      const isFollowing = follower.heldUpBy === undefined;
      try {
        const end = await once(source, follower);
        failures = 0;
        if (end.kind === 'whole' || (isFollowing && end.lines === 0 && run === follower.run)) return;
        noteHeldUp(source, follower, end.heldUpBy);
        await rest(follower);
      } catch (error) {
        // The container is gone or going: its log cannot be read any more.
        if (isRefusal(error, 404) || isRefusal(error, 409)) return;
        if (!signal.aborted) log.debug('log_follow_interrupted', { container: source.id, error });
        await sleep(jitter(backoffMs(failures, parts.backoff)), signal);
        failures += 1;
      }
    }
  };

  /**
   * @param before the work that must end first: two passes of one container would use a number
   * twice
   */
  const start = (source: LogSource, dockerId: string, run: RunId, before: Promise<void>): Follower => {
    const controller = new AbortController();
    const follower: Follower = {
      dockerId,
      run,
      heldUpBy: undefined,
      catchUpFromMs: 0,
      mentionFromMs: 0,
      ending: new AbortController(),
      controller,
      isDone: false,
      done: Promise.resolve(),
    };
    const done = before
      .then(() => followToEnd(source, follower))
      .finally(() => {
        follower.isDone = true;
      });
    return Object.assign(follower, { done });
  };

  const follow: LogCollector['follow'] = (source, dockerId, run) => {
    // A reconciliation may outlast the stop; a follower that starts then would never end.
    if (isStopped) return;
    const current = followers.get(source.id);
    // A follower that was broken off has not come to the end.
    const own = current?.dockerId === dockerId && !current.controller.signal.aborted ? current : undefined;
    if (own?.isDone === false) own.run = run;
    if (own?.run === run) return;
    // The follower of a copy that is drained ends once its log is read, and the next one waits for
    // it.
    if (current?.ending.signal.aborted === false) current.controller.abort();
    followers.set(source.id, start(source, dockerId, run, current?.done ?? Promise.resolve()));
  };

  /** Writes to disk the lines that the control plane did not acknowledge in time. */
  const spoolRest = async (source: LogSource, dockerId: string): Promise<void> => {
    const tail = createTail(logSpoolContainerBytes);
    const before = cursors.of(source.id, dockerId);
    let cursor = before;
    const expired = AbortSignal.timeout(limits.engineCallMs);
    const reading = runPass({
      source,
      dockerId,
      cursor: () => before,
      follow: false,
      sink: (block) => {
        tail.push(block);
        return Promise.resolve(undefined);
      },
      lossCause: () => 'late',
      onHeldUp: () => undefined,
      advance: (next) => (cursor = next),
      ending: AbortSignal.abort(),
      signal: expired,
    });
    const [result] = await Promise.allSettled([reading]);
    // Lines read before the engine broke off are kept.
    const { blocks, lines, dropped } = tail.kept();
    await spool.add(source, blocks, lines).catch((error: unknown) => {
      unkept.set(dockerId, lines);
      throw error;
    });
    if (dropped > 0) metrics.logDropped(dropped);
    cursors.set(source.id, cursor);
    if (lines > 0) attempts.delete(dockerId);
    if (result.status === 'rejected') throw result.reason;
    if (expired.aborted) throw new Error(`not read within ${limits.engineCallMs} ms`);
  };

  /** Counts a failed drain: throws so that another follows, or gives up the rest of the log. */
  const failDrain = (source: LogSource, dockerId: string, error: unknown): void => {
    const attempt = (attempts.get(dockerId) ?? 0) + 1;
    const why = detailOf(error);
    if (attempt < logDrainAttempts) {
      attempts.set(dockerId, attempt);
      const message = `its log cannot be saved before it goes (attempt ${attempt} of ${logDrainAttempts}): ${why}`;
      throw new EngineError('log drain', { kind: 'malformed' }, message, error);
    }
    metrics.logAbandoned();
    metrics.logDropped(unkept.get(dockerId) ?? 0);
    log.error('log_abandoned', { container: source.id, why });
    settle(dockerId);
  };
  const settle = (dockerId: string): void => {
    attempts.delete(dockerId);
    unkept.delete(dockerId);
  };

  return {
    follow,

    drain: async (source, dockerId) => {
      // Counts as a new run, so that an existing follower makes one more pass and finds the end.
      follow(source, dockerId, `${dockerId}:drain`);
      const follower = followers.get(source.id);
      follower?.ending.abort();
      try {
        await within(follower?.done ?? Promise.resolve(), limits.logDrainMs, 'log drain');
      } catch {
        follower?.controller.abort();
        await follower?.done;
        try {
          await spoolRest(source, dockerId);
        } catch (error) {
          // The container was removed by others, or the engine is away.
          if (isRefusal(error, 404) || isRefusal(error, 409) || isUnreachable(error)) throw error;
          failDrain(source, dockerId, error);
          return;
        }
        log.info('log_spooled', { container: source.id });
      }
      await cursors.sync();
      settle(dockerId);
    },

    keep: (id, dockerIds) => cursors.keep(id, dockerIds),

    forget: (id) => {
      followers.get(id)?.controller.abort();
      followers.delete(id);
      cursors.forget(id);
    },

    stop: async () => {
      isStopped = true;
      for (const { controller } of followers.values()) controller.abort();
      await Promise.all([...followers.values()].map(({ done }) => done));
      await cursors.flush();
    },
  };
}
