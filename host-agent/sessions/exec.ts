/**
 * A process in a container, beside its own. The engine starts it and can't end it, so the agent
 * kills it when its session ends, with all that it has started (process-tree.ts).
 */
import { PassThrough, type Duplex } from 'node:stream';
import type { Log } from '../../lib/log.ts';
import { decoder } from '../../lib/decode.ts';
import type { Tunnel, TunnelPort } from '../../lib/tunnel/tunnel.ts';
import type { Permits } from '../../lib/permits.ts';
import { ClientControl, type ExecSignal, type HostControl } from '../../schemas/api/sessions/control.ts';
import { limits } from '../../schemas/limits.ts';
import type { ExecAbout } from '../../schemas/wire/session.ts';
import type { ExecCalls } from '../docker/calls/exec.ts';
import { Demultiplexer } from '../docker/demux.ts';
import { ExecProcess, type ExecName } from './exec-process.ts';
import type { ExecRecord } from './exec-record.ts';
import { faultInAnswer, faultInOutput, loggedFault, sessionFault, type NotStarted } from './faults.ts';
import type { ProcessTree } from './process-tree.ts';
import { Pump, type Piece } from './pump.ts';
import type { SessionKind } from './sessions.ts';

const decodeControl = decoder(ClientControl);
const stdout = 1;
const stderr = 2;

export interface ExecParts {
  readonly permits: Permits;
  readonly engine: ExecCalls;
  /** `undefined` if the engine is on another machine, whose processes the agent does not see. */
  readonly processes: ProcessTree | undefined;
  readonly record: Pick<ExecRecord, 'begin' | 'ended'>;
  readonly log: Log;
}

export const execKind = (parts: ExecParts): SessionKind => ({
  name: 'exec',
  permits: parts.permits,
  logLevel: 'info',
  isOf: ({ exec }) => exec !== undefined,
  open: async ({ dockerId }, { exec }, tunnel) => {
    if (exec === undefined) return { reason: 'unsupported' };
    const { command, tty, stdin, user, workdir } = exec;
    const created = await parts.engine.createExec(dockerId, {
      Cmd: command,
      Tty: tty,
      AttachStdin: stdin,
      ...(user === undefined ? {} : { User: user }),
      ...(workdir === undefined ? {} : { WorkingDir: workdir }),
    });
    if (created.kind === 'not_running') return { reason: 'not_running', message: 'the container does not run' };
    // A client that left meanwhile has no process.
    if (tunnel.ended !== undefined) return tunnel.ended;
    return new Exec(parts, { id: created.id, dockerId }, exec, tunnel).start();
  },
});

class Exec {
  readonly #parts: ExecParts;
  readonly #name: ExecName;
  readonly #process: ExecProcess;
  readonly #tty: boolean;
  readonly #tunnel: Tunnel;
  /** The newest size that the engine does not have yet. */
  #size: { readonly cols: number; readonly rows: number } | undefined;
  #isResizing = false;
  /** The reason why the engine could not start the process. */
  #fault: NotStarted | undefined;

  constructor(parts: ExecParts, name: ExecName, { tty }: ExecAbout, tunnel: Tunnel) {
    this.#parts = parts;
    this.#name = name;
    this.#process = new ExecProcess(parts.engine, parts.processes, name);
    this.#tty = tty;
    this.#tunnel = tunnel;
  }

  async start(): Promise<TunnelPort> {
    const { engine, processes, record } = this.#parts;
    const tunnel = this.#tunnel;
    await record.begin(this.#name);
    let stream: Duplex;
    try {
      stream = await engine.startExec(this.#name.id, this.#tty);
    } catch (error) {
      const fault = faultInAnswer(error);
      if (fault === undefined) throw error;
      this.#fault = fault;
      stream = new PassThrough().end(fault.message);
    }
    const pump = new Pump({
      stream,
      tunnel,
      split: this.#split(this.#tty || this.#fault !== undefined ? (bytes) => [{ channel: stdout, bytes }] : framesOf()),
      onRead: () => void this.#finish(),
      onFailed: (error) => this.#fail(error),
    });
    let isStarted = false;
    return {
      onData: (_channel, bytes) => pump.write(bytes),
      onControl: (text) => {
        const control = decodeControl(Buffer.from(text));
        if (control.type === 'end') pump.endWrites();
        if (control.type === 'resize') this.#resize(control);
        // Counts as handled once it is sent, so that few are under way.
        if (control.type === 'signal') void this.#signal(control.signal).finally(() => tunnel.tookControl());
        else tunnel.tookControl();
      },
      onRoom: () => {
        if (!isStarted) isStarted = this.#say({ type: 'started', ends_process: processes !== undefined });
        pump.pump();
      },
      onEnd: () => {
        pump.stop();
        void this.#kill();
      },
    };
  }

  #fail(error: unknown): void {
    this.#parts.log.warn('exec_failed', { container: this.#name.dockerId, ...loggedFault(error) });
    this.#tunnel.end({ reason: 'failed', message: sessionFault(error) });
  }

  /** The engine may report in the stream that it could not start the process. */
  #split(split: (chunk: Buffer) => Piece[]): (chunk: Buffer) => Piece[] {
    let isFirst = true;
    return (chunk) =>
      split(chunk).map((piece) => {
        if (!isFirst) return piece;
        isFirst = false;
        this.#fault ??= faultInOutput(piece.bytes);
        return this.#fault === undefined ? piece : this.#faultPiece(this.#fault);
      });
  }

  /**
   * The fault as a piece of the stream. It is never in the output of a program, which may go into a
   * file.
   */
  #faultPiece({ message }: NotStarted): Piece {
    return this.#tty
      ? { channel: stdout, bytes: Buffer.from(`${message}\r\n`) }
      : { channel: stderr, bytes: Buffer.from(`${message}\n`) };
  }

  #say(control: HostControl): boolean {
    return this.#tunnel.control(control);
  }

  /** The output has ended, and with it the process or soon after. */
  async #finish(): Promise<void> {
    const tunnel = this.#tunnel;
    try {
      const ended = await this.#process.exitCode();
      // A program may print the same text as the engine.
      const mayBeFault = ended === undefined || ended === 126 || ended === 127;
      const code = mayBeFault ? (this.#fault?.code ?? ended) : ended;
      if (code === undefined) {
        tunnel.end({ reason: 'not_running', message: 'the container has ended' });
        return;
      }
      this.#say({ type: 'exit', code });
      tunnel.end({ reason: 'done' });
    } catch (error) {
      this.#fail(error);
    }
  }

  /** One size at a time: of the sizes that come meanwhile, the last counts. */
  #resize(size: { readonly cols: number; readonly rows: number }): void {
    this.#size = size;
    if (this.#isResizing) return;
    this.#isResizing = true;
    const { engine, log } = this.#parts;
    void (async () => {
      for (let next = this.#size; next !== undefined; next = this.#size) {
        this.#size = undefined;
        try {
          await engine.resizeExec(this.#name.id, next);
        } catch (error) {
          log.info('exec_resize_failed', { container: this.#name.dockerId, ...loggedFault(error) });
          this.#say({ type: 'error', message: 'the size of the terminal could not be set' });
        }
      }
      this.#isResizing = false;
    })();
  }

  async #signal(signal: ExecSignal): Promise<void> {
    try {
      await this.#process.signal(signal);
    } catch (error) {
      this.#parts.log.info('exec_signal_failed', { container: this.#name.dockerId, signal, ...loggedFault(error) });
      this.#say({ type: 'error', message: 'the signal could not be sent: the process may have ended' });
    }
  }

  /** Ends its remaining processes. */
  async #kill(): Promise<void> {
    const { log, record } = this.#parts;
    try {
      await this.#process.kill();
      record.ended(this.#name);
    } catch (error) {
      log.warn('exec_kill_failed', { exec: this.#name.id, container: this.#name.dockerId, error });
    }
  }
}

function framesOf(): (chunk: Buffer) => Piece[] {
  const demultiplexer = new Demultiplexer(limits.engineLineBytes);
  return (chunk) =>
    demultiplexer
      .push(chunk)
      .map(({ stream, payload }) => ({ channel: stream === 'stdout' ? stdout : stderr, bytes: payload }));
}
