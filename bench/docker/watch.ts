/** Requests some addresses every few milliseconds, and measures the gaps without an answer. */
import { get } from 'node:http';

const everyMs = 5;
const answerMs = 1000;

interface Answer {
  readonly said: string;
  readonly atMs: number;
}

export interface Watch {
  /** Also asks there from now on. */
  add(url: string): void;
  /** Resolves at the first answer that says this, from now on. */
  says(what: string): Promise<void>;
  /** From the last answer that says `before` to the first one after it that says `after`. */
  gapMs(before: string, after: string): number;
  /** The longest time between two answers that say this. */
  longestGapMs(what: string): number;
  stop(): void;
}

export function watchAnswers(signal: AbortSignal): Watch {
  const urls = new Set<string>();
  const answers: Answer[] = [];
  const ask = (url: string): void => {
    const asked = get(url, { agent: false, timeout: answerMs }, (answer) => {
      let said = '';
      answer.on('data', (chunk: Buffer) => (said += chunk.toString()));
      answer.once('end', () => answers.push({ said: said.trim(), atMs: performance.now() }));
      answer.once('error', () => undefined);
    });
    asked.once('timeout', () => asked.destroy());
    // Nobody answers there now.
    asked.once('error', () => undefined);
  };
  const timer = setInterval(() => urls.forEach(ask), everyMs);
  const stop = (): void => {
    clearInterval(timer);
    signal.removeEventListener('abort', stop);
  };
  signal.addEventListener('abort', stop, { once: true });
  const timesOf = (what: string): number[] => answers.flatMap(({ said, atMs }) => (said === what ? [atMs] : []));
  return {
    add: (url) => void urls.add(url),
    says: (what) => {
      const before = answers.length;
      return new Promise((resolve, reject) => {
        const looking = setInterval(() => {
          if (signal.aborted) reject(signal.reason as Error);
          else if (!answers.slice(before).some(({ said }) => said === what)) return;
          clearInterval(looking);
          resolve();
        }, everyMs);
      });
    },
    gapMs: (before, after) => {
      const lastMs = timesOf(before).at(-1) ?? NaN;
      return (timesOf(after).find((atMs) => atMs > lastMs) ?? NaN) - lastMs;
    },
    longestGapMs: (what) => {
      const times = timesOf(what);
      return Math.max(...times.slice(1).map((atMs, index) => atMs - (times[index] ?? atMs)));
    },
    stop,
  };
}
