/** Answers that hold until they are forgotten: at most so many, the oldest goes first. */

export interface Memo<T> {
  /**
   * The answer that is remembered, or that of `ask`.
   * @param key undefined: asks, and remembers nothing
   */
  get(key: string | undefined, ask: () => Promise<T>): Promise<T>;
  /** Forgets everything, and does not remember the answers that are under way. */
  clear(): void;
}

/** @param isKept answers that are worth remembering */
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
    // Those that ask now write into the old one.
    clear: () => void (answers = new Map()),
  };
}
