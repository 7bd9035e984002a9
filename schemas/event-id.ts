/**
 * Ids of events, which say where an event lies in the journal. Without TypeBox, for the command
 * line. Pure.
 */

const idPattern = /^\d{1,6}-(\d{1,15})-(\d{1,6})$/;

/**
 * Orders events of one tenant: by journal entry, then index. `undefined` if the id is not from this
 * API.
 */
export function placeOfEvent(id: string): { readonly entry: number; readonly index: number } | undefined {
  const [, entry, index] = idPattern.exec(id) ?? [];
  return entry === undefined ? undefined : { entry: Number(entry), index: Number(index) };
}

/** The partition of the tenant, as text. */
export const partitionOfEvent = (id: string): string => id.slice(0, id.indexOf('-'));

/** Compares ids of one tenant's events by the order in which they happened. */
export function compareEvents(one: string, other: string): number {
  const [left, right] = [placeOfEvent(one), placeOfEvent(other)];
  return (left?.entry ?? -1) - (right?.entry ?? -1) || (left?.index ?? -1) - (right?.index ?? -1);
}
