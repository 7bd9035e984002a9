/**
 * Receives heartbeats, from hosts or by way of other processes. Among a few processes each hears
 * all. Among many, each hears the hosts of its own partitions, and passes their heartbeats on to
 * all processes at intervals: otherwise the server would deliver each heartbeat once for each
 * process (ADR 15).
 */
import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import { messageDecoder } from '../../../lib/decode.ts';
import { inParts, partText } from '../../../lib/rpc/parts.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import { runAtOnce } from '../../../lib/time/slices.ts';
import type { RateLimitedLog } from '../../../lib/rate-limited-log.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { BeatsMessage } from '../../../schemas/wire/directory.ts';
import type { Beat } from '../../../schemas/wire/host.ts';
import { hashOf, partitionOf, subjects } from '../../../schemas/wire/subjects.ts';
import { ProtocolError, protocolFields } from '../../../schemas/wire/version.ts';
import type { Fleet } from '../fleet.ts';

const decodeBeats = messageDecoder(BeatsMessage);

export interface HeartbeatsOptions {
  readonly nc: NatsConnection;
  readonly fleet: Fleet;
  readonly partitions: number;
  /** The partitions that this process serves. */
  readonly owned: () => Iterable<number>;
  /** The number of processes, this one included. */
  readonly processes: () => number;
  readonly subscribe: (host: HostKey | '*', onHeard: (host: HostKey, beat: Beat) => void) => Subscription;
  readonly clock: Clock;
  /** Logs what others can cause at will, but not every time. */
  readonly refusals: RateLimitedLog;
}

export class Heartbeats {
  readonly #options: HeartbeatsOptions;
  /** By host, the subscription to its heartbeats; `*`: all hosts. */
  readonly #heard = new Map<HostKey | '*', Subscription>();
  /** By partition, the monotonic time of its owner's last message. */
  readonly #toldAtMs = new Map<number, number>();
  /** Heartbeats that this process has yet to pass on. */
  readonly #untold = new Map<HostKey, Beat>();
  /** By host, the heartbeat that this process last passed on. */
  readonly #told = new Map<HostKey, string>();
  #messages = 0;

  constructor(options: HeartbeatsOptions) {
    this.#options = options;
  }

  subscribe(): Subscription {
    this.look();
    return this.#options.nc.subscribe(subjects.directoryBeats, {
      callback: (error, { subject, data }) => {
        if (error === null) this.#receive(subject, data);
      },
    });
  }

  /** Hears the hosts that it must hear now, and no others. */
  look(): void {
    const wanted = this.#wanted();
    // First the new ones: no heartbeat is missed in between.
    for (const host of wanted) {
      if (!this.#heard.has(host)) this.#heard.set(host, this.#options.subscribe(host, this.#onHeard));
    }
    for (const [host, subscription] of this.#heard) {
      if (wanted.has(host)) continue;
      subscription.unsubscribe();
      this.#heard.delete(host);
    }
  }

  /** Passes the heartbeats that this process heard on to the others, if they count on it. */
  tell(): void {
    const { nc, partitions, owned } = this.#options;
    const own = new Set(this.#areFew() ? [] : owned());
    const beats: BeatsMessage['beats'] = [];
    const same: HostKey[] = [];
    this.#messages++;
    for (const [host, beat] of this.#untold) {
      if (!own.has(partitionOf(host, partitions))) continue;
      const text = JSON.stringify(beat);
      // Again from time to time, for processes that missed it.
      const isDue = (hashOf(host) + this.#messages) % limits.beatsWholeEvery === 0;
      if (this.#told.get(host) === text && !isDue) same.push(host);
      else beats.push({ host, beat });
      this.#told.set(host, text);
    }
    this.#untold.clear();
    for (const host of this.#told.keys()) if (!own.has(partitionOf(host, partitions))) this.#told.delete(host);
    if (own.size === 0) return;
    const head = { ...protocolFields, partitions: [...own] };
    for (const part of runAtOnce(inParts({ same, beats }))) nc.publish(subjects.directoryBeats, partText(head, part));
  }

  stop(): void {
    for (const subscription of this.#heard.values()) subscription.unsubscribe();
    this.#heard.clear();
  }

  #areFew(): boolean {
    return this.#options.processes() <= limits.beatsHeardByAll;
  }

  #wanted(): ReadonlySet<HostKey | '*'> {
    const { fleet, partitions, owned, clock } = this.#options;
    const all = new Set(['*' as const]);
    if (this.#areFew()) return all;
    const own = new Set(owned());
    const nowMs = clock.monotonicMs();
    const isTold = (partition: number): boolean =>
      nowMs - (this.#toldAtMs.get(partition) ?? -Infinity) < limits.beatsUntoldMs;
    const wanted = new Set<HostKey>();
    let count = 0;
    for (const { key } of fleet.hosts()) {
      count++;
      const partition = partitionOf(key, partitions);
      if (own.has(partition) || !isTold(partition)) wanted.add(key);
    }
    return 2 * wanted.size > count ? all : wanted;
  }

  readonly #onHeard = (host: HostKey, beat: Beat): void => {
    if (this.#options.fleet.takeHeartbeat(host, beat) && !this.#areFew()) this.#untold.set(host, beat);
  };

  #receive(subject: string, bytes: Uint8Array): void {
    const { fleet, clock, owned, partitions, refusals } = this.#options;
    try {
      const message = decodeBeats(bytes);
      const nowMs = clock.monotonicMs();
      for (const partition of message.partitions) this.#toldAtMs.set(partition, nowMs);
      const own = new Set(owned());
      // Heartbeats that this process hears itself are newer; its own messages come here too.
      const isCounted = (host: HostKey): boolean =>
        !own.has(partitionOf(host, partitions)) && fleet.condition(host) !== 'fenced';
      for (const { host, beat } of message.beats) if (isCounted(host)) fleet.takeHeartbeat(host, beat);
      for (const host of message.same) if (isCounted(host)) fleet.heardAgain(host);
    } catch (error) {
      const event = error instanceof ProtocolError ? 'protocol_refused' : 'malformed_directory';
      refusals.error(event, { subject, error });
    }
  }
}
