/** One step on the engine and its outcome: plan.ts decides it, execute.ts carries it out. */
import type { Reason } from '../../schemas/api/container.ts';
import type { PullPolicy } from '../../schemas/api/fields/container.ts';
import type { StopSignal } from '../../schemas/api/policy.ts';
import type { EngineState } from '../docker/observed.ts';

export type Step =
  | { readonly kind: 'none' }
  | { readonly kind: 'wait'; readonly untilMs: number }
  /** Nothing to do on the engine: the container cannot run as declared. */
  | { readonly kind: 'fail'; readonly why: Why }
  | { readonly kind: 'pull'; readonly reference: string; readonly policy: PullPolicy }
  | { readonly kind: 'cancel_pull' }
  | { readonly kind: 'create'; readonly reference: string; readonly imageId: string }
  /**
   * `prepare`: it has never run, so its config files may be missing. `again`: this is a restart
   * after a failure.
   */
  | { readonly kind: 'start'; readonly dockerId: string; readonly prepare: boolean; readonly again: boolean }
  /** Its sandbox went down, perhaps with the engine. */
  | { readonly kind: 'start_sandbox'; readonly dockerId: string }
  | { readonly kind: 'unpause'; readonly dockerId: string }
  /** Its limits were changed by hand, as by `docker update`: sets the declared ones again. */
  | { readonly kind: 'limit'; readonly dockerId: string }
  | { readonly kind: 'stop'; readonly dockerId: string; readonly manner?: StopManner }
  /**
   * Save its last log lines before its removal. `isBeside`: it stays for now, because an update may
   * bring it back.
   */
  | { readonly kind: 'drain'; readonly dockerId: string; readonly isBeside?: true }
  | { readonly kind: 'remove'; readonly dockerId: string };

/**
 * The manner of a stop, from the container's policy; without a policy, from the host's settings.
 */
export interface StopManner {
  readonly graceMs: number;
  readonly signal: StopSignal;
}

/** Steps that end within the deadline of a call. */
export type ShortStep = Extract<Step, { kind: 'create' | 'start' | 'start_sandbox' | 'unpause' | 'limit' | 'remove' }>;
/** Steps that take long; other containers proceed meanwhile. */
export type LongStep = Extract<Step, { kind: 'pull' | 'stop' | 'drain' }>;

/**
 * The reason why the container does not run. The first explanation stays until an attempt gets
 * further.
 */
export interface Why {
  readonly reason: Reason;
  readonly message: string;
  readonly exitCode: number | null;
  /** The version of the login that a registry refused for good; 0 if the pull had none. */
  readonly login?: number;
}

export const unhealthyWhy = ({ healthFault }: Extract<EngineState, { phase: 'running' }>): Why => ({
  reason: 'unhealthy',
  message: healthFault === undefined ? 'its health check fails' : `its health check fails: ${healthFault}`,
  exitCode: null,
});

/** A long step in progress; the container is reconciled again when it ends. */
export type Operation =
  | { readonly kind: 'pull'; readonly generation: number; readonly reference: string }
  | { readonly kind: 'stop'; readonly generation: number; readonly dockerId: string }
  | { readonly kind: 'drain'; readonly generation: number; readonly dockerId: string };

export type Outcome =
  | { readonly kind: 'done'; readonly imageId?: string }
  /** A long step has begun; its outcome follows. */
  | { readonly kind: 'begun'; readonly operation: Operation }
  /** Observe again at once: the engine's state was not the one that the step assumed. */
  | { readonly kind: 'changed' }
  /**
   * Another attempt may help. `pauseMs`: the pause before the first such attempt, if it is longer
   * than usual. `detail`, here and below: the engine's error, for the log alone.
   */
  | {
      readonly kind: 'retry';
      readonly why: Why;
      readonly fault: RetryFault;
      readonly detail?: string;
      readonly pauseMs?: number;
    }
  | { readonly kind: 'failed'; readonly why: Why; readonly detail?: string }
  /** The engine is away or hangs: the outcome is unknown and counts as no failure. */
  | { readonly kind: 'outage' };

/**
 * The cause of a failed attempt, as far as the next one depends on it.
 * - `container`: this container alone.
 * - `host`: no container could be brought up on this host as it is.
 * - `image_gone`: the image that was pulled is not there any more; it is pulled again.
 * - `remake`: this container of the engine cannot start again; another is made.
 */
export type RetryFault = 'container' | 'host' | 'image_gone' | 'remake';

interface Seen {
  readonly attempt: { readonly phase: string };
  readonly why: Why | null;
}

/** Nothing more is tried for now. */
export const isGivenUp = ({ phase }: Seen['attempt']): boolean => phase === 'failed' || phase === 'ended';

/**
 * A container has written more than its limit. It stops, keeps what it wrote, and starts again when
 * it is within its limit, or by a new generation (ADR 46).
 */
export const isOverDisk = ({ attempt, why }: Seen): boolean => isGivenUp(attempt) && why?.reason === 'disk_limit';
