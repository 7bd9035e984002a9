/** Keeps servers running: restarts a server that ends, with a growing pause if it keeps ending. */
import { sleep } from '../../lib/time/backoff.ts';
import { describeExit, type Exit, type Restartable } from '../process/process.ts';
import { nextStart } from './restarts.ts';
import { took } from '../steps.ts';

export interface SupervisorOptions {
  /** Prints a line for the user: what ended, and what is running again. */
  readonly say: (text: string) => void;
  /** A monotonic clock. */
  readonly nowMs: () => number;
}

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #stopping = new AbortController();
  readonly #stopped: Promise<undefined>;
  readonly #watches: Promise<void>[] = [];

  constructor(options: SupervisorOptions) {
    this.#options = options;
    const { signal } = this.#stopping;
    this.#stopped = new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined)));
  }

  watch(name: string, part: Restartable): void {
    this.#watches.push(this.#keep(name, part));
  }

  /**
   * Ends supervision: nothing is restarted from now on. Resolves once a start that was under way
   * has been cancelled.
   */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#watches);
  }

  async #keep(name: string, part: Restartable): Promise<void> {
    const { nowMs, say } = this.#options;
    const { signal } = this.#stopping;
    let ends = 0;
    let startedMs = nowMs();
    for (;;) {
      const exit: Exit | undefined = await Promise.race([part.server().exited, this.#stopped]);
      if (exit === undefined || signal.aborted) return;
      const endedMs = nowMs();
      let next = nextStart(ends, endedMs - startedMs);
      say(`! ${name} ${describeExit(exit)}${nextOf(next)} Its log: ${part.server().logFile}`);
      while (!(await this.#start(name, part, next.pauseMs))) {
        if (signal.aborted) return;
        next = nextStart(next.ends, 0);
        say(`! ${name} did not start${nextOf(next)}`);
      }
      ends = next.ends;
      startedMs = nowMs();
      say(`· ${name} runs again … ${took(startedMs - endedMs)}`);
    }
  }

  async #start(name: string, part: Restartable, pauseMs: number): Promise<boolean> {
    const { signal } = this.#stopping;
    await sleep(pauseMs, signal);
    if (signal.aborted) return false;
    try {
      await part.restart(signal);
      return true;
    } catch (error) {
      if (!signal.aborted) this.#options.say(`✗ ${name}: ${(error as Error).message}`);
      return false;
    }
  }
}

const nextOf = ({ ends, pauseMs }: { ends: number; pauseMs: number }): string =>
  ends === 1
    ? '; starting it again.'
    : `, for the ${ordinal(ends)} time in a row; starting it again in ${took(pauseMs)}.`;

const ordinal = (count: number): string => {
  const isTeen = Math.floor(count / 10) % 10 === 1;
  const ending = isTeen ? 'th' : (['th', 'st', 'nd', 'rd'][count % 10] ?? 'th');
  return `${count}${ending}`;
};
