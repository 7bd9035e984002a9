/**
 * Reads of streams on behalf of gateways, which may not ask JetStream themselves (ADR 18): the
 * server writes its answer to any reply subject that the asker names, even if the asker may not
 * write there. So a gateway asks an actors process, which forwards the request with the gateway's
 * inbox as the reply subject, and the server answers there.
 */
import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import type { RateLimitedLog } from '../../lib/rate-limited-log.ts';
import { isInbox, readable, subjects, type Readable } from '../../schemas/wire/subjects.ts';
import { bucketStream, buckets, streams } from '../../schemas/records/buckets.ts';
import { KiB } from '../../schemas/limits/units.ts';

/** The size of a request to JetStream that actors forward. */
const readAskBytes = 1 * KiB;

const apiOf: Readonly<Record<Readable, string>> = {
  logs: `$JS.API.DIRECT.GET.${streams.logs.name}`,
  events: `$JS.API.DIRECT.GET.${streams.events.name}`,
  audit: `$JS.API.DIRECT.GET.${streams.audit.name}`,
  usage: `$JS.API.DIRECT.GET.${streams.usage.name}`,
  usage_subjects: `$JS.API.STREAM.INFO.${streams.usage.name}`,
  cluster: `$JS.API.STREAM.MSG.GET.${bucketStream(buckets.cluster.bucket)}`,
};

/** One of all processes serves each read. */
const queue = 'reads';

/** @param log rateLimitedLog, because askers can cause its lines at will */
export function serveReads(nc: NatsConnection, log: RateLimitedLog): Subscription[] {
  return readable.map((what) =>
    nc.subscribe(subjects.read(what), {
      queue,
      callback: (error, { data, reply }) => {
        if (error !== null || data.length > readAskBytes) return;
        if (!isInbox(reply)) {
          log.warn('read_refused', { what, reply });
          return;
        }
        try {
          nc.publish(apiOf[what], data, { reply });
        } catch (cause) {
          log.warn('read_send_failed', { what, error: cause });
        }
      },
    }),
  );
}
