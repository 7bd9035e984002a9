/**
 * The right to write to a partition's bucket: every write names the revision of the epoch key, and
 * the server refuses it once that has moved.
 *
 * A write without an answer may still land. The owner resolves it in place: it moves its own epoch,
 * so the write can no longer land, and writes the same values to the same keys again. Memory stays
 * as it is, because all of its turns will be committed in their order (ADR 26).
 *
 * A write that the server refuses for its size is not repeated: its owner loses what it owns, as to
 * another process, and loads again what is stored.
 *
 * Sequences of a stream only grow. An acknowledgement at one that is not above those before it
 * shows that the store went back in time: a copy of its folder, or a snapshot of its machine, was
 * put in its place. What was acknowledged since may be gone.
 */
import { backoffMs, sleep } from '../../../lib/time/backoff.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Moved } from './epoch.ts';
import type { WriteOutcome } from './store.ts';

/** A write was acknowledged at `got`, after another one at `seen`, which is not below it. */
export interface WentBack {
  readonly seen: number;
  readonly got: number;
}

export interface FenceOptions {
  /** The revision of the epoch under which the partition was loaded. */
  readonly revision: number;
  /** Moves the epoch from this revision; retries until the server has decided. */
  readonly move: (from: number, to: { readonly released: boolean }) => Promise<Moved>;
  /** A write has no answer: it is resolved now. */
  readonly onUnknown: (cause: unknown) => void;
  /** The server takes no write of this size, now or later. `onLost` follows. */
  readonly onRefused: (cause: unknown) => void;
  /** The store went back in time. Called before the write that shows it returns; it is written. */
  readonly onWentBack: (sequences: WentBack) => void;
  /** Another process has the partition. Not called after `close` or `release`. */
  readonly onLost: () => void;
}

type Written = Extract<WriteOutcome, { kind: 'written' }>;

export class Fence {
  readonly #options: FenceOptions;
  #revision: number;
  /** The newest sequence that was acknowledged; its own revision at first. */
  #seen: number;
  /** The move under way. */
  #moving: Promise<void> | undefined;
  readonly #closed = new AbortController();

  constructor(options: FenceOptions) {
    this.#options = options;
    this.#revision = options.revision;
    this.#seen = options.revision;
  }

  get revision(): number {
    return this.#revision;
  }

  /**
   * Writes until it is known to be written. `attempt` writes the same to the same keys each time.
   * @returns `lost`: nothing may be written any more; an attempt may have been written.
   */
  async write(attempt: (revision: number) => Promise<WriteOutcome>): Promise<Written | { readonly kind: 'lost' }> {
    for (let unknown = 0; ;) {
      await this.#moving;
      if (this.#closed.signal.aborted) return { kind: 'lost' };
      const revision = this.#revision;
      const seen = this.#seen;
      const outcome = await attempt(revision);
      if (outcome.kind === 'written') {
        this.#look(seen, outcome);
        return outcome;
      }
      if (outcome.kind === 'refused') {
        this.#options.onRefused(outcome.cause);
        this.#lose();
        continue;
      }
      // Another write has moved the fence meanwhile, so this one landed before or never will.
      if (this.#moving !== undefined || revision !== this.#revision) continue;
      if (outcome.kind === 'fenced') {
        this.#lose();
        continue;
      }
      this.#options.onUnknown(outcome.cause);
      this.#moving = this.#resolve(unknown++);
    }
  }

  /** Ends all writes, and releases the partition, so that another member can take it. */
  async release(): Promise<void> {
    this.close();
    await this.#moving;
    await this.#options.move(this.#revision, { released: true });
  }

  /** Ends all writes. What is under way may still land. */
  close(): void {
    this.#closed.abort();
  }

  async #resolve(unknown: number): Promise<void> {
    // The server may refuse the write at once, each time: no space on its disk.
    if (unknown > 0) {
      const restMs = backoffMs(unknown - 1, { minMs: limits.storeRetryMinMs, maxMs: limits.storeRetryMaxMs });
      await sleep(restMs, this.#closed.signal);
    }
    const moved = await this.#options.move(this.#revision, { released: false });
    if (moved.kind === 'moved') {
      this.#look(this.#seen, { sequence: moved.epoch });
      this.#revision = moved.epoch;
    } else this.#lose();
    this.#moving = undefined;
  }

  /** @param seen when the write was sent: an answer to another one may have overtaken it */
  #look(seen: number, { sequence, first = sequence }: Pick<Written, 'sequence' | 'first'>): void {
    if (sequence === 0) return;
    if (first > seen) {
      this.#seen = Math.max(this.#seen, sequence);
      return;
    }
    this.#seen = sequence;
    this.#options.onWentBack({ seen, got: first });
  }

  #lose(): void {
    if (this.#closed.signal.aborted) return;
    this.close();
    this.#options.onLost();
  }
}
