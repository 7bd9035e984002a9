import type { JetStreamManager } from '@nats-io/jetstream';

export interface Purge {
  readonly filter: string;
  /** `from`: the number of messages, at most; `to`: the number of the newest that stay. */
  readonly from: number;
  readonly to: number;
  /** The messages that one request removes. */
  readonly step: number;
}

/**
 * Purges in steps, because the server accepts no messages for the stream during a purge.
 * @returns the number of messages that were removed
 * @throws the signal's reason, between two steps
 */
export async function purgeInSteps(
  manager: JetStreamManager,
  stream: string,
  { filter, from, to, step }: Purge,
  signal: AbortSignal,
): Promise<number> {
  let removed = 0;
  for (let left = from; left > to;) {
    signal.throwIfAborted();
    left = Math.max(to, left - step);
    removed += (await manager.streams.purge(stream, { filter, keep: left })).purged;
  }
  return removed;
}
