/**
 * A connection to strongSwan's daemon over its socket. One command is under way at a time, because
 * answers do not say what they answer; events come at any time.
 */
import { connect, type Socket } from 'node:net';
import { seconds } from '../../../schemas/limits/units.ts';
import { ViciError, type ReadSection, type Section } from './message.ts';
import { PacketReader, registerPacket, requestPacket, type Packet } from './packet.ts';

const answerMs = 5 * seconds;

export interface ViciEvents {
  /** Of those that were registered for. */
  readonly onEvent: (name: string, message: ReadSection) => void;
  /** Called once, when the daemon is gone or has said what is no packet. */
  readonly onClose: (error: Error) => void;
}

type Answer = Exclude<Packet, { kind: 'event' }>;

export class ViciClient {
  readonly #socket: Socket;
  readonly #events: ViciEvents;
  readonly #reader = new PacketReader();
  #turn: Promise<unknown> = Promise.resolve();
  #settle: ((answer: Answer | Error) => void) | undefined;
  #closed: Error | undefined;

  private constructor(socket: Socket, events: ViciEvents) {
    this.#socket = socket;
    this.#events = events;
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('error', (error) => this.#close(error));
    socket.on('close', () => this.#close(new ViciError('strongSwan has closed the connection')));
  }

  /** Rejects where nobody listens. */
  static async open(path: string, events: ViciEvents): Promise<ViciClient> {
    const socket = connect(path);
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.removeListener('error', reject);
        resolve();
      });
    });
    return new ViciClient(socket, events);
  }

  /** @throws ViciError, also where the daemon says that it did not succeed */
  async call(command: string, message: Section = {}): Promise<ReadSection> {
    const answer = await this.#ask(command, requestPacket(command, message));
    if (answer.kind !== 'response') throw new ViciError(`strongSwan does not know ${command}`);
    const { success = 'yes', errmsg } = answer.message;
    if (success !== 'yes') throw new ViciError(`strongSwan refuses ${command}: ${String(errmsg)}`);
    return answer.message;
  }

  /** @throws ViciError */
  async listen(event: string): Promise<void> {
    const answer = await this.#ask(event, registerPacket(event));
    if (answer.kind !== 'confirmed') throw new ViciError(`strongSwan does not know the event ${event}`);
  }

  close(): void {
    this.#close(new ViciError('the connection was closed'));
  }

  #ask(what: string, packet: Buffer): Promise<Answer> {
    const asked = this.#turn.then(() => this.#askNow(what, packet));
    this.#turn = asked.catch(() => undefined);
    return asked;
  }

  async #askNow(what: string, packet: Buffer): Promise<Answer> {
    if (this.#closed !== undefined) throw this.#closed;
    const answered = new Promise<Answer | Error>((resolve) => (this.#settle = resolve));
    // A later answer could be taken for that of the next command.
    const late = setTimeout(
      () => this.#close(new ViciError(`strongSwan has not answered ${what} within ${answerMs} ms`)),
      answerMs,
    );
    this.#socket.write(packet);
    const answer = await answered;
    clearTimeout(late);
    if (answer instanceof Error) throw answer;
    return answer;
  }

  #read(chunk: Buffer): void {
    try {
      for (const packet of this.#reader.read(chunk)) {
        if (packet.kind === 'event') this.#events.onEvent(packet.name, packet.message);
        else this.#answered(packet);
      }
    } catch (error) {
      this.#close(error instanceof Error ? error : new ViciError(String(error)));
    }
  }

  #answered(answer: Answer | Error): void {
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.(answer);
  }

  #close(error: Error): void {
    if (this.#closed !== undefined) return;
    this.#closed = error;
    this.#socket.destroy();
    this.#answered(error);
    this.#events.onClose(error);
  }
}
