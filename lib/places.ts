/** Bounds how much work of one kind is under way at a time; the rest waits in turn. */
export interface Places {
  /** Resolves with the end of this work, once it has a place. The end may be called repeatedly. */
  take(): Promise<() => void>;
}

export function createPlaces(most: number): Places {
  const waiting: (() => void)[] = [];
  let under = 0;

  const end = (): void => {
    const next = waiting.shift();
    if (next === undefined) under -= 1;
    else next();
  };

  return {
    take: async () => {
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
