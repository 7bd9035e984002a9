/**
 * A history: what clients requested, when, and what they were answered. The fault harness and the
 * simulation write one, an operation a line, and check.ts judges it. It holds only what a client
 * can see: an operation is one HTTP request, however often a gateway asked an owner for it.
 */
import { cpuMillis, memBytes } from '../../../schemas/quantity.ts';
import type { UpdatePhaseShown } from '../../../schemas/api/container.ts';
import { fillingIn } from './filling.ts';

/** The part of a container's specification that clients change. */
export interface Version {
  readonly tag: string;
  readonly cpuMillis: number;
  readonly memBytes: number;
  /** The number that its large variables are made from (filling.ts); absent if it has none. */
  readonly filling?: number;
}

/** The declaration with one ETag. `desired` is null if the answer with the ETag did not show it. */
export interface Declared {
  readonly version: Version;
  readonly desired: 'running' | 'stopped' | null;
}

/** Progress of the newest update. */
export type UpdateSeen = 'none' | 'under way' | 'done' | 'rolled back';

/** The judged part of a view of a container, which leaves out what its host reports. */
export interface Seen {
  readonly id: string;
  /** Null in `GET /:id/status`, which does not contain it. */
  readonly name: string | null;
  /**
   * `host_key` of the view. Each placement raises the generation too, so the two are read together.
   */
  readonly host: string | null;
  /** Null where the name is null. */
  readonly version: Version | null;
  /** Its status is `removing`. */
  readonly isRemoving: boolean;
  /** Only `GET /:id/status` has these; null elsewhere. */
  readonly desired: 'running' | 'stopped' | 'removed' | null;
  readonly generation: number | null;
  readonly update: UpdateSeen | null;
}

export interface Amounts {
  readonly containers: number;
  readonly cpuMillis: number;
  readonly memBytes: number;
}

/** Caps and usage of the whole tenant (`region=*`). A null cap is no cap. */
export interface Quota {
  readonly usage: Amounts;
  readonly caps: { readonly [Dimension in keyof Amounts]: number | null };
}

/** A client's request. */
export type Request =
  | {
      readonly kind: 'create';
      readonly name: string;
      readonly version: Version;
      /**
       * `Idempotency-Key`, or null. A key belongs to one body: another body is answered with 422
       * and changes nothing.
       */
      readonly idempotencyKey: string | null;
    }
  | { readonly kind: 'start' | 'stop' | 'delete'; readonly id: string }
  | {
      readonly kind: 'patch';
      readonly id: string;
      readonly change: Partial<Version>;
      /**
       * Its ETag is sent as `If-Match`: only a container that is declared so is changed.
       */
      readonly read: Declared | null;
    }
  /** `GET /:id` or `GET /:id/status`. */
  | { readonly kind: 'get'; readonly id: string }
  /**
   * One page, newest first. `isWhole`: it had no `next_cursor`. A history has no further pages.
   */
  | { readonly kind: 'list' }
  /** `GET /quota?region=*` */
  | { readonly kind: 'quota' };

export type RequestKind = Request['kind'];

/** The body of a success. For a start, stop or delete, only the success itself is judged. */
export type Told =
  | { readonly of: 'container'; readonly container: Seen }
  /** Newest first, as answered. */
  | { readonly of: 'list'; readonly containers: readonly Seen[]; readonly isWhole: boolean }
  | { readonly of: 'quota'; readonly quota: Quota };

export type Result =
  | { readonly kind: 'ok'; readonly told: Told }
  /**
   * Every 4xx, and 503: it changed nothing. `code` is the error's (`not_found`, `conflict`,
   * `invalid`, `over_quota`, `precondition_failed`, `unavailable`, `rate_limited`). One exception,
   * which the checker knows: if the gateway repeats a write after its container is gone, the answer
   * is `not_found`.
   */
  | { readonly kind: 'refused'; readonly code: string; readonly nameTaken?: boolean }
  /** 504, 500, or a broken connection: it may have been done, be done later, or never. */
  | { readonly kind: 'unknown'; readonly why: string };

export interface Operation {
  /**
   * The client: it has one request under way at a time, and keeps its name after an `unknown`.
   */
  readonly process: string;
  readonly tenant: string;
  readonly request: Request;
  /** The `X-Request-Id` that was sent. The simulation sends none. */
  readonly requestId?: string;
  /** In milliseconds and fractions, on one monotonic clock for all clients. */
  readonly invokedMs: number;
  /** Null if no answer came; then the result is `unknown`. */
  readonly answeredMs: number | null;
  readonly result: Result;
}

/** Facts about a whole history. */
export interface Terms {
  /** The caps of every tenant of the history. */
  readonly caps: Quota['caps'];
  /** An update to such a version is never rolled back. */
  readonly goodTags: readonly string[];
  /**
   * Clients start what they do not know to be stopped. A start of what backs off raises its
   * generation, and only its host knows whether it does.
   */
  readonly startsAgain?: true;
  /**
   * Containers move. A create that a gateway repeats may be answered with one that has moved since.
   */
  readonly moves?: true;
}

export interface History extends Terms {
  readonly operations: readonly Operation[];
}

/** A history as a file: first what it says of all, then one operation a line, in any order. */
export const encodeHistory = ({ operations, ...ofAll }: History): string =>
  [JSON.stringify(ofAll), ...operations.map((operation) => JSON.stringify(operation))].join('\n') + '\n';

export function decodeHistory(text: string): History {
  const [first = '', ...lines] = text.split('\n').filter((line) => line !== '');
  const ofAll = JSON.parse(first) as Omit<History, 'operations'>;
  return { ...ofAll, operations: lines.map((line) => JSON.parse(line) as Operation) };
}

/** From a view of the API: `Container` (create, get, list) or `ContainerStatusView`. */
export const seenOf = (view: View): Seen => ({
  id: view.id,
  name: view.name ?? null,
  version: versionIn(view),
  host: view.host_key,
  isRemoving: view.status === 'removing',
  desired: view.desired ?? null,
  generation: view.generation ?? null,
  update: view.desired === undefined ? null : updateIn(view.update?.phase),
});

export interface View {
  readonly id: string;
  readonly name?: string;
  readonly tag?: string | null;
  readonly cpu_limit?: string;
  readonly mem_limit?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly host_key: string | null;
  readonly status: string;
  readonly desired?: NonNullable<Seen['desired']>;
  readonly generation?: number;
  readonly update?: { readonly phase: UpdatePhaseShown };
}

function versionIn({ tag, cpu_limit: cpu, mem_limit: mem, env = {} }: View): Version | null {
  if (cpu === undefined || mem === undefined) return null;
  const filling = fillingIn(env);
  const sized = { tag: tag ?? '', cpuMillis: cpuMillis(cpu) ?? 0, memBytes: memBytes(mem) ?? 0 };
  return filling === undefined ? sized : { ...sized, filling };
}

function updateIn(phase: UpdatePhaseShown | undefined): UpdateSeen {
  switch (phase) {
    case undefined:
      return 'none';
    case 'preparing':
    case 'verifying':
      return 'under way';
    case 'done':
    case 'failed':
    case 'stopped':
      return 'done';
    case 'rolled_back':
      return 'rolled back';
  }
}

export const isSameVersion = (one: Version, other: Version): boolean =>
  one.tag === other.tag &&
  one.cpuMillis === other.cpuMillis &&
  one.memBytes === other.memBytes &&
  one.filling === other.filling;
