/**
 * Wakes those who wait. It carries nothing: whoever wakes looks at the state itself, before waiting
 * again.
 */

export interface Latch {
  wake(): void;
  /** Resolves at the next wake, when the signal aborts, or after `ms`; never rejects. */
  wait(ms?: number, signal?: AbortSignal): Promise<void>;
}

export function createLatch(): Latch {
  const waiting = new Set<() => void>();
  return {
    wake: () => {
      for (const resume of [...waiting]) resume();
    },
    wait: (ms, signal) =>
      new Promise((resolve) => {
        const timer = ms === undefined ? undefined : setTimeout(() => resume(), ms);
        const resume = (): void => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', resume);
          waiting.delete(resume);
          resolve();
        };
        waiting.add(resume);
        signal?.addEventListener('abort', resume, { once: true });
        if (signal?.aborted === true) resume();
      }),
  };
}
