/** Bounds the work of one kind that is under way at a time; the rest waits in turn. */
export interface Semaphore {
  /** `true` if no work is under way. */
  readonly isIdle: boolean;
  /** Does the work once it has a permit. `ms`: the longest wait for one. */
  run<T>(work: () => Promise<T>, ms?: number): Promise<T>;
  /** Resolves with a function that gives the permit back; it may be called repeatedly. */
  acquire(ms?: number): Promise<() => void>;
}

export interface Waits {
  /** Maximum number that wait. */
  readonly most: number;
  /** The error for work that would be one too many, or has waited too long. */
  readonly refuse: (why: 'full' | 'late') => Error;
}

const unbounded: Waits = { most: Infinity, refuse: (why) => new Error(`no permit: ${why}`) };

export function createSemaphore(most: number, waits: Waits = unbounded): Semaphore {
  const waiting: (() => void)[] = [];
  let under = 0;

  const wait = (ms: number | undefined): Promise<void> =>
    new Promise((resolve, reject) => {
      const late = (): void => {
        waiting.splice(waiting.indexOf(begin), 1);
        reject(waits.refuse('late'));
      };
      const timer = ms === undefined ? undefined : setTimeout(late, Math.max(0, ms));
      const begin = (): void => {
        clearTimeout(timer);
        resolve();
      };
      waiting.push(begin);
    });

  const acquire = async (ms?: number): Promise<() => void> => {
    if (under < most) under += 1;
    else if (waiting.length >= waits.most) throw waits.refuse('full');
    else await wait(ms);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      // The next takes this permit.
      const next = waiting.shift();
      if (next === undefined) under -= 1;
      else next();
    };
  };

  return {
    get isIdle() {
      return under === 0;
    },
    run: async (work, ms) => {
      const end = await acquire(ms);
      try {
        return await work();
      } finally {
        end();
      }
    },
    acquire,
  };
}
