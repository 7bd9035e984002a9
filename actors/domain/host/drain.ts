/** The containers that one partition still has on a host that is drained. Pure. */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import type { DrainBlock, DrainShare } from '../../../schemas/api/drain.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { minutes } from '../../../schemas/limits/units.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { leavingOf, movesFrom } from '../container/moving.ts';
import { isRunningOnce } from '../container/runs.ts';
import { findHost } from '../container/transitions.ts';
import type { PartitionView } from '../state.ts';
import { answer, data, type Turn, type TurnContext } from '../turn.ts';

/** After so long, a stop on a drained host is shown as the reason of its delay. */
export const drainStopMs = 1 * minutes;

export function drain(state: PartitionView, { of }: Extract<Ask, { type: 'host.drain' }>, context: TurnContext): Turn {
  const share: { -readonly [K in keyof DrainShare]: DrainShare[K] } = { left: 0, moving: 0, blocked: [] };
  const note = (record: ContainerRecord, reason: DrainBlock | undefined): void => {
    share.left++;
    if (movesFrom(record) === of) share.moving++;
    if (reason !== undefined) share.blocked.push({ tenant_id: record.tenant, id: record.id, reason });
  };
  for (const record of state.placedOn(of).values()) {
    const isFull = share.blocked.length >= limits.drainBlocked;
    note(record, isFull ? undefined : blockOf(state, record, of, context));
  }
  for (const record of state.wantedOn(of)) {
    const leaving = leavingOf(record);
    if (leaving?.host !== of) continue;
    note(record, Math.abs(context.nowMs - leaving.atMs) >= drainStopMs ? 'stopping' : undefined);
  }
  return answer(data('ok', share));
}

/** The obstacle to its move; `undefined` if it moves, or will when it is its turn. */
function blockOf(
  state: PartitionView,
  record: ContainerRecord,
  host: HostKey,
  context: TurnContext,
): DrainBlock | undefined {
  const { placement, desired, preparing } = record;
  if (desired === 'removed' || movesFrom(record) === host) return undefined;
  if (placement.phase === 'placed' && placement.chosenBy === 'tenant') return 'pinned';
  if (isRunningOnce(record)) return 'runs_once';
  const from = context.fleet.host(host);
  if (from?.condition === 'silent') return 'host_silent';
  if (from?.hasEngine === false) return 'engine_unavailable';
  if (desired === 'stopped' || findHost(record, state.tenant(record.tenant), context) !== undefined) return undefined;
  return preparing?.givenUp ?? 'no_host';
}
