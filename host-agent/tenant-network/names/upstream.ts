/**
 * Asks the name servers of the host about names outside the tenant network. Each container has a
 * bound of questions at a time, so that one that floods does not take the others' turns.
 */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { createConnection, isIPv6, type Socket } from 'node:net';
import { framed, framesOf } from './frames.ts';

export interface UpstreamOptions {
  /** Addresses of name servers, in their order. */
  readonly servers: () => readonly string[];
  /** The port of a name server; 53 except in tests. */
  readonly port?: number;
  /** The most questions at a time, of one container and of all. */
  readonly ofOne: number;
  readonly ofAll: number;
  /** The deadlines for one server, and for all of them. */
  readonly serverMs: number;
  readonly deadlineMs: number;
}

/** `full`: this container, or all of them, have too many questions at a time. */
export type Heard = Buffer | 'full' | 'silent';

const identifierBytes = 2;
const headerBytes = 12;

export class Upstream {
  readonly #options: UpstreamOptions;
  readonly #asking = new Map<string, number>();
  #sum = 0;

  constructor(options: UpstreamOptions) {
    this.#options = options;
  }

  async ask(query: Buffer, source: string, transport: 'udp' | 'tcp'): Promise<Heard> {
    const { ofOne, ofAll } = this.#options;
    const own = this.#asking.get(source) ?? 0;
    if (own >= ofOne || this.#sum >= ofAll) return 'full';
    this.#asking.set(source, own + 1);
    this.#sum++;
    try {
      return (await this.#askEach(query, transport)) ?? 'silent';
    } finally {
      this.#sum--;
      const left = (this.#asking.get(source) ?? 1) - 1;
      if (left === 0) this.#asking.delete(source);
      else this.#asking.set(source, left);
    }
  }

  async #askEach(query: Buffer, transport: 'udp' | 'tcp'): Promise<Buffer | undefined> {
    const { servers, serverMs, deadlineMs, port = 53 } = this.#options;
    const endMs = performance.now() + deadlineMs;
    // A new number: the container chose the other, and may have made it easy to guess.
    const own = Buffer.from(query);
    own.writeUInt16BE(randomInt(2 ** 16));
    for (const address of servers()) {
      const ms = Math.min(serverMs, endMs - performance.now());
      if (ms <= 0) return undefined;
      const answer = await (transport === 'udp' ? askUdp : askTcp)(own, { address, port }, ms);
      if (answer === undefined) continue;
      query.copy(answer, 0, 0, identifierBytes);
      return answer;
    }
    return undefined;
  }
}

interface Server {
  readonly address: string;
  readonly port: number;
}

/** `true` if `answer` belongs to the query: it has its number, and its question. */
function answers(query: Buffer, answer: Buffer): boolean {
  if (answer.byteLength < headerBytes || (answer.readUInt8(2) & 0x80) === 0) return false;
  if (answer.readUInt16BE() !== query.readUInt16BE()) return false;
  // A server that refuses may leave the question out.
  if (answer.readUInt16BE(4) === 0) return true;
  const end = endOfQuestion(query);
  return (
    answer.subarray(headerBytes, end).toString('latin1').toLowerCase() ===
    query.subarray(headerBytes, end).toString('latin1').toLowerCase()
  );
}

function endOfQuestion(query: Buffer): number {
  let at = headerBytes;
  for (let length = query[at]; length !== undefined && length !== 0; length = query[at]) at += length + 1;
  return at + 5;
}

function askUdp(query: Buffer, { address, port }: Server, ms: number): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
    const end = (answer?: Buffer): void => {
      clearTimeout(timer);
      socket.removeAllListeners();
      socket.on('error', () => undefined).close();
      resolve(answer);
    };
    const timer = setTimeout(end, ms);
    socket.on('error', () => end());
    socket.on('message', (answer: Buffer) => {
      if (answers(query, answer)) end(answer);
    });
    // A connected socket: the kernel drops packets of others.
    socket.connect(port, address, () => socket.send(query));
  });
}

function askTcp(query: Buffer, { address, port }: Server, ms: number): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: address, port });
    const end = (answer?: Buffer): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(end, ms);
    socket.on('error', () => end()).on('close', () => end());
    socket.on('connect', () => socket.write(framed(query)));
    void answerIn(socket, query).then(end, () => end());
  });
}

/** Resolves without an answer when the connection ends. */
async function answerIn(socket: Socket, query: Buffer): Promise<Buffer | undefined> {
  for await (const answer of framesOf(socket)) if (answers(query, answer)) return answer;
  return undefined;
}
