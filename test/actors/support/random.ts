/** A seeded generator (mulberry32), so that a run that failed can be run again. */
export interface Random {
  /** An integer from 0 to below `bound`. */
  below(bound: number): number;
  /** True once in so many times. */
  once(inSoMany: number): boolean;
  pick<T>(items: readonly [T, ...T[]]): T;
}

/** Fractions from 0 to below 1, as `Math.random` gives them. */
export function createFractions(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function createRandom(seed: number): Random {
  const next = createFractions(seed);
  const below = (bound: number): number => Math.floor(next() * bound);
  return {
    below,
    once: (inSoMany) => below(inSoMany) === 0,
    pick: (items) => items[below(items.length)] ?? items[0],
  };
}
