/**
 * A cache of answers: they hold until it is cleared. Its size is bounded, and the oldest goes
 * first.
 */

export interface Memo<T> {
  /**
   * The cached answer, or that of `ask`.
   * @param key `undefined`: asks, and caches nothing
   */
  get(key: string | undefined, ask: () => Promise<T>): Promise<T>;
  /** Forgets everything, and does not cache the answers that are under way. */
  clear(): void;
}

/** @param isKept `true` for answers that are worth caching */
export function createMemo<T>(size: number, isKept: (answer: T) => boolean): Memo<T> {
  let answers = new Map<string, T>();
  return {
    get: async (key, ask) => {
      if (key === undefined) return ask();
      const known = answers.get(key);
      if (known !== undefined) return known;
      const current = answers;
      const answer = await ask();
      if (!isKept(answer)) return answer;
      current.set(key, answer);
      for (const oldest of current.keys()) {
        if (current.size <= size) break;
        current.delete(oldest);
      }
      return answer;
    },
    // Calls in progress write into the old map.
    clear: () => void (answers = new Map()),
  };
}
