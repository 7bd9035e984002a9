/**
 * Joins the WebSocket of a client to the tunnel of its session. Neither can be stopped from sending
 * by not reading, so both have windows: a client that exceeds its own is closed, and the host sends
 * no more than the client has read.
 */
import type { Clock } from '../../lib/time/clock.ts';
import { DecodeError, decoder } from '../../lib/decode.ts';
import type { Tunnel, TunnelPort } from '../../lib/tunnel/tunnel.ts';
import { HostControl } from '../../schemas/api/sessions/control.ts';
import { limits } from '../../schemas/limits.ts';
import { KiB, seconds } from '../../schemas/limits/units.ts';
import type { SessionEnd } from '../../schemas/wire/session.ts';
import type { ClientSocket, ClientSocketListener } from '../http/engine/sockets/client-socket.ts';
import { closeOf } from './close.ts';
import type { Framing } from './framing.ts';

/** Time between two pings. */
const webSocketPingMs = 30 * seconds;

/** Small messages of a client are joined up to this. */
const sessionPieceBytes = 4 * KiB;

const decodeHostControl = decoder(HostControl);

export interface BridgeParts {
  readonly tunnel: Tunnel;
  readonly framing: Framing;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** True while the token that opened the session is valid. */
  readonly isStillGood: () => boolean;
}

export interface Passed {
  readonly end: SessionEnd;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** `null` if the host has not sent one. */
  readonly exitCode: number | null;
}

export class Bridge implements ClientSocketListener, TunnelPort {
  readonly #parts: BridgeParts;
  #socket: ClientSocket | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Data of the client that the host has no room for yet; `end` if the client sends no more. */
  readonly #waiting: (Uint8Array | 'end')[] = [];
  /** Bytes that the client may still send, and those of them that it has not heard of yet. */
  #allowed: number = limits.tunnelWindowBytes;
  #unsaid = 0;
  /** Sent to the client, and perhaps not read yet. */
  #unread = 0;
  #activeAtMs: number;
  #heardAtMs: number;
  #pingedAtMs: number;
  #bytesIn = 0;
  #bytesOut = 0;
  #exitCode: number | null = null;
  #resolve: (end: SessionEnd) => void = () => {};
  readonly #ending = new Promise<SessionEnd>((resolve) => (this.#resolve = resolve));
  #isPumpDue = false;

  constructor(parts: BridgeParts) {
    this.#parts = parts;
    this.#activeAtMs = this.#heardAtMs = this.#pingedAtMs = parts.clock.monotonicMs();
  }

  /** Resolves when the session is over. */
  async pass(socket: ClientSocket): Promise<Passed> {
    this.#socket = socket;
    this.#timer = setInterval(() => this.#look(), limits.sessionLookMs);
    this.#parts.tunnel.attach(this);
    const end = await this.#ending;
    clearInterval(this.#timer);
    return { end, bytesIn: this.#bytesIn, bytesOut: this.#bytesOut, exitCode: this.#exitCode };
  }

  // The client

  onMessage(bytes: Uint8Array, isBinary: boolean): void {
    this.#heard();
    if (this.#parts.tunnel.ended !== undefined) return;
    const message = this.#parts.framing.read(bytes, isBinary);
    switch (message.kind) {
      case 'fault':
        this.#end({ reason: 'invalid', message: message.fault });
        return;
      case 'data':
        this.#take(message.bytes);
        return;
      case 'control':
        if (message.control.type === 'end') {
          // Behind the bytes that wait.
          this.#waiting.push('end');
          this.#pumpSoon();
        } else if (!this.#parts.tunnel.control(message.control)) {
          this.#end({ reason: 'over_window', message: 'more control messages than the host has dealt with' });
        }
    }
  }

  onPong(): void {
    this.#heardAtMs = this.#parts.clock.monotonicMs();
  }

  onDrain(): void {
    this.#parts.tunnel.took(this.#unread);
    this.#unread = 0;
  }

  onClose(): void {
    this.#socket = undefined;
    this.#end({ reason: 'left', message: 'the client has left' });
  }

  // The host

  onData(channel: number, bytes: Uint8Array): void {
    this.#activeAtMs = this.#parts.clock.monotonicMs();
    this.#bytesOut += bytes.length;
    this.#unread += bytes.length;
    if (this.#socket?.send(this.#parts.framing.data(channel, bytes)) === true) this.onDrain();
  }

  onControl(text: string): void {
    try {
      const control = decodeHostControl(Buffer.from(text));
      if (control.type === 'exit') this.#exitCode = control.code;
      this.#socket?.send(this.#parts.framing.control(control));
    } catch (error) {
      // A later release may say more.
      if (!(error instanceof DecodeError)) throw error;
    }
    this.#parts.tunnel.tookControl();
  }

  onRoom(): void {
    this.#pump();
  }

  onEnd(end: SessionEnd): void {
    const { code, reason } = closeOf(end);
    this.#socket?.close(code, reason);
    this.#resolve(end);
  }

  #end(end: SessionEnd): void {
    this.#parts.tunnel.end(end);
  }

  #heard(): void {
    this.#activeAtMs = this.#heardAtMs = this.#parts.clock.monotonicMs();
  }

  #take(bytes: Uint8Array): void {
    this.#allowed -= bytes.length;
    if (this.#allowed < 0) {
      this.#end({ reason: 'over_window', message: 'more bytes than the window had room for' });
      return;
    }
    this.#bytesIn += bytes.length;
    const last = this.#waiting.at(-1);
    if (last === undefined || last === 'end' || last.length + bytes.length > sessionPieceBytes) {
      if (bytes.length > 0) this.#waiting.push(bytes);
    } else this.#waiting[this.#waiting.length - 1] = Buffer.concat([last, bytes]);
    this.#pumpSoon();
  }

  /** Many small messages that come together go on as few. */
  #pumpSoon(): void {
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    setImmediate(() => {
      this.#isPumpDue = false;
      this.#pump();
    });
  }

  /** Sends what waits, as far as the host has room for it. */
  #pump(): void {
    const { tunnel } = this.#parts;
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (first === 'end') {
        if (!tunnel.control({ type: 'end' })) break;
        this.#waiting.shift();
        continue;
      }
      const part = first.subarray(0, tunnel.room());
      if (part.length === 0) break;
      tunnel.data(0, part);
      this.#unsaid += part.length;
      if (part.length === first.length) this.#waiting.shift();
      else this.#waiting[0] = first.subarray(part.length);
    }
    if (this.#unsaid < limits.tunnelCreditBytes) return;
    this.#allowed += this.#unsaid;
    this.#socket?.send(this.#parts.framing.control({ type: 'window', bytes: this.#unsaid }));
    this.#unsaid = 0;
  }

  #look(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    if (!this.#parts.isStillGood()) {
      this.#end({ reason: 'unauthenticated', message: 'the token has expired or was revoked' });
    } else if (nowMs - this.#activeAtMs >= limits.sessionIdleMs) {
      this.#end({ reason: 'idle', message: `nothing passed for ${limits.sessionIdleMs / 60_000} minutes` });
    } else if (nowMs - this.#heardAtMs >= limits.webSocketSilentMs) {
      this.#end({ reason: 'left', message: 'the client does not answer pings' });
    } else if (nowMs - this.#pingedAtMs >= webSocketPingMs) {
      this.#pingedAtMs = nowMs;
      this.#socket?.ping();
    }
  }
}
