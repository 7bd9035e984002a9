import { sleep } from './backoff.ts';

export interface Retrying {
  /** Pause after an attempt; the first attempt has the number 0. */
  readonly pauseMs: (attempt: number) => number;
  /** Ends the pauses and the attempts, but not the attempt under way. */
  readonly signal?: AbortSignal;
  /**
   * Called with what an attempt threw; what it throws itself ends the attempts. Without it, they
   * end with the first that throws.
   */
  readonly onFailure?: (error: unknown, attempt: number) => void;
  /** Default: `sleep`. */
  readonly pause?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

const rethrow = (error: unknown): never => {
  throw error;
};

/**
 * Makes attempts, with pauses between them, until one returns something.
 * @returns `undefined` if the signal aborts first
 */
export async function retry<T>(
  work: (attempt: number) => Promise<T | undefined>,
  options: Retrying & { readonly signal: AbortSignal },
): Promise<T | undefined>;
export async function retry<T>(work: (attempt: number) => Promise<T | undefined>, options: Retrying): Promise<T>;
export async function retry<T>(
  work: (attempt: number) => Promise<T | undefined>,
  { pauseMs, signal, onFailure = rethrow, pause = sleep }: Retrying,
): Promise<T | undefined> {
  for (let attempt = 0; signal?.aborted !== true; attempt++) {
    try {
      const result = await work(attempt);
      if (result !== undefined) return result;
    } catch (error) {
      onFailure(error, attempt);
    }
    await pause(pauseMs(attempt), signal);
  }
  return undefined;
}
