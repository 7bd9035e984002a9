/**
 * Answers queries. It runs in the host's namespace, because it asks the host's name servers, and
 * has no rights; the sockets on which containers ask are made in the router namespace, and handed
 * to it.
 */
import type { RemoteInfo, Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import { watch } from 'node:fs';
import type { Server, Socket } from 'node:net';
import { dirname } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { decoder } from '../../../lib/decode.ts';
import type { Log } from '../../../lib/log.ts';
import { every } from '../../../lib/time/every.ts';
import { seconds } from '../../../schemas/limits/units.ts';
import { KnownNames } from '../../../schemas/wire/net.ts';
import { nameserversIn } from '../../network/nameservers.ts';
import { failed, reactTo, refused } from './answer.ts';
import { Followed } from './followed.ts';
import { framed, framesOf } from './frames.ts';
import { Upstream } from './upstream.ts';
import { zonesOf, type Zones } from './zones.ts';

const decodeNames = decoder(KnownNames);
const lookMs = 1 * seconds;
const idleMs = 10 * seconds;
/** Connections over TCP at a time, of one container and of all. */
const connectionsOfOne = 16;
const connectionsOfAll = 512;
const resolvConf = '/etc/resolv.conf';

export class Answering {
  readonly #log: Log;
  readonly #zones: Followed<Zones | undefined>;
  readonly #servers = new Followed<readonly string[]>(resolvConf, [], (bytes) => nameserversIn(bytes.toString()));
  readonly #upstream = new Upstream({
    servers: () => this.#servers.value,
    ofOne: 64,
    ofAll: 2048,
    serverMs: 2 * seconds,
    deadlineMs: 5 * seconds,
  });
  readonly #connections = new Map<string, number>();
  #open = 0;

  /** @param file the file in which `longshore-net` lists the names and their owners */
  constructor(file: string, log: Log) {
    this.#log = log;
    this.#zones = new Followed<Zones | undefined>(file, undefined, (bytes) => zonesOf(decodeNames(bytes)));
    this.#look();
    void every(
      () => lookMs,
      () => Promise.resolve(this.#look()),
      new AbortController().signal,
    );
    // Changes are noticed at once; the timer finds those that this misses.
    try {
      watch(dirname(file), () => this.#look());
    } catch (error) {
      log.warn('resolver_watch_failed', { error });
    }
  }

  #look(): void {
    for (const followed of [this.#zones, this.#servers]) {
      try {
        followed.look();
      } catch (error) {
        this.#log.debug('resolver_read_failed', { error });
      }
    }
  }

  udp(socket: DatagramSocket): void {
    socket.on('message', (query: Buffer, { address, port }: RemoteInfo) => {
      void this.#answer(query, address, 'udp').then((answer) => {
        if (answer !== undefined) socket.send(answer, port, address, () => undefined);
      });
    });
    socket.on('error', (error) => this.#log.warn('resolver_socket_failed', { error }));
  }

  tcp(server: Server): void {
    server.on('connection', (socket) => this.#serve(socket));
    server.on('error', (error) => this.#log.warn('resolver_socket_failed', { error }));
  }

  #serve(socket: Socket): void {
    const source = socket.remoteAddress ?? '';
    const own = this.#connections.get(source) ?? 0;
    if (own >= connectionsOfOne || this.#open >= connectionsOfAll) {
      socket.destroy();
      return;
    }
    this.#connections.set(source, own + 1);
    this.#open++;
    socket.once('close', () => {
      this.#open--;
      const left = (this.#connections.get(source) ?? 1) - 1;
      if (left === 0) this.#connections.delete(source);
      else this.#connections.set(source, left);
    });
    socket.setTimeout(idleMs, () => socket.destroy());
    socket.on('error', () => socket.destroy());
    void this.#answerAll(socket, source).catch(() => socket.destroy());
  }

  /**
   * One query of a connection at a time, and others have their turns between two: a segment may
   * hold thousands of queries. A client that does not read its answers is not read either.
   */
  async #answerAll(socket: Socket, source: string): Promise<void> {
    for await (const query of framesOf(socket)) {
      const answer = await this.#answer(query, source, 'tcp');
      if (answer !== undefined && !socket.write(framed(answer))) await once(socket, 'drain');
      await setImmediate();
    }
  }

  async #answer(query: Buffer, source: string, transport: 'udp' | 'tcp'): Promise<Buffer | undefined> {
    const zones = this.#zones.value;
    // `longshore-net` may be starting.
    if (zones === undefined) return failed(query);
    const reaction = reactTo(query, source, transport, zones);
    if (reaction.kind === 'ignore') return undefined;
    if (reaction.kind === 'answer') return reaction.bytes;
    const heard = await this.#upstream.ask(query, source, transport);
    if (heard === 'full') return refused(query);
    return heard === 'silent' ? failed(query) : heard;
  }
}
