/** A child process that gets orders and sends messages back. It ends with the benchmark. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Child<Message extends { readonly kind: string }> {
  readonly pid: number;
  send(order: object): void;
  /** The next message of this kind. Rejects when the child has ended, and after the deadline. */
  receive<Kind extends Message['kind']>(kind: Kind, deadlineMs: number): Promise<Extract<Message, { kind: Kind }>>;
  stop(): Promise<void>;
}

export function startChild<Message extends { readonly kind: string }>(name: 'writer' | 'reader'): Child<Message> {
  const child = fork(fileURLToPath(new URL(`${name}.js`, import.meta.url)));
  const ended = once(child, 'exit');
  return {
    pid: child.pid ?? 0,
    send: (order) => void child.send(order),
    receive: (kind, deadlineMs) =>
      new Promise((resolve, reject) => {
        const fail = (): void =>
          reject(new Error(`the ${name} sent no message "${kind}" within ${deadlineMs} ms, or ended`));
        const timer = setTimeout(fail, deadlineMs);
        child.once('exit', fail);
        child.on('message', (message: Message) => {
          if (message.kind !== kind) return;
          clearTimeout(timer);
          resolve(message as Extract<Message, { kind: typeof kind }>);
        });
      }),
    stop: async () => {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}
