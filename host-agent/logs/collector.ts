/**
 * Follows the log of every container of ours: one follower each, started again with every run, and a last one that drains
 * what remains before a container is removed.
 */
import { backoffMs, jitter, sleep, within, type BackoffBounds } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Engine } from '../docker/engine.ts';
import { detailOf, EngineError, isRefusal, isUnreachable } from '../docker/errors.ts';
import type { Metrics } from '../metrics.ts';
import type { RunId } from '../observed.ts';
import { encodeBlock } from './block.ts';
import type { Cursors } from './cursors.ts';
import { pass, type PassResult, type Sink } from './pass.ts';
import type { LogSource, Publish } from './publish.ts';
import type { Spool } from './spool.ts';

export interface LogCollector {
  /** Level-triggered: called at every look at a container that runs or has run. */
  follow(source: LogSource, dockerId: string, run: RunId): void;
  /**
   * Resolves when every line of it is acknowledged, or is on disk to be sent later, or when its log could not be read
   * or kept in `logDrainAttempts` attempts: then the rest of it is lost, and counted. It must not run any more.
   */
  drain(source: LogSource, dockerId: string): Promise<void>;
  /** The container is gone for good. */
  forget(id: ContainerId): void;
  stop(): Promise<void>;
}

export interface CollectorParts {
  readonly engine: Engine;
  readonly cursors: Cursors;
  readonly spool: Spool;
  readonly publish: Publish;
  readonly backoff: BackoffBounds;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, 'logGaps' | 'logDropped' | 'logAbandoned'>;
  readonly log: Log;
}

interface Follower {
  readonly dockerId: string;
  /** The run that was asked for last; another run than the one being read means one more pass. */
  run: RunId;
  readonly controller: AbortController;
  readonly done: Promise<void>;
  isDone: boolean;
}

export function createCollector(parts: CollectorParts): LogCollector {
  const { engine, cursors, spool, publish, clock, metrics, log } = parts;
  const followers = new Map<ContainerId, Follower>();
  /** Drains that failed in a row, by the engine's id. */
  const attempts = new Map<string, number>();
  /** Lines that were read and could not be put on disk, by the engine's id. */
  const unkept = new Map<string, number>();
  let isStopped = false;

  const once = async (source: LogSource, dockerId: string, follow: boolean, sink: Sink, signal: AbortSignal) => {
    const result: PassResult = await pass({
      engine,
      cursor: cursors.of(source.id, dockerId),
      follow,
      nowMs: clock.nowMs(),
      sink,
      advance: (cursor) => cursors.set(source.id, cursor),
      signal,
    });
    if (result.gaps > 0) {
      metrics.logGaps(result.gaps);
      log.warn('log_gap', { container: source.id, why: 'the engine rotated its log before it was captured' });
    }
    return result;
  };

  /** Passes until one ends with nothing new: then the container is down, and all that it wrote is safe. */
  const followToEnd = async (source: LogSource, follower: Follower): Promise<void> => {
    const { dockerId, controller } = follower;
    const { signal } = controller;
    const sink: Sink = (block, abort) => publish(source, encodeBlock(block), block.lines.length, abort);
    await spool.settled(source, signal);
    for (let failures = 0; !signal.aborted;) {
      const { run } = follower;
      try {
        const { lines } = await once(source, dockerId, true, sink, signal);
        failures = 0;
        if (lines === 0 && run === follower.run) return;
      } catch (error) {
        // Gone, or on its way out: nobody can read it any more.
        if (isRefusal(error, 404) || isRefusal(error, 409)) return;
        if (!signal.aborted) log.debug('log_follow_interrupted', { container: source.id, error });
        await sleep(jitter(backoffMs(failures, parts.backoff)), signal);
        failures += 1;
      }
    }
  };

  const start = (source: LogSource, dockerId: string, run: RunId): Follower => {
    const controller = new AbortController();
    const follower: Follower = { dockerId, run, controller, isDone: false, done: Promise.resolve() };
    const done = followToEnd(source, follower).finally(() => {
      follower.isDone = true;
    });
    return Object.assign(follower, { done });
  };

  const follow: LogCollector['follow'] = (source, dockerId, run) => {
    // A look at a container may outlast the stop; what it begins then would never end.
    if (isStopped) return;
    const current = followers.get(source.id);
    if (current?.dockerId === dockerId && !current.isDone) {
      current.run = run;
      return;
    }
    if (current?.dockerId === dockerId && current.run === run) return;
    current?.controller.abort();
    followers.set(source.id, start(source, dockerId, run));
  };

  /** What the control plane did not take in time goes to disk, from the last line that it did take. */
  const spoolRest = async (source: LogSource, dockerId: string): Promise<void> => {
    const blocks: string[] = [];
    let lines = 0;
    const before = cursors.of(source.id, dockerId);
    let cursor = before;
    const expired = AbortSignal.timeout(limits.engineCallMs);
    const reading = pass({
      engine,
      cursor: before,
      follow: false,
      nowMs: clock.nowMs(),
      sink: (block) => {
        blocks.push(encodeBlock(block));
        lines += block.lines.length;
        return Promise.resolve();
      },
      advance: (next) => (cursor = next),
      signal: expired,
    });
    const [result] = await Promise.allSettled([reading]);
    // What was read before the engine broke off is kept.
    await spool.add(source, blocks, lines).catch((error: unknown) => {
      unkept.set(dockerId, lines);
      throw error;
    });
    cursors.set(source.id, cursor);
    if (lines > 0) attempts.delete(dockerId);
    if (result.status === 'rejected') throw result.reason;
    if (result.value.gaps > 0) metrics.logGaps(result.value.gaps);
    if (expired.aborted) throw new Error(`not read within ${limits.engineCallMs} ms`);
  };

  /** A failed attempt of a drain: another follows, or it is the last. */
  const failDrain = (source: LogSource, dockerId: string, error: unknown): void => {
    const attempt = (attempts.get(dockerId) ?? 0) + 1;
    const why = detailOf(error);
    if (attempt < limits.logDrainAttempts) {
      attempts.set(dockerId, attempt);
      const message = `its log cannot be saved before it goes (attempt ${attempt} of ${limits.logDrainAttempts}): ${why}`;
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
      // A run of its own: the follower that may be there makes one more pass, and finds the end.
      follow(source, dockerId, `${dockerId}:drain`);
      const follower = followers.get(source.id);
      try {
        await within(follower?.done ?? Promise.resolve(), limits.logDrainMs, 'log drain');
      } catch {
        follower?.controller.abort();
        await follower?.done;
        try {
          await spoolRest(source, dockerId);
        } catch (error) {
          // Gone, or going, by another hand; or it is the engine that is away.
          if (isRefusal(error, 404) || isRefusal(error, 409) || isUnreachable(error)) throw error;
          failDrain(source, dockerId, error);
          return;
        }
        log.info('log_spooled', { container: source.id });
      }
      settle(dockerId);
    },

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
