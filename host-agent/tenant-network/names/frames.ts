/** DNS over TCP: each message has its length before it (RFC 1035, section 4.2.2). */
import type { Socket } from 'node:net';

const lengthBytes = 2;

export function framed(message: Buffer): Buffer {
  const bytes = Buffer.alloc(lengthBytes + message.byteLength);
  bytes.writeUInt16BE(message.byteLength);
  message.copy(bytes, lengthBytes);
  return bytes;
}

/** The messages that arrive whole. Reads no more while the last one is in use. */
export async function* framesOf(socket: Socket): AsyncGenerator<Buffer, void> {
  let held: Buffer = Buffer.alloc(0);
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    held = held.byteLength === 0 ? chunk : Buffer.concat([held, chunk]);
    while (held.byteLength >= lengthBytes) {
      const end = lengthBytes + held.readUInt16BE();
      if (held.byteLength < end) break;
      const message = Buffer.from(held.subarray(lengthBytes, end));
      held = held.subarray(end);
      yield message;
    }
  }
}
