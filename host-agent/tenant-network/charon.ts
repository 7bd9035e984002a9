/**
 * Keeps strongSwan's daemon as it is to be: each turn looks at what it has and repairs the
 * difference, and its events only bring the next turn nearer. It has turns of its own, so that the
 * rest of the network waits for no daemon.
 */
import { messageOf } from '../../lib/error-message.ts';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { Doorbell } from '../../lib/time/doorbell.ts';
import { seconds } from '../../schemas/limits/units.ts';
import { keepIkeLink, withoutStandIn } from './ike-link.ts';
import { IkeSa, isForeign, namesOf, type IkeOwner, type IkeWanted, type Loaded } from './ike.ts';
import { ViciClient } from './vici/client.ts';
import type { ReadSection } from './vici/message.ts';

/** Between two tries to reach a daemon that is not there: it may be starting. */
const retryMs = 250;
/** Between two looks while nothing is told. */
const lookMs = 5 * seconds;
const events = ['ike-updown', 'child-updown', 'ike-rekey', 'child-rekey'] as const;

export interface CharonOptions {
  /** Of the daemon. */
  readonly socket: string;
  readonly router: string;
  /** Called with associations; with all that are there, or with one that has just changed. */
  readonly onSeen: (seen: readonly IkeSeen[], isAll: boolean) => void;
  readonly log: Log;
}

/** A device that came by IKEv2, with what each of its associations has counted. */
export interface IkeSeen {
  readonly owner: IkeOwner;
  /** Seconds since 1970. */
  readonly handshake: number;
  readonly endpoint: string | null;
  /** Another one for each association, also of another run of the daemon. */
  readonly child: string;
  readonly rx: number;
  readonly tx: number;
}

const decodeSa = decoder(IkeSa);

type Held = 'keys' | 'pools' | 'connections';
const nothing: IkeWanted = {
  keys: new Map(),
  pools: new Map(),
  connections: new Map(),
  owners: new Map(),
  networks: [],
  own: [],
};

export class Charon {
  readonly #options: CharonOptions;
  readonly #doorbell = new Doorbell();
  readonly #ending = new AbortController();
  #wanted: IkeWanted = nothing;
  #client: ViciClient | undefined;
  /** The text of everything that this connection has loaded into the daemon, by name. */
  #given: Record<Held, Map<string, string>> = { keys: new Map(), pools: new Map(), connections: new Map() };
  /** Ids by which the daemon knows private keys. */
  readonly #keyIds = new Map<string, string>();
  /** The daemon's answers to a list that is under way. */
  #listed: ReadSection[] = [];
  /** An earlier run may have left it. */
  #hasStandIn = true;
  #message: string | null = null;
  #running: Promise<void> | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: CharonOptions) {
    this.#options = options;
  }

  /** The reason why devices do not connect by IKEv2; `null` if they may, or if none is to. */
  get message(): string | null {
    return this.#message;
  }

  start(): void {
    this.#running = this.#run();
  }

  want(wanted: IkeWanted): void {
    if (wanted === this.#wanted) return;
    this.#wanted = wanted;
    this.#doorbell.ring();
  }

  /** Looks at what has been counted until now. Never rejects: turns say what is wrong. */
  look(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#client !== undefined) await this.#keepAssociations(this.#client);
    }).catch((error: unknown) => this.#options.log.debug('ike_look_failed', { error }));
  }

  /** Leaves the daemon as it is: devices go on. */
  async stop(): Promise<void> {
    this.#ending.abort();
    this.#doorbell.ring();
    await this.#running;
    this.#client?.close();
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #run(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      const before = this.#message;
      try {
        await this.#inTurn(() => this.#keep());
        this.#message = null;
      } catch (error) {
        this.#message = messageOf(error);
        if (this.#message !== before) this.#options.log.warn('ike_failed', { error });
      }
      if (this.#message === null && before !== null) this.#options.log.info('ike_works', {});
      await this.#doorbell.wait(this.#message === null ? lookMs : retryMs);
    }
  }

  async #keep(): Promise<void> {
    const { router } = this.#options;
    const wanted = this.#wanted;
    const isIdle = wanted.networks.length === 0 && this.#client === undefined;
    if (isIdle) {
      if (this.#hasStandIn) await withoutStandIn(router);
      this.#hasStandIn = false;
      return;
    }
    this.#hasStandIn = true;
    const client = (this.#client ??= await this.#connect());
    await this.#withdraw(client, 'connections', wanted.connections, (name) => client.call('unload-conn', { name }));
    // Before connections are given: a device that comes is led somewhere.
    await this.#keepAssociations(client);
    await this.#give(client, 'keys', wanted.keys, 'load-key');
    await this.#give(client, 'pools', wanted.pools, 'load-pool');
    await this.#give(client, 'connections', wanted.connections, 'load-conn');
    await this.#withdraw(client, 'pools', wanted.pools, (name) => client.call('unload-pool', { name }));
    await this.#withdraw(client, 'keys', wanted.keys, async (name) => {
      const id = this.#keyIds.get(name);
      this.#keyIds.delete(name);
      if (id !== undefined) await client.call('unload-key', { id });
    });
    if (wanted.networks.length > 0) return;
    this.#drop(client);
    // For a turn that is idle.
    this.#doorbell.ring();
  }

  /** Gives the daemon what it lacks. */
  async #give(
    client: ViciClient,
    held: Held,
    wanted: ReadonlyMap<string, Loaded>,
    command: 'load-key' | 'load-pool' | 'load-conn',
  ): Promise<void> {
    const given = this.#given[held];
    for (const [name, { message, text }] of wanted) {
      if (given.get(name) === text) continue;
      const { id } = await client.call(command, message);
      if (held === 'keys' && typeof id === 'string') this.#keyIds.set(name, id);
      given.set(name, text);
    }
  }

  async #withdraw(
    client: ViciClient,
    held: Held,
    wanted: ReadonlyMap<string, Loaded>,
    withdraw: (name: string) => Promise<unknown>,
  ): Promise<void> {
    const given = this.#given[held];
    for (const name of [...given.keys()]) {
      if (wanted.has(name)) continue;
      try {
        await withdraw(name);
        given.delete(name);
      } catch (error) {
        // A pool whose address a device has still got goes in a later turn.
        if (this.#client !== client) throw error;
        if (held !== 'pools') given.delete(name);
      }
    }
  }

  /** Ends those that are not wanted, and leads to the others. */
  async #keepAssociations(client: ViciClient): Promise<void> {
    const { router } = this.#options;
    const { connections, networks, own } = this.#wanted;
    const prefix = namesOf(router);
    const seen: IkeSeen[] = [];
    const addresses: string[] = [];
    const unwanted = new Set<string>();
    for (const [name, sa] of await this.#associations(client)) {
      if (!name.startsWith(prefix)) continue;
      if (!connections.has(name)) unwanted.add(sa.uniqueid);
      else if (sa.state === 'ESTABLISHED') addresses.push(...(sa['remote-vips'] ?? []));
      seen.push(...this.#seenOf(name, sa));
    }
    this.#options.onSeen(seen, true);
    for (const id of unwanted) {
      // It may have ended by itself.
      await client.call('terminate', { 'ike-id': id, force: 'yes', timeout: '-1' }).catch((error: unknown) => {
        if (this.#client !== client) throw error;
      });
    }
    if (networks.length > 0) await keepIkeLink(router, own, addresses);
  }

  async #associations(client: ViciClient): Promise<readonly (readonly [string, IkeSa])[]> {
    this.#listed = [];
    await client.call('list-sas');
    return this.#listed.splice(0).flatMap((message) => [...saOf(message)]);
  }

  #seenOf(name: string, sa: IkeSa): IkeSeen[] {
    const owner = this.#wanted.owners.get(name);
    if (owner === undefined) return [];
    const now = Math.floor(Date.now() / 1000);
    const { 'remote-host': host, 'remote-port': port } = sa;
    const endpoint = host === undefined ? null : `${host.includes(':') ? `[${host}]` : host}:${port}`;
    return Object.values(sa['child-sas'] ?? {}).map((child) => ({
      owner,
      endpoint,
      // The second is random: another run of the daemon counts from 1 again.
      child: `${child.uniqueid} ${child['spi-in'] ?? ''}`,
      handshake: now - Math.min(Number(sa.established ?? Infinity), Number(child['use-in'] ?? Infinity)),
      rx: Number(child['bytes-in'] ?? 0),
      tx: Number(child['bytes-out'] ?? 0),
    }));
  }

  /** A connection to the daemon, which has nothing of ours that is not wanted. */
  async #connect(): Promise<ViciClient> {
    const { socket, router } = this.#options;
    const client = await ViciClient.open(socket, {
      onEvent: (name, message) => this.#heard(name, message),
      onClose: () => {
        this.#client = undefined;
        this.#doorbell.ring();
      },
    }).catch((error: unknown) => {
      throw new Error(`no strongSwan answers at ${socket}: ${messageOf(error)}`);
    });
    try {
      await client.listen('list-sa');
      for (const event of events) await client.listen(event);
      const { conns = [] } = await client.call('get-conns');
      const names = Array.isArray(conns) ? (conns as readonly string[]) : [];
      const foreign = names.find((name) => isForeign(name, router));
      if (foreign !== undefined)
        throw new Error(
          `strongSwan serves another longshore-net (${foreign.split(':')[1]}): restart it if that is gone`,
        );
      // What an earlier run has given is given again: the daemon changes what differs.
      const prefix = namesOf(router);
      const ours = names.filter((name) => name.startsWith(prefix));
      this.#given = { keys: new Map(), pools: new Map(), connections: new Map(ours.map((name) => [name, ''])) };
      this.#keyIds.clear();
      return client;
    } catch (error) {
      client.close();
      throw error;
    }
  }

  #heard(event: string, message: ReadSection): void {
    if (event === 'list-sa') {
      this.#listed.push(message);
      return;
    }
    // What has ended is in no list: this is the last that it has counted.
    const seen = [...saOf(message)].flatMap(([name, sa]) => this.#seenOf(name, sa));
    this.#options.onSeen(seen, false);
    this.#doorbell.ring();
  }

  #drop(client: ViciClient): void {
    this.#client = undefined;
    client.close();
  }
}

function* saOf(message: ReadSection): Generator<readonly [string, IkeSa], void, void> {
  for (const [name, section] of Object.entries(message)) {
    if (typeof section === 'string' || Array.isArray(section)) continue;
    yield [name, decodeSa(Buffer.from(JSON.stringify(section)))];
  }
}
