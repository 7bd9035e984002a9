/**
 * `GET /:id/wait`: answers when the container has a status or is settled, when that can not come
 * any more, or when the time is over.
 */
import type { AskOwner } from '../../../lib/rpc/partition-client.ts';
import type { Doorbell } from '../../../lib/time/doorbell.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import { limits } from '../../../schemas/limits.ts';
import type { StatusSeen } from '../../../schemas/wire/answers.ts';
import { subjects } from '../../../schemas/wire/subjects.ts';
import { decodeAnswer } from '../../../lib/rpc/decode.ts';
import { succeeded, tenantOf, type CallOf, type Handled, type HandlerOf } from '../../call.ts';
import { failure } from '../../http/respond.ts';
import type { StreamHost } from '../host.ts';
import { guestOf } from '../requests.ts';
import { goneAs, judgeWait, type Goal } from './judge.ts';

export interface WaitRouteOptions {
  readonly ask: AskOwner;
  readonly streams: Pick<StreamHost, 'withPermit' | 'withDoorbell' | 'waitsOver' | 'polls'>;
  readonly clock: Clock;
}

type WaitCall = CallOf<'container.wait'>;

/**
 * Time for which a container is known to have run without an end, well or unhealthy: since this
 * wait saw it first, or as its owner has measured, which may have changed meanwhile. No wall clock
 * decides.
 */
export function uptimes(clock: Pick<Clock, 'monotonicMs'>): (view: StatusSeen) => number {
  let run = '';
  let sinceMs = 0;
  return ({ status, reason, started_at: startedAt, restart_count: restarts, up_seconds: upSeconds = 0 }) => {
    if (status !== 'running' || (reason !== null && reason !== 'unhealthy')) {
      run = '';
      return 0;
    }
    const seen = `${reason} ${startedAt} ${restarts}`;
    if (run !== seen) [run, sinceMs] = [seen, clock.monotonicMs()];
    return Math.max(clock.monotonicMs() - sinceMs, upSeconds * 1000);
  };
}

/** Of a container that this wait has not seen: gone within the last seven days, or unknown. */
async function absent({ ask }: WaitRouteOptions, call: WaitCall, goal: Goal, deadlineMs: number): Promise<Handled> {
  const { id } = call.params;
  const trace = await ask('read', { type: 'container.trace', tenant: tenantOf(call), id, ...call.origin }, deadlineMs);
  if (!succeeded(trace)) return trace;
  return decodeAnswer('container.trace', trace.body).data.gone ? goneAs(goal, nothingKnown(id)) : failure('not_found');
}

/** The status of a container whose record is gone. */
const nothingKnown = (id: string) => ({
  id,
  generation: 0,
  host_key: null,
  observed_status: null,
  observed_at: null,
  reason: null,
  message: null,
  exit_code: null,
  restart_count: 0,
  next_retry_at: null,
  started_at: null,
  addresses: [],
});

async function waitFor(
  options: WaitRouteOptions,
  call: WaitCall,
  first: Goal,
  deadlineMs: number,
  doorbell: Doorbell,
): Promise<Handled> {
  const { ask, clock, streams } = options;
  const question = {
    type: 'container.status',
    tenant: tenantOf(call),
    id: call.params.id,
    ...call.origin,
  } as const;
  const upMs = uptimes(clock);
  let goal = first;
  let last: StatusSeen | undefined;
  for (;;) {
    const untilMs = Math.min(deadlineMs, clock.monotonicMs() + limits.watchAskMs);
    const outcome = await ask('watch', question, untilMs);
    const step = judgeWait(goal, outcome, last, upMs);
    if (step.kind === 'answer') return step.outcome;
    if (step.kind === 'absent') return absent(options, call, goal, untilMs);
    last = step.last;
    if (goal.until === 'settled') goal = { ...goal, generation: goal.generation ?? last?.generation };
    const leftMs = deadlineMs - clock.monotonicMs();
    if (leftMs <= 0) return failure('timeout', late(goal, last));
    if (call.exchange.aborted || streams.waitsOver()) return failure('unavailable');
    await doorbell.wait(Math.min(streams.polls.waitMs, leftMs));
  }
}

function late(goal: Goal, last: StatusSeen | undefined): string {
  if (goal.until === 'status')
    return `the container did not become ${goal.statuses.join(' or ')} within the timeout; ask again`;
  const seen = last === undefined ? 'no owner answered' : `it is ${[last.status, last.reason ?? []].flat().join(': ')}`;
  return `the container was not settled within the timeout (${seen}); ask again`;
}

function goalOf({ until, status: statuses, generation, stable_seconds: stableSeconds, job }: WaitCall['query']): Goal {
  return until === undefined
    ? { until: 'status', statuses }
    : { until: 'settled', generation, stableMs: stableSeconds * 1000, isJob: job };
}

export const waitHandler =
  (options: WaitRouteOptions): HandlerOf<'container.wait'> =>
  async (call) => {
    const { clock, streams } = options;
    const deadlineMs = clock.monotonicMs() + call.query.timeout * 1000;
    const changed = subjects.changed(tenantOf(call), call.params.id);
    return streams.withPermit(guestOf(call), () =>
      streams.withDoorbell(changed, call.exchange, (doorbell) =>
        waitFor(options, call, goalOf(call.query), deadlineMs, doorbell),
      ),
    );
  };
