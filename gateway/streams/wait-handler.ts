/** `GET /:id/wait`: answers when the container has a status, or when the time is over. */
import { limits } from '../../schemas/limits.ts';
import type { AnswerOf } from '../../schemas/wire/asks.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import type { Outcome } from '../../lib/rpc/partition-client.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import { succeeded, tenantOf, type CallOf, type Handled, type HandlerOf, type Services } from '../http/call.ts';
import { failure, ok } from '../http/respond.ts';
import type { Doorbell } from './host.ts';
import { guestOf } from './requests.ts';

type StatusSeen = AnswerOf<'container.status'>['data'];

export type WaitStep =
  | { readonly kind: 'answer'; readonly outcome: Outcome }
  | { readonly kind: 'wait'; readonly last: StatusSeen | undefined };

const answer = (outcome: Outcome): WaitStep => ({ kind: 'answer', outcome });

/**
 * The next step of a wait, given the status. A container that is being removed reaches no other
 * status, so waits for other statuses get 409. When it is gone, a wait for `removed` ends with its
 * last view.
 */
export function judgeWait(wanted: string, outcome: Outcome, last: StatusSeen | undefined): WaitStep {
  if (outcome.code === 'not_found') {
    return wanted === 'removed' && last !== undefined
      ? answer(ok({ ...last, status: 'removing', desired: 'removed' } satisfies StatusSeen))
      : answer(outcome);
  }
  // The owner is away: ask again until the timeout.
  if (!succeeded(outcome)) return { kind: 'wait', last };
  const view = decodeAnswer('container.status', outcome.body).data;
  if (view.status === wanted) return answer(outcome);
  if (view.status === 'removing' && wanted !== 'removed') {
    return answer(failure('conflict', 'the container is being removed'));
  }
  return { kind: 'wait', last: view };
}

async function waitFor(
  { ask, clock, streams }: Services,
  call: CallOf<'container.wait'>,
  { wanted, deadlineMs }: { readonly wanted: string; readonly deadlineMs: number },
  doorbell: Doorbell,
): Promise<Handled> {
  const question = {
    type: 'container.status',
    tenant: tenantOf(call),
    id: call.params.id,
    ...call.origin,
  } as const;
  let last: StatusSeen | undefined;
  for (;;) {
    const outcome = await ask('watch', question, Math.min(deadlineMs, clock.monotonicMs() + limits.watchAskMs));
    const step = judgeWait(wanted, outcome, last);
    if (step.kind === 'answer') return step.outcome;
    last = step.last;
    const leftMs = deadlineMs - clock.monotonicMs();
    if (leftMs <= 0) {
      return failure('timeout', `the container did not become ${wanted} within the timeout; ask again`);
    }
    if (call.exchange.aborted || streams.waitsOver()) return failure('unavailable');
    await doorbell.wait(Math.min(streams.polls.waitMs, leftMs));
  }
}

export const waitHandler =
  (services: Services): HandlerOf<'container.wait'> =>
  async (call) => {
    const { clock, streams } = services;
    const goal = {
      wanted: call.query.status,
      deadlineMs: clock.monotonicMs() + call.query.timeout * 1000,
    };
    const changed = subjects.changed(tenantOf(call), call.params.id);
    return streams.withPlace(guestOf(call), () =>
      streams.withDoorbell(changed, call.exchange, (doorbell) => waitFor(services, call, goal, doorbell)),
    );
  };
