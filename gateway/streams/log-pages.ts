/**
 * Pages of a container's lines, out of what was found on each host where it ran, and of the lines
 * of several containers, out of their pages. Pure.
 *
 * The lines of one host are in order; those of several are not, because a host that was cut off
 * sends its lines later. So a page ends where the host of which least was looked at ends: beyond
 * that, it may have lines between those of the others.
 */
import type { LogPlace } from '../../schemas/api/cursor.ts';
import type { ContainerLogEntry, LogEntry } from '../../schemas/api/log.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import type { Order, PastFound } from './past.ts';

export interface LogWish {
  readonly order: Order;
  /** Times in milliseconds; lines of `untilMs` are not wanted. */
  readonly sinceMs: number | undefined;
  readonly untilMs: number | undefined;
  /** Text that a line must have in it. */
  readonly contains: string | undefined;
  /** The number of the last line that was looked at; `undefined` if none was. */
  readonly after: number | undefined;
  readonly limit: number;
  /** Blocks of each host to look at, at most; by default as many as a page does. */
  readonly blocks?: number;
}

export interface LogPastPage {
  readonly entries: readonly LogEntry[];
  /** `after` of the next page; `undefined` if there is none. */
  readonly next: number | undefined;
}

/** Microseconds of a line's number in a millisecond. */
export const perMs = 1000;

/** Returns a filter for the lines of the page and of later ones. */
export function isWished({ order, sinceMs, untilMs, contains, after }: LogWish): (entry: LogEntry) => boolean {
  return ({ seq, line }) =>
    (after === undefined || (order === 'asc' ? seq > after : seq < after)) &&
    (sinceMs === undefined || seq >= sinceMs * perMs) &&
    (untilMs === undefined || seq < untilMs * perMs) &&
    (contains === undefined || line.includes(contains));
}

/** The times, in milliseconds, between which the rest of the wished lines lie. */
export function timesOf({ order, sinceMs, untilMs, after }: LogWish) {
  const afterMs = after === undefined ? undefined : Math.floor(after / perMs);
  return order === 'asc'
    ? { fromMs: afterMs ?? sinceMs, toMs: untilMs }
    : { fromMs: sinceMs, toMs: afterMs === undefined ? untilMs : afterMs + 1 };
}

/** @param found of each host, by the wish's order and times */
export function acrossHosts(
  found: readonly PastFound<LogEntry>[],
  { order, after, limit }: Pick<LogWish, 'order' | 'after' | 'limit'>,
): LogPastPage {
  const sign = order === 'asc' ? 1 : -1;
  const all = found
    .flatMap(({ items }) => items.map(({ item }) => item))
    .sort((one, other) => sign * (one.seq - other.seq))
    .filter(({ seq }, at, sorted) => seq !== sorted[at - 1]?.seq);
  const unfinished = found.filter(({ next }) => next !== undefined);
  const ends = unfinished.flatMap(({ edge }) => (edge === undefined ? [] : [sign * edge.seq]));
  const end = ends.length === 0 ? undefined : sign * Math.min(...ends);
  const sure = end === undefined ? all : all.filter(({ seq }) => sign * (seq - end) <= 0);
  const entries = sure.slice(0, limit);
  if (entries.length === all.length && unfinished.length === 0) return { entries, next: undefined };
  const last = entries.at(-1)?.seq;
  return { entries, next: (entries.length < sure.length ? last : (end ?? last)) ?? after };
}

/** A container whose lines are listed. */
export interface Named {
  readonly id: ContainerId;
  readonly name: string;
}

/** `after` of one container's page, if the page of several begins behind a place. */
export function afterOf(place: LogPlace | undefined, order: Order, id: ContainerId): number | undefined {
  if (place === undefined) return undefined;
  const isLookedAt = place.id === '' || (order === 'asc' ? id <= place.id : id >= place.id);
  if (isLookedAt) return place.seq;
  return order === 'asc' ? place.seq - 1 : place.seq + 1;
}

/** The pages of several containers, one after the other, as far as one page needs them. */
export interface Joined {
  /** One more than a page has, at most. */
  readonly entries: readonly ContainerLogEntry[];
  /** The lines of each container are known up to this number; `undefined` if all are. */
  readonly end: number | undefined;
}

export const noneJoined: Joined = { entries: [], end: undefined };

/** @param page by the same order, and at least as many lines as `limit` if there are as many */
export function joined(
  { entries, end }: Joined,
  { id, name }: Named,
  page: LogPastPage,
  { order, limit }: Pick<LogWish, 'order' | 'limit'>,
): Joined {
  const sign = order === 'asc' ? 1 : -1;
  const named = page.entries.map((entry) => ({ container_id: id, name, ...entry }));
  const all = [...entries, ...named].sort(
    (one, other) => sign * (one.seq - other.seq || (one.container_id < other.container_id ? -1 : 1)),
  );
  const ends = [end, page.next].filter((seq) => seq !== undefined).map((seq) => sign * seq);
  return { entries: all.slice(0, limit + 1), end: ends.length === 0 ? undefined : sign * Math.min(...ends) };
}

export interface JoinedPage {
  readonly entries: readonly ContainerLogEntry[];
  /** The beginning of the next page; `undefined` if there is none. */
  readonly next: LogPlace | undefined;
}

/** A page ends where the container of which least was looked at ends, as that of several hosts. */
export function joinedPage(
  { entries: all, end }: Joined,
  { order, limit }: Pick<LogWish, 'order' | 'limit'>,
): JoinedPage {
  const sign = order === 'asc' ? 1 : -1;
  const sure = end === undefined ? all : all.filter(({ seq }) => sign * (seq - end) <= 0);
  const entries = sure.slice(0, limit);
  const last = entries.at(-1);
  if (entries.length < sure.length && last !== undefined)
    return { entries, next: { seq: last.seq, id: last.container_id } };
  return { entries, next: end === undefined ? undefined : { seq: end, id: '' } };
}
