/**
 * Bounds how many logs are searched at a time: after a start of the agent, all of its host's
 * containers are to be followed at once.
 */
export interface Openings {
  /** Resolves with the end of this opening, once it is its turn. It may be called repeatedly. */
  begin(): Promise<() => void>;
}

export function createOpenings(most: number): Openings {
  const waiting: (() => void)[] = [];
  let under = 0;

  const end = (): void => {
    const next = waiting.shift();
    if (next === undefined) under -= 1;
    else next();
  };

  return {
    begin: async () => {
      if (under < most) under += 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        end();
      };
    },
  };
}
