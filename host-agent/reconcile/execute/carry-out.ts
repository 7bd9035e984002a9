/**
 * Carries out the step that was planned for a container, and keeps what came of it in the restart
 * state. Short steps end within the look; long ones go on beside the queue, and the container is
 * looked at again when they end.
 */
import type { BackoffBounds } from '../../../lib/time/backoff.ts';
import type { Log } from '../../../lib/log.ts';
import type { Span, Tracer } from '../../../lib/trace/tracer.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Metrics } from '../../metrics.ts';
import type { Wanted } from '../../desired/wanted.ts';
import type { Cause, Causes } from '../causes.ts';
import type { Executor } from './execute.ts';
import type { Observed } from '../../docker/observed.ts';
import { endOperation, settle } from '../restart/restart-state.ts';
import type { RestartStore } from '../restart/restart-store.ts';
import type { LongStep, Operation, Outcome, Step } from '../step.ts';

/** What a look at a container saw. */
export interface Seen {
  readonly id: ContainerId;
  readonly wanted: Wanted;
  readonly observed: Observed;
}

export interface CarryOutParts {
  readonly executor: Executor;
  readonly causes: Pick<Causes, 'of'>;
  /** Undefined: nothing is traced. */
  readonly tracer?: Tracer | undefined;
  readonly restartStore: Pick<RestartStore, 'of' | 'set'>;
  readonly backoff: BackoffBounds;
  readonly steadyMs: () => number;
  readonly metrics: Pick<Metrics, 'step' | 'restart'>;
  readonly log: Log;
  /** Looks at the container again after so long. */
  readonly lookLater: (id: ContainerId, ms: number) => void;
  /** A long step has begun. */
  readonly onBegun: (seen: Seen) => void;
  /** A step has ended. */
  readonly onEnded: (id: ContainerId, outcome: Outcome) => void;
}

/** A step from its beginning on: the request that it is for, and its span. */
interface Begun {
  readonly step: Step;
  readonly cause: Cause | undefined;
  readonly span: Span | undefined;
}

export type CarryOut = (seen: Seen, step: Step) => Promise<void>;

export function createCarryOut(parts: CarryOutParts): CarryOut {
  const { executor, restartStore, backoff, steadyMs, causes, tracer, metrics, log } = parts;

  const begun = (id: ContainerId, step: Step): Begun => {
    const cause = causes.of(id);
    const attributes = { 'longshore.container': id };
    return { step, cause, span: tracer?.below(cause?.trace, { name: step.kind, kind: 'internal', attributes }) };
  };

  const note = (id: ContainerId, { step, cause, span }: Begun, outcome: Outcome): void => {
    metrics.step(step.kind, outcome.kind);
    if (step.kind === 'start' && step.again && outcome.kind === 'done') metrics.restart();
    const why = 'why' in outcome ? { reason: outcome.why.reason, message: outcome.why.message } : {};
    const detail = 'detail' in outcome ? { detail: outcome.detail.slice(0, limits.engineDetailChars) } : {};
    log.info('step', { container: id, step: step.kind, result: outcome.kind, ...why, ...detail, ...cause?.fields });
    const attributes = { 'longshore.result': outcome.kind, 'longshore.reason': why.reason };
    span?.end({ attributes, isError: 'why' in outcome || outcome.kind === 'outage' });
  };

  const finish = (id: ContainerId, work: Begun, outcome: Outcome): void => {
    const { step } = work;
    note(id, work, outcome);
    restartStore.set(id, settle(restartStore.of(id), step, outcome, steadyMs(), backoff));
    parts.onEnded(id, outcome);
  };

  const begin = (seen: Seen, step: LongStep): void => {
    const { id } = seen;
    const tenant = tenantOf(seen);
    if (tenant === undefined) return;
    const operation = operationOf(step, restartStore.of(id).generation);
    restartStore.set(id, settle(restartStore.of(id), step, { kind: 'begun', operation }, steadyMs(), backoff));
    const work = begun(id, step);
    parts.onBegun(seen);
    const container = 'container' in seen.wanted ? seen.wanted.container : undefined;
    const ended = executor.long(step, { tenant, id }, container).catch((error: unknown): Outcome => {
      log.error('step_failed', { container: id, step: step.kind, error, ...work.cause?.fields });
      return { kind: 'outage' };
    });
    void ended.then((outcome) => end(id, { ...work, step }, operation, outcome));
  };

  const end = (
    id: ContainerId,
    work: Begun & { readonly step: LongStep },
    operation: Operation,
    outcome: Outcome,
  ): void => {
    const { step, span } = work;
    // Cancelled meanwhile, or forgotten with its container.
    if (restartStore.of(id).operation !== operation) {
      span?.end();
      return;
    }
    note(id, work, outcome);
    restartStore.set(id, endOperation(restartStore.of(id), step, outcome, steadyMs(), backoff));
    parts.onEnded(id, outcome);
  };

  return async (seen, step) => {
    const { id, wanted } = seen;
    switch (step.kind) {
      case 'none':
        return;
      case 'wait':
        parts.lookLater(id, Math.max(0, step.untilMs - steadyMs()));
        return;
      case 'fail':
        finish(id, begun(id, step), { kind: 'failed', why: step.why });
        return;
      case 'cancel_pull':
        executor.cancelPull(id);
        finish(id, begun(id, step), { kind: 'done' });
        return;
      case 'pull':
      case 'stop':
      case 'drain':
        begin(seen, step);
        return;
      case 'create':
      case 'start':
      case 'start_sandbox':
      case 'unpause':
      case 'limit':
      case 'remove': {
        const work = begun(id, step);
        finish(id, work, await executor.short(step, 'container' in wanted ? wanted.container : undefined));
        return;
      }
    }
  };
}

const tenantOf = ({ observed, wanted }: Seen) =>
  observed.kind === 'present' ? observed.found.tenant : 'container' in wanted ? wanted.container.tenant : undefined;

function operationOf(step: LongStep, generation: number): Operation {
  switch (step.kind) {
    case 'pull':
      return { kind: 'pull', generation, reference: step.reference };
    case 'stop':
      return { kind: 'stop', generation, dockerId: step.dockerId };
    case 'drain':
      return { kind: 'drain', generation, dockerId: step.dockerId };
  }
}
