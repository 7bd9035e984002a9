/**
 * The subject of this process, on which gateways send asks for any of its partitions in one
 * message. A partition that it does not serve is refused as `not_owner`, and the gateway asks
 * on the partition's own subject.
 */
import type { Subscription } from '@nats-io/transport-node';
import { addressOf, type Ask } from '../../schemas/wire/asks.ts';
import { partitionOf, subjects } from '../../schemas/wire/subjects.ts';
import type { Partition } from '../partition.ts';
import { serveAsks, type AskOptions } from './asks.ts';

export class OwnSubject {
  readonly #token: string;
  readonly #partitions: number;
  readonly #served = new Map<number, Partition>();
  #subscription: Subscription | undefined;
  #state: 'unknown' | 'known' | 'ended' = 'unknown';

  constructor(token: string, partitions: number) {
    this.#token = token;
    this.#partitions = partitions;
  }

  /** The token for answers; `undefined` until the server has the subscription. */
  get token(): string | undefined {
    return this.#state === 'known' ? this.#token : undefined;
  }

  /** Rejects if the connection breaks meanwhile; a later call tries again. */
  async listen(options: AskOptions): Promise<void> {
    if (this.#state === 'ended') return;
    this.#subscription ??= serveAsks(
      {
        subject: subjects.owner(this.#token),
        partitionFor: (ask) => this.#partitionFor(ask),
      },
      options,
    );
    await options.nc.flush();
    if (this.#state === 'unknown') this.#state = 'known';
  }

  taken(partition: Partition): void {
    this.#served.set(partition.number, partition);
  }

  gone(partition: Partition): void {
    if (this.#served.get(partition.number) === partition) this.#served.delete(partition.number);
  }

  /** Answers what has arrived, and hears no more. */
  async drain(): Promise<void> {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    await this.#subscription?.drain();
  }

  #partitionFor(ask: Ask): Partition | undefined {
    const address = addressOf(ask);
    return this.#served.get(typeof address === 'number' ? address : partitionOf(address, this.#partitions));
  }
}
