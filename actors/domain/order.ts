/** The order of a tenant's lists: by `insertedAtMs`, then by id. Pure. */
import type { ContainerId, PeerId } from '../../schemas/ids.ts';
import type { ListCursor } from '../../schemas/api/cursor.ts';

/** An item of a list. */
export interface Listed {
  readonly insertedAtMs: number;
  readonly id: ContainerId | PeerId;
}

export const isBefore = (item: Listed, cursor: ListCursor): boolean =>
  item.insertedAtMs < cursor.insertedAtMs || (item.insertedAtMs === cursor.insertedAtMs && item.id < cursor.id);

/** The later of the two. */
export const newestOf = (newest: ListCursor | null, { insertedAtMs, id }: Listed): ListCursor =>
  newest !== null && !isBefore(newest, { insertedAtMs, id }) ? newest : { insertedAtMs, id };

/**
 * Above every other of the tenant in the order of the list, whatever the clock and the gateways'
 * ids do: a page that ended before it was made never has to hold it.
 */
export function insertionMs(newest: ListCursor | null, id: Listed['id'], nowMs: number): number {
  if (newest === null || nowMs > newest.insertedAtMs) return nowMs;
  return id > newest.id ? newest.insertedAtMs : newest.insertedAtMs + 1;
}
