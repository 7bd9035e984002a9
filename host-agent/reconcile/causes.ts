/**
 * Finds the request that the steps on a container belong to (ADR 44): the one that made the wanted
 * generation, from when this host learns of it until there is nothing left to do. Later steps, such
 * as a restart after a crash, belong to none.
 */
import type { Fields, Log } from '../../lib/log.ts';
import type { Span, Tracer } from '../../lib/trace/tracer.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import { traceIdOf } from '../../schemas/wire/trace.ts';
import type { Workload } from '../desired/workload.ts';

export interface Cause {
  /** For log lines. */
  readonly fields: Fields;
  /** The span that steps are below: a `traceparent`. `undefined` if the request is not traced. */
  readonly trace: string | undefined;
}

export interface Causes {
  /** An ask for the desired set is about to be sent. */
  asked(): void;
  /**
   * The desired set has changed.
   * @param from `disk`: the agent has just started, and continues what it may have begun before
   */
  heard(changed: Iterable<ContainerId>, from: 'disk' | 'owners'): void;
  /** The request in progress for a container; `undefined` if there is none. */
  of(id: ContainerId): Cause | undefined;
  /** There is nothing left to do for now. */
  settled(id: ContainerId, isFailed: boolean): void;
}

interface Known extends Cause {
  readonly generation: number;
  readonly span: Span | undefined;
  isSettled: boolean;
}

interface CausesParts {
  readonly workload: Pick<Workload, 'wanted'>;
  readonly tracer?: Tracer | undefined;
  readonly log: Log;
}

export function createCauses({ workload, tracer, log }: CausesParts): Causes {
  const known = new Map<ContainerId, Known>();
  let askedAtMs: number | undefined;

  const settled = (id: ContainerId, isFailed: boolean): void => {
    const cause = known.get(id);
    if (cause === undefined || cause.isSettled) return;
    cause.isSettled = true;
    cause.span?.end({ isError: isFailed });
  };

  /**
   * The span of all the work that this host does for the change; in it, the sync that brought it.
   */
  const beginSpan = (id: ContainerId, trace: string | undefined): Span | undefined => {
    const attributes = { 'longshore.container': id };
    const span = tracer?.below(trace, { name: 'reconcile', kind: 'consumer', attributes, startMs: askedAtMs });
    tracer?.below(span?.trace, { name: 'sync', kind: 'internal', attributes: {}, startMs: askedAtMs })?.end();
    return span;
  };

  const onDesired = (id: ContainerId, container: DesiredContainer | undefined, from: 'disk' | 'owners'): void => {
    if (known.get(id)?.generation === container?.generation) return;
    settled(id, false);
    known.delete(id);
    if (container?.cause === undefined) return;
    const { generation, desired, cause } = container;
    const fields = { requestId: cause.request_id, traceId: traceIdOf(cause.trace) };
    const span = from === 'disk' ? undefined : beginSpan(id, cause.trace);
    known.set(id, { generation, fields, trace: span?.trace ?? cause.trace, span, isSettled: false });
    if (from === 'owners') log.info('desired_changed', { container: id, desired, generation, ...fields });
  };

  return {
    asked: () => {
      askedAtMs = tracer?.nowMs();
    },
    heard: (changed, from) => {
      for (const id of changed) {
        const wanted = workload.wanted(id);
        onDesired(id, 'container' in wanted ? wanted.container : undefined, from);
      }
    },
    of: (id) => {
      const cause = known.get(id);
      return cause?.isSettled === false ? cause : undefined;
    },
    settled,
  };
}
