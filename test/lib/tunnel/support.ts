/** Two ends of a tunnel in this process. */
import { Tunnel, type TunnelPort } from '../../../lib/tunnel/tunnel.ts';
import type { SessionEnd } from '../../../schemas/wire/session.ts';
import {
  decodeTunnelMessage,
  encodeTunnelMessage,
  type NumberedMessage,
  type TunnelMessage,
} from '../../../schemas/wire/tunnel.ts';

/** Keeps what it hears. */
export class RecordingPort implements TunnelPort {
  readonly seen: string[] = [];
  readonly ends: SessionEnd[] = [];
  bytes = 0;
  taken = 0;
  /** Every byte was the number of its place, modulo 251. */
  inOrder = true;

  onData(channel: number, bytes: Uint8Array): void {
    this.seen.push(`data ${channel} ${bytes.length}`);
    bytes.forEach((byte, index) => (this.inOrder &&= byte === (this.bytes + index) % 251));
    this.bytes += bytes.length;
  }
  onControl(text: string): void {
    this.seen.push(`control ${text}`);
  }
  onRoom(): void {
    this.seen.push('room');
  }
  onEnd(end: SessionEnd): void {
    this.ends.push(end);
  }
}

export const decodeSent = (message: Uint8Array): NumberedMessage | undefined => decodeTunnelMessage(message);

type Side = 'near' | 'far';

/** Two sides of a tunnel: each hears at once what the other sends. */
export function pair() {
  let nowMs = 0;
  const clock = { monotonicMs: () => nowMs };
  const opened: Side[] = [];
  const held: Partial<Record<Side, Uint8Array[]>> = {};
  const counts = { near: 0, far: 0 };
  const end = (side: Side, other: () => Tunnel): Tunnel =>
    new Tunnel({
      clock,
      publish: (message) => {
        counts[side]++;
        if (held[side] === undefined) other().receive(message);
        else held[side].push(message);
      },
      onOpened: () => void opened.push(side),
      onEnded: () => {},
    });
  const near = end('near', () => far);
  const far: Tunnel = end('far', () => near);
  return {
    near,
    far,
    opened,
    nearPort: new RecordingPort(),
    farPort: new RecordingPort(),
    /** From now on what it sends is kept; returns how to see it. */
    hold: (side: Side): (() => Uint8Array[]) => {
      const messages = (held[side] = []);
      return () => messages;
    },
    /** A message with the next number that `near` itself would not send. */
    forge: (message: TunnelMessage): void => far.receive(encodeTunnelMessage(counts.near, message)),
    pass: (ms: number): void => {
      nowMs += ms;
      near.look();
      far.look();
    },
  };
}
