/**
 * `POST /:id/runs`: a process in the container whose output is the answer, for programs without
 * WebSocket. It is a session as that of an exec, without input.
 */
import { DecodeError, decoder } from '../../lib/decode.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Tunnel, TunnelPort } from '../../lib/tunnel/tunnel.ts';
import { HostControl } from '../../schemas/api/sessions/control.ts';
import { limits } from '../../schemas/limits.ts';
import type { SessionEnd } from '../../schemas/wire/session.ts';
import { failure, ok, type Result } from '../http/respond.ts';
import type { Passed } from './bridge.ts';

const decodeHostControl = decoder(HostControl);

const [stdout, stderr] = [1, 2];

export interface RunParts {
  readonly tunnel: Pick<Tunnel, 'attach' | 'took' | 'tookControl' | 'end'>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly timeoutMs: number;
  /** True while the token that asked is valid. */
  readonly isStillGood: () => boolean;
}

/** One end of the tunnel of a session, which keeps what comes. */
export class Run implements TunnelPort {
  readonly #parts: RunParts;
  readonly #output = new Map<number, Uint8Array[]>([
    [stdout, []],
    [stderr, []],
  ]);
  #bytes = 0;
  #exitCode: number | null = null;
  #isTooLate = false;
  #resolve: (end: SessionEnd) => void = () => {};
  readonly #ending = new Promise<SessionEnd>((resolve) => (this.#resolve = resolve));

  constructor(parts: RunParts) {
    this.#parts = parts;
  }

  /** Resolves when the session is over. */
  async pass(): Promise<Passed & { readonly answer: Result }> {
    const { tunnel, clock, timeoutMs, isStillGood } = this.#parts;
    const untilMs = clock.monotonicMs() + timeoutMs;
    const timer = setInterval(() => {
      if (!isStillGood()) tunnel.end({ reason: 'unauthenticated', message: 'the token has expired or was revoked' });
      else if (clock.monotonicMs() >= untilMs) this.#endLate();
    }, limits.sessionLookMs);
    tunnel.attach(this);
    const end = await this.#ending;
    clearInterval(timer);
    return { end, bytesIn: 0, bytesOut: this.#bytes, exitCode: this.#exitCode, answer: this.#answerOf(end) };
  }

  /** The client has left. */
  leave(): void {
    this.#parts.tunnel.end({ reason: 'left', message: 'the client has left' });
  }

  onData(channel: number, bytes: Uint8Array): void {
    const room = limits.runOutputBytes - this.#bytes;
    if (room > 0) this.#output.get(channel)?.push(bytes.slice(0, room));
    this.#bytes += bytes.length;
    this.#parts.tunnel.took(bytes.length);
  }

  onControl(text: string): void {
    try {
      const control = decodeHostControl(Buffer.from(text));
      if (control.type === 'exit') this.#exitCode = control.code;
    } catch (error) {
      // A later release may say more.
      if (!(error instanceof DecodeError)) throw error;
    }
    this.#parts.tunnel.tookControl();
  }

  onRoom(): void {
    // Nothing is sent.
  }

  onEnd(end: SessionEnd): void {
    this.#resolve(end);
  }

  /** The host ends the process with its session. */
  #endLate(): void {
    this.#isTooLate = true;
    this.#parts.tunnel.end({ reason: 'left', message: 'its time is over' });
  }

  #answerOf({ reason, message }: SessionEnd): Result {
    if (this.#exitCode !== null) {
      return ok({
        exit_code: this.#exitCode,
        stdout: this.#textOf(stdout),
        stderr: this.#textOf(stderr),
        truncated: this.#bytes > limits.runOutputBytes,
      });
    }
    if (reason === 'unauthenticated') return failure('unauthenticated');
    if (this.#isTooLate) return failure('timeout', 'the process did not end in time, and was ended');
    return failure('timeout', `it is not known whether the process has ended: ${message ?? reason}`);
  }

  #textOf(channel: number): string {
    return Buffer.concat(this.#output.get(channel) ?? []).toString();
  }
}
