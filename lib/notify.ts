/**
 * Wakes waiting tasks. It carries no data: a task looks at the state itself before it waits again.
 */

export interface Notify {
  notify(): void;
  /** Resolves at the next `notify`, when the signal aborts, or after `ms`; never rejects. */
  wait(ms?: number, signal?: AbortSignal): Promise<void>;
}

export function createNotify(): Notify {
  const waiting = new Set<() => void>();
  return {
    notify: () => {
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
