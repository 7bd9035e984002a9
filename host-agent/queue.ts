/**
 * A queue of keys to look at: a key waits at most once, is worked on by at most one worker, and is looked at again when
 * it was enqueued meanwhile. So events carry no content, and none can be lost by coming at a bad time.
 */
export interface KeyedQueue<K> {
  enqueue(key: K): void;
  /** No more work is begun; resolves when what is under way has ended. */
  stop(): Promise<void>;
}

/** `work` must not reject: what goes wrong with a key is its own business. */
export function createQueue<K>(workers: number, work: (key: K) => Promise<void>): KeyedQueue<K> {
  const waiting = new Set<K>();
  const working = new Map<K, Promise<void>>();
  let isStopped = false;

  const next = (): K | undefined => {
    for (const key of waiting) if (!working.has(key)) return key;
    return undefined;
  };
  const dispatch = (): void => {
    while (!isStopped && working.size < workers) {
      const key = next();
      if (key === undefined) return;
      waiting.delete(key);
      const done = work(key).finally(() => {
        working.delete(key);
        dispatch();
      });
      working.set(key, done);
    }
  };

  return {
    enqueue: (key) => {
      waiting.add(key);
      dispatch();
    },
    stop: async () => {
      isStopped = true;
      await Promise.allSettled(working.values());
    },
  };
}
