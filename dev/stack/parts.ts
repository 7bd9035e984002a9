/**
 * Starts the parts of a stack, several at a time, each as soon as what it needs is running. Keeps
 * them running, and stops them in the reverse of a fixed order.
 */
import type { Restartable } from '../process/process.ts';
import { say, step } from '../steps.ts';
import { Supervisor } from './supervisor.ts';

/** Each part needs only parts before it, so the last one is stopped first. */
const order = [
  'container firewall',
  'tenant network',
  'Docker engine (private)',
  'Redis',
  'registry',
  'NATS with JetStream',
  'actors',
  'gateway',
  'containers',
  'host-agent',
] as const;
export type PartName = (typeof order)[number];

export class Parts {
  readonly #signal: AbortSignal;
  readonly #supervisor = new Supervisor({ say, nowMs: () => performance.now() });
  readonly #stops = new Map<PartName, () => Promise<unknown>>();
  #failure: Error | undefined;

  /** Aborting the signal ends the start. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Runs a step, unless the start was aborted or another step has failed. */
  async take<T>(name: string, work: () => Promise<T>, detail?: (result: T) => string): Promise<T> {
    this.#signal.throwIfAborted();
    if (this.#failure !== undefined) throw this.#failure;
    try {
      // After an abort, do not wait for a part that is still starting: the ledger names it, so it
      // ends with this process.
      return await unlessAborted(step(name, work, detail), this.#signal);
    } catch (error) {
      this.#failure ??= error instanceof Error ? error : new Error(String(error));
      throw error;
    }
  }

  /** Starts a part, and restarts it whenever it ends. */
  async start<T>(
    name: PartName,
    work: () => Promise<T>,
    restartable: (result: T) => Restartable,
    detail?: (result: T) => string,
  ): Promise<T> {
    const result = await this.take(name, work, detail);
    const part = restartable(result);
    this.stopLater(name, () => part.stop());
    this.keep(name, part);
    return result;
  }

  /** Restarts it whenever it ends. */
  keep(name: PartName, part: Restartable): void {
    this.#supervisor.watch(name, part);
  }

  /** Registers what `stop` does when it reaches this part. */
  stopLater(name: PartName, stop: () => Promise<unknown>): void {
    this.#stops.set(name, stop);
  }

  /**
   * Resolves when all are done. If one fails, waits until the others have finished their current
   * step, so that `stop` knows every part; then rejects with the first error.
   */
  async all<const T extends readonly unknown[]>(work: T): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
    await Promise.allSettled(work);
    if (this.#failure !== undefined) throw this.#failure;
    return Promise.all(work);
  }

  async stop(): Promise<void> {
    // First, so that no part that is stopped below is restarted.
    await this.#supervisor.stop();
    for (const name of order.toReversed()) {
      const stop = this.#stops.get(name);
      if (stop === undefined) continue;
      this.#stops.delete(name);
      await step(`stopping ${name}`, stop);
    }
  }
}

/** Settles with the promise, or rejects when the signal aborts. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let stopWaiting = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stopWaiting = () => reject(new Error('interrupted'));
    signal.addEventListener('abort', stopWaiting, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', stopWaiting);
    promise.catch(() => undefined);
  }
}
