/**
 * `GET /api/v2/containers/watch`: all containers of a tenant, page by page, and then each that
 * changes.
 *
 * The first page says at which position of its owner's memory it was made. What changes while the
 * other pages are read comes after them, because the changes are asked for from that position on.
 * An owner keeps the latest changes alone, and a new owner none: a reader that is too late begins
 * again, so nothing waits for it.
 *
 * However many follow a tenant at this gateway, they share one subscription, and those that have
 * come equally far share each look.
 */
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import type { AskOwner } from '../../lib/rpc/partition-client.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { decodeCursor, type ListCursor } from '../../schemas/api/cursor.ts';
import type { TenantId } from '../../schemas/ids.ts';
import type { ResetReason } from '../../schemas/api/frames.ts';
import { limits } from '../../schemas/limits.ts';
import type { WatchPage, WatchPosition } from '../../schemas/wire/answers.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import { succeeded, tenantOf, type CallOf, type HandlerOf } from '../call.ts';
import { filtersOf } from '../compute/filters.ts';
import type { Showing, StreamHost } from './host.ts';
import { AskError, follow } from './requests.ts';
import { SharedReads } from './shared-reads.ts';
import { resetFrames, type Frame } from './sse.ts';

export interface WatchRouteOptions {
  readonly ask: AskOwner;
  readonly streams: Pick<StreamHost, 'withPermit' | 'follow' | 'listen'>;
  readonly clock: Clock;
}

type Call = CallOf<'container.watch'>;
type From = { readonly before: ListCursor | null } | { readonly after: WatchPosition };

interface Read {
  readonly page: WatchPage;
  /** Without ids. */
  readonly frames: readonly Frame[];
}

const idOf = ({ epoch, revision }: WatchPosition): string => `${epoch}.${revision}`;

/** `undefined` if it is not the id of a frame of ours. */
export function positionIn(lastEventId: string): WatchPosition | undefined {
  const [, epoch, revision] = /^(\d{1,15})\.(\d{1,15})$/.exec(lastEventId) ?? [];
  return epoch === undefined ? undefined : { epoch: Number(epoch), revision: Number(revision) };
}

const frameOf = (item: WatchPage['data'][number]): Frame =>
  'removed' in item
    ? { event: 'removed', data: JSON.stringify({ id: item.removed }) }
    : { event: 'item', data: JSON.stringify(item) };

/** One doorbell for all who follow a tenant. */
class TenantBells {
  readonly #listen: StreamHost['listen'];
  readonly #bells = new Map<TenantId, { readonly rings: Set<() => void>; readonly silence: () => void }>();

  constructor(listen: StreamHost['listen']) {
    this.#listen = listen;
  }

  add(tenant: TenantId, ring: () => void): () => void {
    let bell = this.#bells.get(tenant);
    if (bell === undefined) {
      const rings = new Set<() => void>();
      const ringAll = (): void => rings.forEach((one) => one());
      bell = { rings, silence: this.#listen(subjects.changedOfTenant(tenant), ringAll) };
      this.#bells.set(tenant, bell);
    }
    const { rings, silence } = bell;
    rings.add(ring);
    return () => {
      rings.delete(ring);
      if (rings.size > 0) return;
      silence();
      this.#bells.delete(tenant);
    };
  }
}

/** Readers of the same thing in one tick, such as after a ring, share a read. */
class TickReads<T> {
  readonly #shared = new SharedReads<T>();
  readonly #begun = new Map<string, Promise<T>>();

  of(key: string, read: () => Promise<T>): Promise<T> {
    const begun = this.#begun.get(key);
    if (begun !== undefined) return begun;
    const reading = this.#shared.of(key, read);
    this.#begun.set(key, reading);
    setImmediate(() => this.#begun.delete(key));
    return reading;
  }
}

type Place =
  /** `position`: that of the first page, once it was read. */
  | { readonly kind: 'all'; readonly before: ListCursor | null; readonly position?: WatchPosition }
  | { readonly kind: 'changes'; readonly position: WatchPosition; readonly isSynced: boolean };

const fromTheStart: Place = { kind: 'all', before: null };

/** One client that follows. */
class Watcher {
  readonly #read: (from: From) => Promise<Read>;
  readonly #clock: Clock;
  /** The reason for which it begins again, until that is sent. */
  #reset: ResetReason | undefined;
  #place: Place;
  #toldAtMs: number;

  constructor(read: (from: From) => Promise<Read>, clock: Clock, lastEventId: string | undefined) {
    this.#read = read;
    this.#clock = clock;
    this.#toldAtMs = clock.monotonicMs();
    const position = lastEventId === undefined ? undefined : positionIn(lastEventId);
    if (lastEventId !== undefined && position === undefined) this.#reset = 'unknown';
    this.#place = position === undefined ? fromTheStart : { kind: 'changes', position, isSynced: false };
  }

  async show(): Promise<Showing> {
    const place = this.#place;
    const shown = place.kind === 'all' ? await this.#all(place) : await this.#changes(place);
    const nowMs = this.#clock.monotonicMs();
    if (shown.frames.length > 0) this.#toldAtMs = nowMs;
    if (shown.frames.length > 0 || nowMs - this.#toldAtMs < limits.streamHeartbeatMs) return shown;
    this.#toldAtMs = nowMs;
    return { ...shown, frames: this.#heartbeat() };
  }

  #heartbeat(): readonly Frame[] {
    if (this.#place.kind === 'all') return [];
    const id = idOf(this.#place.position);
    return [{ id, event: 'heartbeat', data: JSON.stringify({ position: id }) }];
  }

  async #all(place: Place & { readonly kind: 'all' }): Promise<Showing> {
    const { page, frames } = await this.#read({ before: place.before });
    const { position = page.position } = place;
    // Another owner has other numbers: what changed since the first page is not known.
    if (position.epoch !== page.position.epoch) return this.#again('unknown');
    const reset = this.#reset;
    this.#reset = undefined;
    const before = page.next_cursor === undefined ? undefined : decodeCursor(page.next_cursor);
    this.#place =
      before === undefined ? { kind: 'changes', position, isSynced: false } : { kind: 'all', before, position };
    return { frames: [...began(reset), ...frames], more: true, ended: false };
  }

  async #changes({ position: after, isSynced }: Place & { readonly kind: 'changes' }): Promise<Showing> {
    const { page, frames } = await this.#read({ after });
    const { position, more, reset } = page;
    if (reset !== undefined) return this.#again(reset);
    this.#place = { kind: 'changes', position, isSynced: isSynced || !more };
    const id = idOf(position);
    // A client that resumes after a page that broke off gets it again.
    const last = frames.at(-1);
    const told = last === undefined ? [] : [...frames.slice(0, -1), { ...last, id }];
    const synced = isSynced || more ? [] : [{ id, event: 'synced', data: JSON.stringify({ position: id }) }];
    return { frames: [...told, ...synced], more, ended: false };
  }

  #again(reset: ResetReason): Showing {
    this.#place = fromTheStart;
    this.#reset = undefined;
    return { frames: began(reset), more: true, ended: false };
  }
}

/** All that is there follows, and nothing older is kept. */
const began = (reason: ResetReason | undefined): readonly Frame[] =>
  resetFrames(reason === undefined ? undefined : { reason, oldest: null });

export function watchHandler({ ask, streams, clock }: WatchRouteOptions): HandlerOf<'container.watch'> {
  const bells = new TenantBells((subject, ring) => streams.listen(subject, ring));
  const reads = new TickReads<Read>();

  const readerOf = (call: Call) => {
    const tenant = tenantOf(call);
    const filters = filtersOf(call);
    const read = async (from: From): Promise<Read> => {
      const question = { type: 'container.watch', tenant, ...filters, from, ...call.origin } as const;
      const outcome = await ask('watch', question, clock.monotonicMs() + limits.watchAskMs);
      if (!succeeded(outcome)) throw new AskError(outcome);
      const page = decodeAnswer('container.watch', outcome.body);
      return { page, frames: page.data.map(frameOf) };
    };
    return (from: From) => reads.of(`${tenant} ${JSON.stringify([filters, from])}`, () => read(from));
  };

  return (call) => {
    const { headers } = call.exchange.head;
    const watcher = new Watcher(readerOf(call), clock, headers.lastEventId);
    const bell = (ring: () => void) => bells.add(tenantOf(call), ring);
    return follow({ streams }, call, bell, () => watcher.show());
  };
}
