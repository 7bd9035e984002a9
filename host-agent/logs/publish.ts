/** Blocks to the stream LOGS: published as a request, safe when JetStream has acknowledged, repeated until then. */
import Type from 'typebox';
import { backoffMs, jitter, sleep, type BackoffBounds } from '../../lib/backoff.ts';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import type { ContainerId, HostKey, TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { subjects } from '../../schemas/subjects.ts';
import type { Metrics } from '../metrics.ts';

const decodePubAck = decoder(
  Type.Object({
    stream: Type.Optional(Type.String()),
    seq: Type.Optional(Type.Integer()),
    error: Type.Optional(Type.Object({ description: Type.Optional(Type.String()) })),
  }),
);

export type Request = (subject: string, payload: string, timeoutMs: number) => Promise<Uint8Array>;

export interface LogSource {
  readonly tenant: TenantId;
  readonly id: ContainerId;
}

export type Publish = (source: LogSource, block: string, lines: number, signal: AbortSignal) => Promise<void>;

/** The publisher of a host. `request` rejects while there is no connection. */
export function createPublish(
  host: HostKey,
  request: Request,
  backoff: BackoffBounds,
  metrics: Pick<Metrics, 'logLines' | 'logBlocks'>,
  log: Log,
): Publish {
  return async ({ tenant, id }, block, lines, signal) => {
    const subject = subjects.hostLog(host, tenant, id);
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        const ack = decodePubAck(await request(subject, block, limits.logAckTimeoutMs));
        if (ack.stream === undefined || ack.seq === undefined) {
          throw new Error(ack.error?.description ?? 'not acknowledged');
        }
        metrics.logBlocks('acknowledged');
        metrics.logLines(lines);
        return;
      } catch (error) {
        metrics.logBlocks('retried');
        log.debug('log_block_retried', { container: id, attempt, error });
      }
      await sleep(jitter(backoffMs(attempt, backoff)), signal);
    }
  };
}
