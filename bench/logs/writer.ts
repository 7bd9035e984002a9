/** A process that writes lines to the ports of containers, which print them. */
import { connect, type Socket } from 'node:net';
import { sleep } from '../../lib/time/backoff.ts';
import { atPace, makeLine, wallMs } from './line.ts';

export interface WriterOrder {
  readonly ports: readonly number[];
  readonly linesPerSecond: number;
  readonly linesEach: number;
}

export type WriterMessage =
  { readonly kind: 'ready' } | { readonly kind: 'written'; readonly fromMs: number; readonly toMs: number };

const attempts = 20;
/** A connection to a published port closes soon if nothing listens in the container yet. */
const settleMs = 300;

async function open(port: number): Promise<Socket> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const socket = connect(port, '127.0.0.1').setNoDelay();
    socket.on('error', () => undefined);
    socket.resume();
    await sleep(settleMs);
    if (socket.readyState === 'open') return socket;
    socket.destroy();
  }
  throw new Error(`no process listens behind the published port ${port}`);
}

async function write(sockets: readonly Socket[], { linesPerSecond, linesEach }: WriterOrder): Promise<void> {
  const each = sockets.map((socket) =>
    atPace(linesPerSecond, linesEach, (from, to) => {
      if (socket.writableNeedDrain) return from;
      const now = wallMs();
      let text = '';
      for (let number = from; number < to; number++) text += `${makeLine(number, now)}\n`;
      socket.write(text);
      return to;
    }),
  );
  await Promise.all(each);
}

const send = (message: WriterMessage): void => void process.send?.(message);

async function main(order: WriterOrder): Promise<void> {
  const sockets = await Promise.all(order.ports.map(open));
  send({ kind: 'ready' });
  process.once('message', () => {
    const fromMs = wallMs();
    void write(sockets, order).then(() => send({ kind: 'written', fromMs, toMs: wallMs() }));
  });
}

// A container ends with its connection, so connections stay open until the benchmark is done.
process.once('disconnect', () => process.exit());
process.once('message', (order: WriterOrder) => void main(order));
