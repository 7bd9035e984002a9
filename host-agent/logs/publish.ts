/**
 * Publishes blocks to the stream LOGS when it is their turn: as a request, repeated until JetStream
 * acknowledges it.
 */
import Type from 'typebox';
import { jittered, type BackoffBounds } from '../../lib/time/backoff.ts';
import { retry } from '../../lib/time/retry.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import type { HostKey } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import type { LossCause, Metrics } from '../metrics.ts';
import type { Request } from '../link/connection.ts';
import type { LogTurns } from './rates.ts';
import type { LogSource } from './source.ts';

/**
 * A block that takes longer than this is late: meanwhile its container may write more than a
 * follower can read.
 */
const logLateMs = 1000;

const decodePubAck = decoder(
  Type.Object({
    stream: Type.Optional(Type.String()),
    seq: Type.Optional(Type.Integer()),
    error: Type.Optional(Type.Object({ description: Type.Optional(Type.String()) })),
  }),
);

/** Resolves with the cause of a delay, if there was one. */
export type Publish = (
  source: LogSource,
  block: string,
  lines: number,
  signal: AbortSignal,
) => Promise<LossCause | undefined>;

export interface PublishParts {
  readonly host: HostKey;
  /** Rejects while there is no connection. */
  readonly request: Request;
  readonly turns: LogTurns;
  readonly backoff: BackoffBounds;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly metrics: Pick<Metrics, 'logLines' | 'logBlocks' | 'logHeldUp'>;
  readonly log: Log;
}

/** Bytes that a stream adds to each message, roughly. */
const storedBytes = 30;

export function createPublish({ host, request, turns, backoff, clock, metrics, log }: PublishParts): Publish {
  const pauseMs = jittered(backoff);
  return async (source, block, lines, signal) => {
    const { tenant, id } = source;
    const subject = subjects.hostLog(host, tenant, id);
    const scope = await turns.turn(source, Buffer.byteLength(block) + subject.length + storedBytes, signal);
    if (scope !== undefined) metrics.logHeldUp(scope);
    const startMs = clock.monotonicMs();
    const send = async (): Promise<true> => {
      const ack = decodePubAck(await request(subject, block, limits.logAckTimeoutMs));
      if (ack.stream === undefined || ack.seq === undefined) {
        throw new Error(ack.error?.description ?? 'not acknowledged');
      }
      metrics.logBlocks('acknowledged');
      metrics.logLines(lines);
      return true;
    };
    const onFailure = (error: unknown, attempt: number): void => {
      metrics.logBlocks('retried');
      log.debug('log_block_retried', { container: id, attempt, error });
    };
    if ((await retry(send, { pauseMs, signal, onFailure })) === undefined) return undefined;
    if (scope !== undefined) return 'rate';
    return clock.monotonicMs() - startMs > logLateMs ? 'late' : undefined;
  };
}
