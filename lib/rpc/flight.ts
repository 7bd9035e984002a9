/**
 * Messages under way, and what each carries for each partition. Pure of I/O and of clocks.
 *
 *     share: waiting ──lapse──▶ lapsed
 */
import { backoffMs } from '../time/backoff.ts';
import { limits } from '../../schemas/limits.ts';
import { send, silencesOf, type Item } from './item.ts';
import type { Backlog, Batch, Lane } from './lane.ts';

/** Content of a message for one partition. */
export interface Share {
  readonly backlog: Backlog;
  readonly items: Item[];
  attemptMs: number;
  /** Lapsed: its items were sent again, but an answer to it still counts. */
  state: { readonly phase: 'waiting'; readonly dueAtMs: number } | { readonly phase: 'lapsed' };
  /** In the answers that are being read. */
  heard: 'nothing' | 'answer' | 'refusal';
}

/** A message under way. */
export interface Flight {
  readonly id: string;
  readonly lane: Lane;
  readonly items: readonly Item[];
  /** The share of each item. */
  readonly shareOf: readonly Share[];
  readonly shares: readonly Share[];
  readonly stallsAtMs: number;
  readonly forgetAtMs: number;
  hasPlace: boolean;
  isStalled: boolean;
}

export const lapsed = { phase: 'lapsed' } as const;

export const isLapsed = ({ state }: Share): boolean => state.phase === 'lapsed';

/** The batch was sent as the message `id`: it has a place in the lane, and shares of backlogs. */
export function takeOff(id: string, lane: Lane, { items, backlogs }: Batch, nowMs: number, keptMs: number): Flight {
  const shares = new Map<Backlog, Share>();
  const shareOf = items.map((item, index) => shareIn(shares, item, backlogs[index]!, nowMs));
  for (const item of items) send(item, id);
  for (const { backlog } of shares.values()) backlog.inFlight++;
  lane.inFlight++;
  return {
    id,
    lane,
    items,
    shareOf,
    shares: [...shares.values()],
    stallsAtMs: nowMs + limits.laneStallMs,
    forgetAtMs: nowMs + keptMs,
    hasPlace: true,
    isStalled: false,
  };
}

/** The share that the item goes with; its attempt is as long as its most silent item needs. */
function shareIn(shares: Map<Backlog, Share>, item: Item, backlog: Backlog, nowMs: number): Share {
  let share = shares.get(backlog);
  if (share === undefined) {
    share = { backlog, items: [], attemptMs: 0, state: lapsed, heard: 'nothing' };
    shares.set(backlog, share);
  }
  share.items.push(item);
  const attemptMs = backoffMs(silencesOf(item), { minMs: limits.attemptMs, maxMs: limits.attemptMaxMs });
  if (attemptMs > share.attemptMs) {
    share.attemptMs = attemptMs;
    share.state = { phase: 'waiting', dueAtMs: nowMs + attemptMs };
  }
  return share;
}
