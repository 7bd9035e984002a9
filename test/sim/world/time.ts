/**
 * Virtual time for several processes in one. While a world runs, it replaces the timers of Node
 * (`setTimeout`, `setInterval`, `setImmediate`, `AbortSignal.timeout` and `node:timers/promises`)
 * and its clocks (`Date.now`, `performance.now`), so that unchanged code waits in virtual time, and
 * nothing in a run depends on how fast the machine is. Every timer and every message belongs to the
 * process that was running when it was made. A paused process runs none of its own, and all that
 * are due when it continues; a dead one runs nothing. Between two events all microtasks run, so
 * nothing of one process runs in the middle of another's.
 */
import { createHash } from 'node:crypto';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import type { Clock } from '../../../lib/time/clock.ts';

const timersPromises = createRequire(import.meta.url)('node:timers/promises') as {
  setTimeout: (ms?: number, value?: unknown, options?: { readonly signal?: AbortSignal }) => Promise<unknown>;
};
const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  clearImmediate: globalThis.clearImmediate,
  delay: timersPromises.setTimeout,
  random: Math.random,
  dateNow: Date.now,
  performanceNow: performance.now,
  abortAfter: AbortSignal.timeout,
};

export interface Process {
  readonly name: string;
  readonly clock: Clock;
  /** Offset of its wall clock. */
  wallOffsetMs: number;
  state: 'running' | 'paused' | 'dead';
  /** Time until which it works on something and can do nothing else. */
  busyUntilMs: number;
  /** Events that came while it was paused. */
  readonly due: Event[];
}

interface Event {
  atMs: number;
  readonly order: number;
  readonly process: Process;
  readonly run: () => void;
  isCancelled: boolean;
}

/** 2026-01-01: an arbitrary time that is no round number in the code. */
const wallStartMs = 1_767_225_600_000;

export class World {
  readonly #heap: Event[] = [];
  readonly #hash = createHash('sha256');
  #nowMs = 0;
  #order = 0;
  #events = 0;
  /** The process of the test itself, which sets things up. */
  readonly stage: Process;
  #running: Process;

  constructor() {
    this.stage = this.process('stage');
    this.#running = this.stage;
  }

  get nowMs(): number {
    return this.#nowMs;
  }
  get running(): Process {
    return this.#running;
  }
  get events(): number {
    return this.#events;
  }

  process(name: string): Process {
    const clock: Clock = {
      nowMs: () => Math.floor(wallStartMs + timeOf() + process.wallOffsetMs),
      monotonicMs: () => timeOf(),
    };
    const timeOf = (): number => Math.max(this.#nowMs, process.busyUntilMs);
    const process: Process = { name, clock, wallOffsetMs: 0, state: 'running', busyUntilMs: 0, due: [] };
    return process;
  }

  at(atMs: number, process: Process, run: () => void): Event {
    const event: Event = { atMs: Math.max(atMs, this.#nowMs), order: this.#order++, process, run, isCancelled: false };
    push(this.#heap, event);
    return event;
  }

  /**
   * Runs code of a process now; what it leaves for later must be in timers and messages, not in
   * promises.
   */
  as<T>(process: Process, run: () => T): T {
    const before = this.#running;
    this.#running = process;
    try {
      return run();
    } finally {
      this.#running = before;
    }
  }

  /** Starts work of a process, to which all its continuations then belong. */
  spawn<T>(process: Process, run: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.at(this.#nowMs, process, () => void run().then(resolve, reject));
    });
  }

  /** The process works for this long: its clock moves on, and its next event waits. */
  work(process: Process, ms: number): void {
    process.busyUntilMs = Math.max(this.#nowMs, process.busyUntilMs) + ms;
  }

  pause(process: Process): void {
    if (process.state === 'running') process.state = 'paused';
  }

  resume(process: Process): void {
    if (process.state !== 'paused') return;
    process.state = 'running';
    for (const { run, isCancelled } of process.due.splice(0)) {
      if (!isCancelled) this.at(this.#nowMs, process, run);
    }
  }

  kill(process: Process): void {
    process.state = 'dead';
    process.due.length = 0;
  }

  trace(...words: readonly (string | number)[]): void {
    this.#hash.update(`${this.#nowMs.toFixed(3)} ${words.join(' ')}\n`);
  }

  /** Hash of everything that happened, the same for the same run. */
  digest(): string {
    return this.#hash.copy().digest('hex');
  }

  /** Runs until the condition holds, or the time is up. */
  async until(condition: () => boolean, withinMs: number): Promise<boolean> {
    const endMs = this.#nowMs + withinMs;
    while (!condition()) {
      const event = this.#heap[0];
      if (event === undefined || event.atMs > endMs) {
        this.#nowMs = endMs;
        return condition();
      }
      pop(this.#heap);
      this.#step(event);
      await settled();
    }
    return true;
  }

  /** Runs the body with virtual timers until the body ends. */
  async run<T>(random: () => number, body: () => Promise<T>): Promise<T> {
    this.#install(random);
    try {
      return await body();
    } finally {
      uninstall();
    }
  }

  #step(event: Event): void {
    this.#nowMs = event.atMs;
    if (event.isCancelled || event.process.state === 'dead') return;
    if (event.process.state === 'paused') {
      event.process.due.push(event);
      return;
    }
    if (event.process.busyUntilMs > event.atMs) {
      // In the order in which they came: all of them are delayed.
      event.atMs = event.process.busyUntilMs;
      push(this.#heap, event);
      return;
    }
    this.#events++;
    this.#running = event.process;
    event.run();
  }

  #install(random: () => number): void {
    const timer = (run: () => void, ms: number): Timer => new Timer(this, run, ms);
    const virtual = {
      setTimeout: (run: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
        timer(() => run(...args), Math.max(1, ms ?? 1)),
      setInterval: (run: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
        const interval = timer(
          () => {
            interval.refresh();
            run(...args);
          },
          Math.max(1, ms ?? 1),
        );
        return interval;
      },
      setImmediate: (run: (...args: unknown[]) => void, ...args: unknown[]) => timer(() => run(...args), 0),
    };
    const clear = (given: unknown): void => {
      if (given instanceof Timer) given.cancel();
    };
    Object.assign(globalThis, virtual, { clearTimeout: clear, clearInterval: clear, clearImmediate: clear });
    Math.random = random;
    Date.now = () => this.#running.clock.nowMs();
    performance.now = () => this.#running.clock.monotonicMs();
    AbortSignal.timeout = (ms) => {
      const ending = new AbortController();
      timer(() => ending.abort(new DOMException('signal timed out', 'TimeoutError')), ms);
      return ending.signal;
    };
    timersPromises.setTimeout = (ms, value, options) =>
      new Promise((resolve, reject) => {
        const { signal } = options ?? {};
        if (signal?.aborted === true) {
          reject(new Error('aborted'));
          return;
        }
        const abort = (): void => {
          waiting.cancel();
          reject(new Error('aborted'));
        };
        const waiting = timer(
          () => {
            signal?.removeEventListener('abort', abort);
            resolve(value);
          },
          Math.max(1, ms ?? 1),
        );
        signal?.addEventListener('abort', abort, { once: true });
      });
    syncBuiltinESMExports();
  }
}

function uninstall(): void {
  const { delay, random, dateNow, performanceNow, abortAfter, ...timers } = real;
  Object.assign(globalThis, timers);
  Math.random = random;
  Date.now = dateNow;
  performance.now = performanceNow;
  AbortSignal.timeout = abortAfter;
  timersPromises.setTimeout = delay;
  syncBuiltinESMExports();
}

/** Lets all microtasks run. */
const settled = (): Promise<void> => new Promise((resolve) => void real.setImmediate(resolve));

class Timer {
  readonly #world: World;
  readonly #process: Process;
  readonly #run: () => void;
  readonly #ms: number;
  #event: Event;

  constructor(world: World, run: () => void, ms: number) {
    this.#world = world;
    this.#process = world.running;
    this.#run = run;
    this.#ms = ms;
    this.#event = this.#arm();
  }

  #arm(): Event {
    return this.#world.at(this.#world.nowMs + this.#ms, this.#process, this.#run);
  }
  cancel(): void {
    this.#event.isCancelled = true;
  }
  refresh(): this {
    this.cancel();
    this.#event = this.#arm();
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  hasRef(): boolean {
    return true;
  }
}

// A binary heap, by time and then by order.

const isSooner = (one: Event, other: Event): boolean =>
  one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);

function push(heap: Event[], event: Event): void {
  let index = heap.push(event) - 1;
  while (index > 0) {
    const above = (index - 1) >> 1;
    const parent = heap[above];
    if (parent === undefined || isSooner(parent, event)) break;
    heap[index] = parent;
    index = above;
  }
  heap[index] = event;
}

function pop(heap: Event[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let index = 0;
  for (;;) {
    let below = 2 * index + 1;
    let child = heap[below];
    if (child === undefined) break;
    const right = heap[below + 1];
    if (right !== undefined && isSooner(right, child)) {
      below++;
      child = right;
    }
    if (isSooner(last, child)) break;
    heap[index] = child;
    index = below;
  }
  heap[index] = last;
}
