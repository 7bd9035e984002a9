/**
 * A child of the bench that is told what to do and says what came of it, word by word. It ends when
 * the bench does.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Child<Word extends { readonly kind: string }> {
  readonly pid: number;
  say(what: object): void;
  /** The next word of this kind. Rejects when the child has ended, and after the deadline. */
  hear<Kind extends Word['kind']>(kind: Kind, deadlineMs: number): Promise<Extract<Word, { kind: Kind }>>;
  stop(): Promise<void>;
}

export function startChild<Word extends { readonly kind: string }>(name: 'writer' | 'reader'): Child<Word> {
  const child = fork(fileURLToPath(new URL(`${name}.js`, import.meta.url)));
  const ended = once(child, 'exit');
  return {
    pid: child.pid ?? 0,
    say: (what) => void child.send(what),
    hear: (kind, deadlineMs) =>
      new Promise((resolve, reject) => {
        const fail = (): void => reject(new Error(`the ${name} did not say "${kind}"`));
        const timer = setTimeout(fail, deadlineMs);
        child.once('exit', fail);
        child.on('message', (word: Word) => {
          if (word.kind !== kind) return;
          clearTimeout(timer);
          resolve(word as Extract<Word, { kind: typeof kind }>);
        });
      }),
    stop: async () => {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}
