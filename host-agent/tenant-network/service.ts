/**
 * The server of the program: the agent sends the desired state over a unix socket, and gets back
 * which containers are attached. The last desired state is kept on disk, so that after a restart of
 * the machine, and while the agent is away, the network is as it was.
 *
 * `PUT /network` has a DesiredNetwork as its body, and answers with a NetworkState after a pass
 * that has put it in force. 400: the body does not have that form; 409: another agent controls this
 * network; 503: nothing can be done now. `message` has the reason. `GET /peers` answers with
 * ServedPeers, or 503.
 */
import { chmodSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { writePrivateFile } from '../../lib/process/private-file.ts';
import { Doorbell } from '../../lib/time/doorbell.ts';
import { MiB, seconds } from '../../schemas/limits/units.ts';
import type { Keeper } from './keeper.ts';
import { namesKnown } from './names/known.ts';
import { watchLinks } from './watch.ts';
import { DesiredNetwork, type NetworkState, type ServedPeers } from '../../schemas/wire/net.ts';

const decodeDesired = decoder(DesiredNetwork);
/** The most bytes of a body. Ten thousand members take a tenth of it. */
const bodyBytes = 16 * MiB;
const stopMs = 5 * seconds;

export interface ServiceOptions {
  readonly socket: string;
  /** The file with the last desired state. */
  readonly file: string;
  /** The file that the resolvers read. */
  readonly names: string;
  readonly router: string;
  readonly keeper: Pick<Keeper, 'keep' | 'peers' | 'stop'>;
  /** Milliseconds between two passes while nothing happens. */
  readonly intervalMs: number;
  readonly log: Log;
}

/** The desired state, and the message that contained it. */
interface Desired {
  readonly bytes: Buffer;
  readonly network: DesiredNetwork;
}

/** Waits for a pass with the current desired state. */
type Waiter = (outcome: NetworkState | Error) => void;

export class NetworkService {
  readonly #options: ServiceOptions;
  readonly #doorbell = new Doorbell();
  readonly #ending = new AbortController();
  #desired: Desired | undefined;
  /** The desired state in the files on disk. */
  #stored: Desired | undefined;
  #waiters: Waiter[] = [];
  #server: Server | undefined;
  #running: Promise<unknown> = Promise.resolve();

  constructor(options: ServiceOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { socket, router, log } = this.#options;
    this.#desired = this.#readDesired();
    const { signal } = this.#ending;
    this.#running = Promise.all([this.#run(), watchLinks(router, () => this.#doorbell.ring(), signal, log)]);
    rmSync(socket, { force: true });
    const server = (this.#server = createServer((request, response) => void this.#answer(request, response)));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(socket, resolve);
    });
    // The folder is accessible to the agent alone; its user writes to the socket.
    chmodSync(socket, 0o660);
  }

  /** Leaves the kernel as it is. */
  async stop(): Promise<void> {
    this.#ending.abort();
    this.#doorbell.ring();
    this.#server?.close();
    this.#server?.closeAllConnections();
    await this.#running;
    await this.#options.keeper.stop();
  }

  get stopDeadlineMs(): number {
    return stopMs;
  }

  #readDesired(): Desired | undefined {
    const { file, log } = this.#options;
    try {
      const bytes = readFileSync(file);
      return { bytes, network: decodeDesired(bytes) };
    } catch (error) {
      const isAbsent = (error as NodeJS.ErrnoException).code === 'ENOENT';
      // The agent sends it again.
      if (!isAbsent) log.warn('tenant_network_state_damaged', { file, error });
      return undefined;
    }
  }

  async #run(): Promise<void> {
    const { keeper, intervalMs, log } = this.#options;
    while (!this.#ending.signal.aborted) {
      const waiters = this.#waiters.splice(0);
      const desired = this.#desired;
      if (desired !== undefined) {
        let outcome: NetworkState | Error;
        try {
          const unstored = this.#store(desired);
          // The kernel follows even if the disk is full.
          const state = await keeper.keep(desired.network);
          outcome = unstored ?? state;
        } catch (error) {
          outcome = asError(error);
        }
        if (outcome instanceof Error) log.error('tenant_network_failed', { error: outcome });
        for (const settle of waiters) settle(outcome);
      }
      if (this.#waiters.length === 0) await this.#doorbell.wait(intervalMs);
    }
    for (const settle of this.#waiters.splice(0)) settle(new Error('the program stops'));
  }

  /** @returns the error if it cannot be written */
  #store(desired: Desired): Error | undefined {
    if (this.#stored === desired) return undefined;
    const { file, names } = this.#options;
    try {
      writePrivateFile(file, desired.bytes);
      writePrivateFile(names, JSON.stringify(namesKnown(desired.network)), 0o640);
      this.#stored = desired;
      return undefined;
    } catch (error) {
      return asError(error);
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const say = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const asked = `${request.method} ${request.url}`;
    if (asked === 'GET /peers') {
      const outcome = await this.#peers();
      say(outcome instanceof Error ? 503 : 200, outcome instanceof Error ? { message: outcome.message } : outcome);
      return;
    }
    if (asked !== 'PUT /network') {
      say(404, { message: 'there are PUT /network and GET /peers' });
      return;
    }
    const body = await bodyOf(request);
    if (body === undefined) {
      say(413, { message: `a desired network has at most ${bodyBytes} bytes` });
      return;
    }
    const before = this.#desired;
    let desired: Desired;
    try {
      desired = before?.bytes.equals(body) === true ? before : { bytes: body, network: decodeDesired(body) };
    } catch (error) {
      say(400, { message: asError(error).message });
      return;
    }
    const owner = before?.network.owner ?? desired.network.owner;
    if (owner !== desired.network.owner) {
      const remedy = `each agent of a machine needs one of its own; if that agent is gone, delete ${this.#options.file}, and restart longshore-net`;
      say(409, { message: `it is of the agent ${owner}: ${remedy}` });
      return;
    }
    const outcome = await this.#give(desired);
    if (outcome instanceof Error) say(503, { message: outcome.message });
    else say(200, outcome);
  }

  async #peers(): Promise<ServedPeers | Error> {
    if (this.#desired === undefined) return new Error('nothing is desired yet');
    try {
      return await this.#options.keeper.peers(this.#desired.network);
    } catch (error) {
      return asError(error);
    }
  }

  #give(desired: Desired): Promise<NetworkState | Error> {
    this.#desired = desired;
    return new Promise((settle) => {
      this.#waiters.push(settle);
      this.#doorbell.ring();
    });
  }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

/** `undefined` if it is too long. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > bodyBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
