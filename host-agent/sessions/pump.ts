/** Joins a stream of the host to a tunnel: neither side reads faster than the other takes. */
import type { Duplex } from 'node:stream';
import type { Tunnel } from '../../lib/tunnel/tunnel.ts';
import { limits } from '../../schemas/limits.ts';

/** Bytes of one channel of the tunnel. */
export interface Piece {
  readonly channel: number;
  readonly bytes: Uint8Array;
}

export interface PumpParts {
  readonly stream: Duplex;
  readonly tunnel: Tunnel;
  /** The pieces of a chunk of the stream for the client; may throw. */
  readonly split: (chunk: Buffer) => readonly Piece[];
  /** The stream has been read to its end, and all of it was sent. */
  readonly onRead: () => void;
  readonly onFailed: (error: Error) => void;
  /** The stream takes no more writes, after it has been read to its end. */
  readonly onClosed?: () => void;
}

export class Pump {
  readonly #parts: PumpParts;
  /** Pieces that were read, and for which the tunnel has no room yet. */
  #pieces: Piece[] = [];
  #isRead = false;
  #isOver = false;
  /** Bytes that were written, and that the stream has not taken yet. */
  #unwritten = 0;

  constructor(parts: PumpParts) {
    this.#parts = parts;
    const { stream } = parts;
    stream.on('readable', () => this.pump());
    stream.once('end', () => {
      this.#isRead = true;
      this.pump();
    });
    stream.on('drain', () => this.#drained());
    stream.on('error', (error) => this.#fail(error));
    stream.once('close', () => {
      if (this.#isRead) parts.onClosed?.();
      else this.#fail(new Error('the connection broke'));
    });
  }

  /** Reads as much as there is room for. */
  pump(): void {
    if (this.#isOver) return;
    const { stream, tunnel } = this.#parts;
    for (;;) {
      if (!this.#sendPieces()) return;
      if (this.#isRead) {
        this.#isOver = true;
        this.#parts.onRead();
        return;
      }
      const size = Math.min(stream.readableLength, tunnel.room(), limits.tunnelMessageBytes);
      if (tunnel.room() === 0) return;
      // `read` without a size asks for more, and returns null.
      const chunk = (size === 0 ? stream.read() : stream.read(size)) as Buffer | null;
      if (chunk === null) return;
      try {
        this.#pieces = [...this.#parts.split(chunk)];
      } catch (error) {
        this.#fail(error instanceof Error ? error : new Error(String(error)));
        return;
      }
    }
  }

  /** Writes the client's bytes. */
  write(bytes: Uint8Array): void {
    const { stream, tunnel } = this.#parts;
    if (!stream.writable) {
      // Nobody reads the stream any more.
      tunnel.took(bytes.length);
      return;
    }
    this.#unwritten += bytes.length;
    if (stream.write(bytes)) this.#drained();
  }

  /** The client sends no more. */
  endWrites(): void {
    this.#parts.stream.end();
  }

  stop(): void {
    this.#isOver = true;
    this.#parts.stream.destroy();
  }

  /** @returns `false` if there is no room for all of them */
  #sendPieces(): boolean {
    const { tunnel } = this.#parts;
    for (let first = this.#pieces[0]; first !== undefined; first = this.#pieces[0]) {
      const part = first.bytes.subarray(0, tunnel.room());
      if (part.length === 0 && first.bytes.length > 0) return false;
      tunnel.data(first.channel, part);
      if (part.length === first.bytes.length) this.#pieces.shift();
      else this.#pieces[0] = { ...first, bytes: first.bytes.subarray(part.length) };
    }
    return true;
  }

  #drained(): void {
    this.#parts.tunnel.took(this.#unwritten);
    this.#unwritten = 0;
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#parts.onFailed(error);
  }
}
