/**
 * The address of a session about a container: the agent of the host that runs it (ADR 39). Pure.
 */
import type { ContainerStatus } from '../../../schemas/api/container.ts';
import type { SessionPlace } from '../../../schemas/wire/answers.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import type { PartitionView } from '../state.ts';
import { answer, conflict, data, refuse, type Turn, type TurnContext } from '../turn.ts';
import { find } from './decide.ts';
import { shownStatus } from './view.ts';

/** Statuses in which it may have a process; its host knows. */
const mayRun: ReadonlySet<ContainerStatus> = new Set(['starting', 'running', 'stopping']);

export function session(
  state: PartitionView,
  ask: Extract<Ask, { type: 'container.session' }>,
  { fleet }: TurnContext,
): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  const { status } = shownStatus(record, fleet);
  if (status === 'unknown') return refuse('unavailable', 'the host of the container is silent; try again');
  const { placement } = record;
  if (!mayRun.has(status) || placement.phase !== 'placed') {
    return conflict('not_running', `the container does not run: it is ${status}`);
  }
  const agent = fleet.enrolledKey(placement.host);
  if (agent == null) {
    return refuse('unavailable', 'the host of the container is not known here yet; try again');
  }
  const place: SessionPlace = { host: placement.host, agent, placement: placement.since };
  return answer(data('ok', place));
}
