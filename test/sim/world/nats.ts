/**
 * NATS in memory and in virtual time: connections whose messages take time, get lost, or arrive
 * twice or late, as the weather decides. Messages of one connection arrive in order, except for
 * those that the weather delays.
 */
import type { Msg, MsgHdrs, NatsConnection, Subscription } from '@nats-io/transport-node';
import { headers, InvalidArgumentError } from '@nats-io/transport-node';
import { headBytes, JetStream, type Published, type Reply } from './jetstream.ts';
import type { Process, World } from './time.ts';

/** Fate of a message to or from JetStream. */
export type Fate = 'done' | 'lost' | 'answer lost' | 'late';

export interface Weather {
  /** Delay from or to a client. */
  delayMs(): number;
  /** Copies of a message between clients; 0 loses it, 2 duplicates it. */
  copies(subject: string): 0 | 1 | 2;
  fate(process: Process, subject: string): Fate;
  /** Delay of a put that arrives late. */
  lateMs(): number;
  /** Delay of the answering replica; 0 if it is up to date. */
  lagMs(subject: string): number;
  isBusy(): boolean;
  page(): PageWeather;
}

/** Fate of the answer to a read of many messages. */
export interface PageWeather {
  /** The server ends the page after at most this many messages. */
  readonly messages: number;
  /**
   * Broken: everything after a place is lost. Gap: everything between two places is lost, and the
   * end of the page arrives.
   */
  readonly fate: 'whole' | 'broken' | 'gap';
  /** The places, as two fractions of the whole between 0 and 1. */
  readonly lost: readonly [from: number, to: number];
}

type Callback = (error: Error | null, message: Msg) => void;

interface Interest {
  readonly connection: Connection;
  readonly subject: string;
  /** Matches a pattern, which has a `*`; `undefined` for a plain subject. */
  readonly tokens: RegExp | undefined;
  readonly callback: Callback;
}

interface Sent extends Published {
  readonly reply: string | undefined;
}

const utf8 = new TextDecoder();

export class Nats {
  readonly world: World;
  readonly jetstream: JetStream;
  weather: Weather;
  readonly #exact = new Map<string, Set<Interest>>();
  readonly #patterns = new Set<Interest>();
  #inboxes = 0;

  constructor(world: World, weather: Weather) {
    this.world = world;
    this.weather = weather;
    this.jetstream = new JetStream(() => world.nowMs);
  }

  connect(process: Process): Connection {
    return new Connection(this, process);
  }

  newInbox(): string {
    return `_INBOX.own${this.#inboxes++}`;
  }

  add(interest: Interest): void {
    if (interest.tokens !== undefined) this.#patterns.add(interest);
    else this.#exact.set(interest.subject, (this.#exact.get(interest.subject) ?? new Set()).add(interest));
  }

  remove(interest: Interest): void {
    this.#patterns.delete(interest);
    const others = this.#exact.get(interest.subject);
    others?.delete(interest);
    if (others?.size === 0) this.#exact.delete(interest.subject);
  }

  /** Called when a message has been given to the client library. */
  send(from: Connection, message: Sent): void {
    const { world, weather } = this;
    const subject = message.subject.startsWith('_INBOX') ? '_INBOX' : message.subject;
    world.trace(from.process.name, subject, message.payload.length);
    const arrivesMs = from.inOrder('out', world.nowMs + weather.delayMs());
    if (!JetStream.takes(message.subject)) {
      world.at(arrivesMs, world.stage, () => this.#route(message));
      return;
    }
    const fate = weather.fate(from.process, message.subject);
    if (fate === 'lost') return;
    const landsMs = fate === 'late' ? arrivesMs + weather.lateMs() : arrivesMs;
    world.at(landsMs, world.stage, () => this.#land(message, fate === 'done'));
  }

  #land(message: Sent, isAnswered: boolean): void {
    const { subject, payload, reply } = message;
    const replies = subject.startsWith('$JS.API.')
      ? this.#read(subject, payload)
      : [this.jetstream.publish(message, this.weather.isBusy())];
    if (reply === undefined || !isAnswered) return;
    for (const one of replies) {
      if (one !== undefined) this.#deliver({ subject: reply, payload: one.payload, head: one.head, reply: undefined });
    }
  }

  #read(subject: string, payload: string): readonly Reply[] {
    const page = this.weather.page();
    const replies = this.jetstream.read(subject, payload, this.weather.lagMs(subject), page.messages);
    const from = Math.floor(page.lost[0] * replies.length);
    switch (page.fate) {
      case 'whole':
        return replies;
      case 'broken':
        return replies.slice(0, from);
      case 'gap': {
        const to = Math.max(from + 1, Math.floor(page.lost[1] * replies.length));
        return replies.filter((_, index) => index < from || index >= Math.min(to, replies.length - 1));
      }
    }
  }

  #route(message: Sent): void {
    const copies = this.weather.copies(message.subject);
    for (let copy = 0; copy < copies; copy++) this.#deliver(message);
  }

  #deliver(message: Sent): void {
    const { world, weather } = this;
    const interested = this.#interestedIn(message.subject);
    if (interested.length === 0 && message.reply !== undefined) {
      this.#deliver({ subject: message.reply, payload: '', head: headers(503, 'No Responders'), reply: undefined });
      return;
    }
    for (const { connection, callback } of interested) {
      const atMs = connection.inOrder('in', world.nowMs + weather.delayMs());
      world.at(atMs, connection.process, () => {
        if (!connection.isClosed()) callback(null, messageOf(connection, message));
      });
    }
  }

  #interestedIn(subject: string): readonly Interest[] {
    return [...(this.#exact.get(subject) ?? []), ...[...this.#patterns].filter(({ tokens }) => tokens?.test(subject))];
  }
}

/** Pattern as an expression, in which `*` matches one token; `undefined` for a plain subject. */
const tokensOf = (pattern: string): RegExp | undefined =>
  pattern.includes('*')
    ? new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '[^.]+').replaceAll('$', '\\$')}$`)
    : undefined;

/** The part of a NatsConnection that is used. */
export class Connection {
  readonly process: Process;
  readonly info = { max_payload: 1024 * 1024 };
  readonly #nats: Nats;
  readonly #interests = new Set<Interest>();
  readonly #lastMs = { in: 0, out: 0 };
  #isClosed = false;

  constructor(nats: Nats, process: Process) {
    this.#nats = nats;
    this.process = process;
  }

  /** Has the type of the client's own class: code that uses more than exists here fails at once. */
  get asClient(): NatsConnection {
    return this as unknown as NatsConnection;
  }

  inOrder(direction: 'in' | 'out', atMs: number): number {
    return (this.#lastMs[direction] = Math.max(atMs, this.#lastMs[direction]));
  }

  publish(
    subject: string,
    payload: string | Uint8Array = '',
    options: { headers?: MsgHdrs; reply?: string } = {},
  ): void {
    if (this.#isClosed) throw new Error('closed');
    const text = typeof payload === 'string' ? payload : utf8.decode(payload);
    // As the client does; a fence and a batch take so much.
    const bytes = Buffer.byteLength(text) + (options.headers === undefined ? 0 : headBytes);
    if (bytes > this.info.max_payload) throw InvalidArgumentError.format('payload', 'max_payload size exceeded');
    this.#nats.send(this, { subject, payload: text, head: options.headers, reply: options.reply });
  }

  subscribe(subject: string, { callback }: { readonly callback: Callback }): Subscription {
    const interest: Interest = { connection: this, subject, tokens: tokensOf(subject), callback };
    this.#interests.add(interest);
    this.#nats.add(interest);
    const unsubscribe = (): void => {
      this.#interests.delete(interest);
      this.#nats.remove(interest);
    };
    const drain = (): Promise<void> => {
      unsubscribe();
      return Promise.resolve();
    };
    return { unsubscribe, drain } as unknown as Subscription;
  }

  request(
    subject: string,
    payload: string,
    { timeout, headers: head }: { readonly timeout: number; readonly headers?: MsgHdrs },
  ): Promise<Msg> {
    return new Promise((resolve, reject) => {
      const reply = this.#nats.newInbox();
      const end = (): void => {
        clearTimeout(timer);
        subscription.unsubscribe();
      };
      const timer = setTimeout(() => {
        end();
        reject(new Error(`${subject}: timeout`));
      }, timeout);
      const subscription = this.subscribe(reply, {
        callback: (_, message) => {
          end();
          if (message.headers?.code === 503) reject(new Error(`${subject}: no responders`));
          else resolve(message);
        },
      });
      this.publish(subject, payload, { reply, ...(head === undefined ? {} : { headers: head }) });
    });
  }

  /** Closes it: its process has ended, or is leaving. */
  close(): Promise<void> {
    this.#isClosed = true;
    for (const interest of this.#interests) this.#nats.remove(interest);
    this.#interests.clear();
    return Promise.resolve();
  }

  isClosed(): boolean {
    return this.#isClosed;
  }

  flush(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, this.#nats.weather.delayMs()));
  }

  /** The connection itself never breaks; only messages do. */
  async *status(): AsyncGenerator<never, void, void> {
    await new Promise<never>(() => {});
  }
}

function messageOf(connection: Connection, { subject, payload, head, reply }: Sent): Msg {
  return {
    subject,
    data: Buffer.from(payload),
    headers: head,
    ...(reply === undefined ? {} : { reply }),
    string: () => payload,
    json: () => JSON.parse(payload) as unknown,
    respond: (answer: string) => {
      if (reply !== undefined && !connection.isClosed()) connection.publish(reply, answer);
      return reply !== undefined;
    },
  } as unknown as Msg;
}
