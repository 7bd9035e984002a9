/**
 * A queue of keys to reconcile. A key waits at most once, has at most one worker, and gets another
 * turn if it is enqueued meanwhile. So events need no content, and none is lost by coming at a bad
 * time.
 *
 * Work that outlasts `patienceMs` moves to the slow workers, which keep its key until its work is
 * quick again. So keys whose work hangs delay each other, and no others.
 */
export interface KeyedQueue<K> {
  enqueue(key: K): void;
  /** Enqueues the key after so long, unless its work begins sooner; replaces an earlier wait. */
  later(key: K, ms: number): void;
  /** Forgets that its work was slow. */
  forget(key: K): void;
  /** Begins no more work and ends all waits; resolves when the work in progress has ended. */
  stop(): Promise<void>;
}

export interface QueueBounds {
  readonly workers: number;
  readonly slowWorkers: number;
  readonly patienceMs: number;
}

type Lane = 'quick' | 'slow';

interface Job {
  lane: Lane;
  /** `true` if it has outlasted `patienceMs`, and waits for a slow worker. */
  isOverdue: boolean;
  done: Promise<void>;
}

/** @param work must not reject: it handles its own failures */
export function createQueue<K>(bounds: QueueBounds, work: (key: K) => Promise<void>): KeyedQueue<K> {
  const places: Readonly<Record<Lane, number>> = { quick: bounds.workers, slow: bounds.slowWorkers };
  const busy: Record<Lane, number> = { quick: 0, slow: 0 };
  const waiting = new Set<K>();
  const working = new Map<K, Job>();
  const slow = new Set<K>();
  const timers = new Map<K, NodeJS.Timeout>();
  let isStopped = false;

  const laneOf = (key: K): Lane => (slow.has(key) ? 'slow' : 'quick');
  const next = (): K | undefined => {
    for (const key of waiting) {
      const lane = laneOf(key);
      if (!working.has(key) && busy[lane] < places[lane]) return key;
    }
    return undefined;
  };

  const moveOverdue = (): void => {
    for (const job of working.values()) {
      if (busy.slow >= places.slow) return;
      if (!job.isOverdue) continue;
      job.isOverdue = false;
      job.lane = 'slow';
      busy.quick -= 1;
      busy.slow += 1;
    }
  };
  const dispatch = (): void => {
    moveOverdue();
    while (!isStopped) {
      const key = next();
      if (key === undefined) return;
      waiting.delete(key);
      begin(key);
    }
  };

  const endWait = (key: K): void => {
    clearTimeout(timers.get(key));
    timers.delete(key);
  };

  const begin = (key: K): void => {
    endWait(key);
    const job: Job = { lane: laneOf(key), isOverdue: false, done: Promise.resolve() };
    busy[job.lane] += 1;
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      slow.add(key);
      job.isOverdue = job.lane === 'quick';
      dispatch();
    }, bounds.patienceMs);
    working.set(key, job);
    job.done = work(key).finally(() => {
      clearTimeout(timer);
      if (!isLate) slow.delete(key);
      busy[job.lane] -= 1;
      working.delete(key);
      dispatch();
    });
  };

  const enqueue = (key: K): void => {
    waiting.add(key);
    dispatch();
  };

  return {
    enqueue,
    later: (key, ms) => {
      endWait(key);
      if (!isStopped) timers.set(key, setTimeout(enqueue, ms, key));
    },
    forget: (key) => void slow.delete(key),
    stop: async () => {
      isStopped = true;
      for (const key of timers.keys()) endWait(key);
      await Promise.allSettled([...working.values()].map(({ done }) => done));
    },
  };
}
