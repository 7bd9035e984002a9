/**
 * A history: what clients asked for, when, and what they heard. Who makes one (the harness on real
 * processes, the simulation) writes it down as it happens, one operation a line; check.ts judges
 * it. Only what a client can see is in it: an operation is one HTTP request, however often a
 * gateway asked an owner because of it.
 */

/** What a view tells of a container, of all that is judged. What its host reports is not. */
export interface Seen {
  readonly id: string;
  /** Null in `GET /:id/status`, which does not tell it. */
  readonly name: string | null;
  /**
   * `host_key` of the view. Each placement raises the generation too, so the two are read together.
   */
  readonly host: string | null;
  /** Its status is `removing`. */
  readonly isRemoving: boolean;
  /** Only `GET /:id/status` tells these; null elsewhere. */
  readonly desired: 'running' | 'stopped' | 'removed' | null;
  readonly generation: number | null;
}

export interface Amounts {
  readonly containers: number;
  readonly cpuMillis: number;
  readonly memBytes: number;
}

/** Caps and usage of the tenant as a whole (`region=*`). A cap of null is none. */
export interface Quota {
  readonly usage: Amounts;
  readonly caps: { readonly [Dimension in keyof Amounts]: number | null };
}

/** What was asked, and `found`: what a success (any 2xx) told. */
export type Request =
  | {
      readonly kind: 'create';
      readonly name: string;
      readonly cpuMillis: number;
      readonly memBytes: number;
      /**
       * `Idempotency-Key`, or null. One key goes with one body: another body is 422 and changes
       * nothing.
       */
      readonly idempotencyKey: string | null;
    }
  | { readonly kind: 'start' | 'stop' | 'delete'; readonly id: string }
  /** `GET /:id` or `GET /:id/status`. */
  | { readonly kind: 'get'; readonly id: string }
  /**
   * One page, from the newest on. `isWhole`: it had no `next_cursor`. Further pages are no
   * operations of a history.
   */
  | { readonly kind: 'list' }
  /** `GET /quota?region=*` */
  | { readonly kind: 'quota' };

export type RequestKind = Request['kind'];

/**
 * What a success told. Of a start, stop or delete, nothing that it told is judged but that it
 * succeeded.
 */
export type Told =
  | { readonly of: 'container'; readonly container: Seen }
  /** Newest first, as answered. */
  | { readonly of: 'list'; readonly containers: readonly Seen[]; readonly isWhole: boolean }
  | { readonly of: 'quota'; readonly quota: Quota };

export type Result =
  | { readonly kind: 'ok'; readonly told: Told }
  /**
   * Every 4xx, and 503: it changed nothing. `code` is the error's (`not_found`, `conflict`,
   * `invalid`, `over_quota`, `unavailable`, `rate_limited`). One exception is the checker's
   * business: a write that was done, and asked for again by the gateway when its container had
   * gone, is answered `not_found`.
   */
  | { readonly kind: 'refused'; readonly code: string; readonly nameTaken?: boolean }
  /** 504, 500, or the connection broke: it may have been done, or may be done yet, or never. */
  | { readonly kind: 'unknown'; readonly why: string };

export interface Operation {
  /**
   * The client: it has one request under way at a time. After an `unknown` it goes on under the
   * same name.
   */
  readonly process: string;
  readonly tenant: string;
  readonly request: Request;
  /** On one monotonic clock for all clients of the history, in milliseconds, not whole. */
  readonly invokedMs: number;
  /** Null: never answered. Then, and of what is unknown, the result is `unknown`. */
  readonly answeredMs: number | null;
  readonly result: Result;
}

export interface History {
  /** What every tenant of the history may have. */
  readonly caps: Quota['caps'];
  readonly operations: readonly Operation[];
}

/** A history as a file: its caps on the first line, then an operation a line, in any order. */
export const encodeHistory = ({ caps, operations }: History): string =>
  [JSON.stringify({ caps }), ...operations.map((operation) => JSON.stringify(operation))].join('\n') + '\n';

export function decodeHistory(text: string): History {
  const [first = '', ...lines] = text.split('\n').filter((line) => line !== '');
  const { caps } = JSON.parse(first) as Pick<History, 'caps'>;
  return { caps, operations: lines.map((line) => JSON.parse(line) as Operation) };
}

/** Of a view as the API gives it: `Container` (create, get, list) or `ContainerStatusView`. */
export const seenOf = (view: {
  readonly id: string;
  readonly name?: string;
  readonly host_key: string | null;
  readonly status: string;
  readonly desired?: NonNullable<Seen['desired']>;
  readonly generation?: number;
}): Seen => ({
  id: view.id,
  name: view.name ?? null,
  host: view.host_key,
  isRemoving: view.status === 'removing',
  desired: view.desired ?? null,
  generation: view.generation ?? null,
});
