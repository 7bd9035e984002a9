/**
 * The end of a container that its policy does not start again (ADR 36). It counts as stopped from
 * then on: the loss of its host, a drain or a restore does not start it elsewhere. Pure.
 */
import type { ContainerRecord, Observation } from '../../../schemas/api/container.ts';
import { policyOf } from '../../../schemas/api/policy.ts';
import { noChanges, type Changes, type TurnContext } from '../turn.ts';
import { changed, eventOf, unplace, want } from './transitions.ts';

/** `true` if its host reports that it has run to its end and its policy does not start it again. */
export const hasEnded = (record: ContainerRecord, isEnd: boolean): boolean =>
  isEnd && record.desired === 'running' && policyOf(record).restart !== 'always';

/** A stopped container that keeps the observed end of its run; a start runs it again. */
export const atRest = (record: ContainerRecord, context: TurnContext): ContainerRecord => ({
  ...want(record, 'stopped', context),
  observed: record.observed,
});

/**
 * The time, in ms, at which a job that has ended is removed by itself; `undefined` if never, or if
 * it has not ended. A stop, also one by its host, or a lost host is no end of its own.
 */
export function removedFromMs(record: ContainerRecord): number | undefined {
  const { remove_after_seconds: seconds, restart } = policyOf(record);
  const { desired, observed, observedAtMs } = record;
  if (seconds === undefined || restart === 'always' || desired !== 'stopped' || observedAtMs === null) return undefined;
  const { status, reason, exit_code: exitCode } = observed;
  const isOver = reason === 'completed' || (status === 'failed' && exitCode !== null && reason !== 'host_lost');
  return isOver ? observedAtMs + seconds * 1000 : undefined;
}

/** A job that has ended, and the time of its removal. */
export interface EndedJob {
  readonly record: ContainerRecord;
  readonly dueMs: number;
}

/** The order of removals. */
export const byRemoval = ({ record: one, dueMs }: EndedJob, { record: other, dueMs: otherMs }: EndedJob): number =>
  dueMs - otherMs || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0);

/** Gives up a container that may run once only: it may have run on the host that is lost. */
export function giveUpRun(record: ContainerRecord, context: TurnContext): Changes {
  if (record.placement.phase !== 'placed') return noChanges;
  const message =
    'its host was lost, and its policy "never" lets no other host run it: start it if it should run again';
  const observed: Observation = { ...record.observed, status: 'failed', reason: 'host_lost', message };
  const next = { ...unplace(want(record, 'stopped', context), context), observed };
  return changed(next, [eventOf('unplaced', next, context)]);
}

/**
 * Keeps the known end of the last run: a host that has no copy of a stopped container can't report
 * it.
 */
export const withLastRun = ({ desired, observed: before }: ContainerRecord, observed: Observation): Observation =>
  desired === 'stopped' && observed.status === 'stopped' && observed.reason === null && isRunOver(before)
    ? { ...before, addresses: [] }
    : observed;

/** `true` if the run is over; one that its host broke off has no exit code of its own. */
const isRunOver = ({ status, reason, exit_code }: Observation): boolean =>
  (status === 'stopped' || status === 'failed') && (exit_code !== null || reason === 'exited');
