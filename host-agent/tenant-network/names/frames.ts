/** DNS over TCP: each message has its length before it (RFC 1035, section 4.2.2). */
import type { Socket } from 'node:net';

const lengthBytes = 2;

export function framed(message: Buffer): Buffer {
  const bytes = Buffer.alloc(lengthBytes + message.byteLength);
  bytes.writeUInt16BE(message.byteLength);
  message.copy(bytes, lengthBytes);
  return bytes;
}

/** Calls `onMessage` for each message that arrives whole. */
export function frames(socket: Socket, onMessage: (message: Buffer) => void): void {
  let held: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    held = held.byteLength === 0 ? chunk : Buffer.concat([held, chunk]);
    while (held.byteLength >= lengthBytes) {
      const end = lengthBytes + held.readUInt16BE();
      if (held.byteLength < end) return;
      const message = Buffer.from(held.subarray(lengthBytes, end));
      held = held.subarray(end);
      onMessage(message);
    }
  });
}
