/**
 * A process that writes lines into containers: each listens on a port, and prints what comes there.
 */
import { connect, type Socket } from 'node:net';
import { sleep } from '../../lib/backoff.ts';
import { atPace, makeLine, wallMs } from './line.ts';

export interface WriterOrder {
  readonly ports: readonly number[];
  readonly linesPerSecond: number;
  readonly linesEach: number;
}

export type WriterWord =
  { readonly kind: 'ready' } | { readonly kind: 'written'; readonly fromMs: number; readonly toMs: number };

const attempts = 20;
/** A port is published before anybody listens behind it; then a connection is closed again. */
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
  throw new Error(`nobody listens behind port ${port}`);
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

const tell = (word: WriterWord): void => void process.send?.(word);

async function main(order: WriterOrder): Promise<void> {
  const sockets = await Promise.all(order.ports.map(open));
  tell({ kind: 'ready' });
  process.once('message', () => {
    const fromMs = wallMs();
    void write(sockets, order).then(() => tell({ kind: 'written', fromMs, toMs: wallMs() }));
  });
}

// The containers end with their connections: these are kept until the bench is done.
process.once('disconnect', () => process.exit());
process.once('message', (order: WriterOrder) => void main(order));
