/** Batches of asks from gateways: taken from a partition's subject, run as turns, answered in as few messages as may be. */
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import type { Log } from '../lib/log.ts';
import { limits } from '../schemas/limits.ts';
import { decodeAsks, encodeAnswer, type Ask, type WriteAsk } from '../schemas/messages.ts';
import { subjects } from '../schemas/subjects.ts';
import { isWrite, type Prepared } from './decide.ts';
import type { Partition } from './runtime/partition.ts';

export interface AskOptions {
  readonly nc: NatsConnection;
  readonly log: Log;
  /** What has to be made before the turn of this ask: keys are signed outside of turns. */
  readonly prepare: (partition: Partition, ask: WriteAsk) => Promise<Prepared | undefined> | undefined;
}

/** Subscribing is what makes this process the partition's owner in the eyes of the gateways. */
export function serveAsks(partition: Partition, { nc, log, prepare }: AskOptions): Subscription {
  const subject = subjects.partition(partition.number);

  const run = (ask: Ask, respond: (code: Parameters<typeof encodeAnswer>[0]['code'], body: string) => void): void => {
    if (!isWrite(ask)) {
      partition.read(ask, respond);
      return;
    }
    const prepared = prepare(partition, ask);
    if (prepared === undefined) {
      partition.write(ask, undefined, respond);
      return;
    }
    prepared.then(
      (value) => partition.write(ask, value, respond),
      (error: unknown) => {
        log.error('prepare_failed', { rid: ask.rid, error });
        respond('internal', JSON.stringify({ error: 'internal' }));
      },
    );
  };

  return nc.subscribe(subject, {
    callback: (error, message) => {
      if (error !== null) {
        log.error('subscription_failed', { subject, error });
        return;
      }
      const answers = collectAnswers(message);
      try {
        for (const [index, ask] of decodeAsks(message.string()).entries()) {
          run(ask, (code, body) => answers.add(encodeAnswer({ index, code, body })));
        }
      } catch (cause) {
        log.error('malformed_batch', { subject, error: cause });
      }
    },
  });
}

/** Everything that is answered in one tick goes out together, in parts that fit a message. */
function collectAnswers(message: Msg): { add(line: string): void } {
  let lines: string[] = [];
  let bytes = 0;
  let scheduled = false;
  const flush = (): void => {
    scheduled = false;
    if (lines.length > 0) message.respond(lines.join('\n'));
    lines = [];
    bytes = 0;
  };
  return {
    add(line) {
      const size = Buffer.byteLength(line) + 1;
      if (bytes + size > limits.answerPartBytes) flush();
      lines.push(line);
      bytes += size;
      if (scheduled) return;
      scheduled = true;
      queueMicrotask(flush);
    },
  };
}
