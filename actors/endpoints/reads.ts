/**
 * Reads of streams for gateways, which may not ask JetStream themselves (ADR 18): the server writes
 * its answer to whatever subject the asker names as its reply, without a look at what the asker may
 * write. So a gateway asks here, any actors process hands the question on with the gateway's inbox
 * as the reply, and the server answers there.
 */
import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import type { SparingLog } from '../../lib/sparing.ts';
import { limits } from '../../schemas/limits.ts';
import { isInbox, readable, subjects, type Readable } from '../../schemas/wire/subjects.ts';
import { bucketStream, buckets, streams } from '../../schemas/records/buckets.ts';

const apiOf: Readonly<Record<Readable, string>> = {
  logs: `$JS.API.DIRECT.GET.${streams.logs.name}`,
  events: `$JS.API.DIRECT.GET.${streams.events.name}`,
  cluster: `$JS.API.STREAM.MSG.GET.${bucketStream(buckets.cluster.bucket)}`,
};

/** One process of all serves a read. */
const queue = 'reads';

/** @param log who asks can make it write at will, so it must not write each line */
export function serveReads(nc: NatsConnection, log: SparingLog): Subscription[] {
  return readable.map((what) =>
    nc.subscribe(subjects.read(what), {
      queue,
      callback: (error, { data, reply }) => {
        if (error !== null || data.length > limits.readAskBytes) return;
        if (!isInbox(reply)) {
          log.warn('read_refused', { what, reply });
          return;
        }
        try {
          nc.publish(apiOf[what], data, { reply });
        } catch (cause) {
          log.warn('read_not_sent', { what, error: cause });
        }
      },
    }),
  );
}
