/**
 * One end of the tunnel of a session, between a gateway and a host. It numbers what it sends, and
 * ends when a message of the other end is missing, since NATS delivers each at most once. It sends
 * no more than the other end has room for, and hears from it at least every few seconds.
 *
 * It has no timer of its own: who holds it calls `look`.
 */
import type { Clock } from '../time/clock.ts';
import { decoder } from '../decode.ts';
import { limits } from '../../schemas/limits.ts';
import { SessionEnd, sessionReasonOf } from '../../schemas/wire/session.ts';
import {
  decodeTunnelMessage,
  encodeTunnelMessage,
  numberAfter,
  type TunnelMessage,
} from '../../schemas/wire/tunnel.ts';
import { seconds } from '../../schemas/limits/units.ts';

/** Control messages that may be sent before the other end has dealt with them. */
export const tunnelWindowControls = 64;
/** An end that has sent nothing for this long says that it is there. */
export const tunnelBeatMs = 3 * seconds;
/** An end that has heard nothing for this long takes the other for gone. */
export const tunnelSilentMs = 10 * seconds;

const decodeEnd = decoder(SessionEnd);

/** The part of a program that uses an end. */
export interface TunnelPort {
  /** Calls `took` when it has room for so many more bytes. The bytes stay as they are. */
  onData(channel: number, bytes: Uint8Array): void;
  /** Calls `tookControl` when it has dealt with it. */
  onControl(text: string): void;
  /** There is room to send again. */
  onRoom(): void;
  /** Called once, whichever end it was; nothing follows. */
  onEnd(end: SessionEnd): void;
}

export interface TunnelParts {
  /** Sends to the other end; may throw. */
  readonly publish: (message: Uint8Array) => void;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** The other end has attached its port, and hears. */
  readonly onOpened?: () => void;
  /** Called once, before the port's `onEnd`. */
  readonly onEnded: (end: SessionEnd) => void;
}

/** Bytes and control messages that may be sent, or that were taken and are not given back yet. */
interface Window {
  bytes: number;
  controls: number;
}

export class Tunnel {
  readonly #parts: TunnelParts;
  #port: TunnelPort | undefined;
  /** Window of this end: what it may still send. */
  readonly #room: Window = { bytes: 0, controls: 0 };
  /** Window of the other end: what it may still send. */
  readonly #granted: Window = { bytes: 0, controls: 0 };
  /** Taken, and not given back yet. */
  readonly #taken: Window = { bytes: 0, controls: 0 };
  #isOpened = false;
  #sends = 0;
  #hears = 0;
  #sentAtMs: number;
  #heardAtMs: number;
  #end: SessionEnd | undefined;

  constructor(parts: TunnelParts) {
    this.#parts = parts;
    this.#sentAtMs = this.#heardAtMs = parts.clock.monotonicMs();
  }

  /** Reason for its end; `undefined` while it is open. */
  get ended(): SessionEnd | undefined {
    return this.#end;
  }

  /** From now on the other end may send, and this port hears it. */
  attach(port: TunnelPort): void {
    this.#port = port;
    if (this.#end !== undefined) port.onEnd(this.#end);
    else this.#grant({ bytes: limits.tunnelWindowBytes, controls: tunnelWindowControls });
  }

  /** The bytes that may be sent now. */
  room(): number {
    return this.#end === undefined ? this.#room.bytes : 0;
  }

  /** Sends bytes, no more than there is room for. */
  data(channel: number, bytes: Uint8Array): void {
    if (bytes.length > this.room()) throw new Error(`${bytes.length} bytes, and room for ${this.room()}`);
    this.#room.bytes -= bytes.length;
    for (let from = 0; from < bytes.length; from += limits.tunnelMessageBytes) {
      this.#send({ kind: 'data', channel, bytes: bytes.subarray(from, from + limits.tunnelMessageBytes) });
    }
  }

  /** False: the other end has not dealt with enough of the earlier ones; this one is not sent. */
  control(value: object): boolean {
    if (this.#end !== undefined || this.#room.controls === 0) return false;
    this.#room.controls--;
    this.#send({ kind: 'control', text: JSON.stringify(value) });
    return true;
  }

  took(bytes: number): void {
    this.#taken.bytes += bytes;
    this.#giveBack();
  }

  tookControl(): void {
    this.#taken.controls++;
    this.#giveBack();
  }

  /** Ends the tunnel at both ends. Messages that were sent before arrive before. */
  end(end: SessionEnd): void {
    if (this.#end !== undefined) return;
    const { reason, message } = end;
    const told = message === undefined ? end : { reason, message: message.slice(0, limits.sessionReasonChars) };
    this.#send({ kind: 'end', text: JSON.stringify(told) });
    this.#over(end);
  }

  /** A message of the other end. */
  receive(encoded: Uint8Array): void {
    if (this.#end !== undefined) return;
    const decoded = decodeTunnelMessage(encoded);
    if (decoded === undefined) {
      this.end({ reason: 'invalid', message: 'a message between gateway and host can’t be read' });
      return;
    }
    if (decoded.number !== this.#hears) {
      this.end({ reason: 'lost', message: 'a message between gateway and host was lost' });
      return;
    }
    this.#hears = numberAfter(this.#hears);
    this.#heardAtMs = this.#parts.clock.monotonicMs();
    this.#take(decoded.message);
  }

  /** Called every `limits.sessionLookMs`. */
  look(): void {
    if (this.#end !== undefined) return;
    const nowMs = this.#parts.clock.monotonicMs();
    if (nowMs - this.#heardAtMs >= tunnelSilentMs) {
      this.end({ reason: 'lost', message: 'gateway and host no longer hear each other' });
    } else if (nowMs - this.#sentAtMs >= tunnelBeatMs) this.#send({ kind: 'beat' });
  }

  #take(message: TunnelMessage): void {
    switch (message.kind) {
      case 'data':
        this.#granted.bytes -= message.bytes.length;
        if (this.#granted.bytes < 0) this.#overWindow();
        else this.#port?.onData(message.channel, message.bytes);
        return;
      case 'control':
        this.#granted.controls--;
        if (this.#granted.controls < 0 || message.text.length > limits.tunnelControlBytes) this.#overWindow();
        else this.#port?.onControl(message.text);
        return;
      case 'credit':
        this.#room.bytes = Math.min(this.#room.bytes + message.bytes, limits.tunnelWindowBytes);
        this.#room.controls = Math.min(this.#room.controls + message.controls, tunnelWindowControls);
        if (!this.#isOpened) this.#parts.onOpened?.();
        this.#isOpened = true;
        this.#port?.onRoom();
        return;
      case 'beat':
        return;
      case 'end':
        this.#over(endIn(message.text));
    }
  }

  #overWindow(): void {
    this.end({ reason: 'over_window', message: 'the other end sent more than there was room for' });
  }

  #giveBack(): void {
    const { bytes, controls } = this.#taken;
    if (bytes < limits.tunnelCreditBytes && controls < tunnelWindowControls / 2) return;
    this.#taken.bytes = this.#taken.controls = 0;
    this.#grant({ bytes, controls });
  }

  #grant({ bytes, controls }: Readonly<Window>): void {
    if (this.#end !== undefined) return;
    this.#granted.bytes += bytes;
    this.#granted.controls += controls;
    this.#send({ kind: 'credit', bytes, controls });
  }

  #send(message: TunnelMessage): void {
    if (this.#end !== undefined) return;
    this.#sentAtMs = this.#parts.clock.monotonicMs();
    const encoded = encodeTunnelMessage(this.#sends, message);
    this.#sends = numberAfter(this.#sends);
    try {
      this.#parts.publish(encoded);
    } catch {
      this.#over({ reason: 'lost', message: 'there is no connection to NATS' });
    }
  }

  #over(end: SessionEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#parts.onEnded(end);
    this.#port?.onEnd(end);
  }
}

function endIn(text: string): SessionEnd {
  try {
    const { reason, message } = decodeEnd(new TextEncoder().encode(text));
    return { reason: sessionReasonOf(reason), ...(message === undefined ? {} : { message }) };
  } catch {
    return { reason: 'failed', message: 'the other end gave no reason that can be read' };
  }
}
