/** Stores the members' keys in JetStream. */
import type { NatsConnection } from '@nats-io/transport-node';
import type { Answers } from '../../lib/nats/answers.ts';
import { readLasts, readStream, type ReadMessage } from '../../lib/nats/direct-reads.ts';
import { bucketPrefix, buckets, bucketStream, keys } from '../../schemas/records/buckets.ts';
import type { MemberId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { compareAndSet, readLast } from '../../lib/nats/kv-keys.ts';
import type { MemberStore, StoredMember } from './member-store.ts';

const { bucket } = buckets.members;
const stream = bucketStream(bucket);
const prefix = bucketPrefix(bucket);
const utf8 = new TextDecoder();
/** The deadline of a request for members' keys. */
const timeoutMs = 500;

/**
 * The lease is renewed several times a second, so the answers to renewals show whether the server
 * still reaches JetStream.
 */
export function createJetStreamMemberStore(nc: NatsConnection, answers?: Answers): MemberStore {
  const subjectOf = (id: MemberId): string => prefix + keys.member(id);
  const membersBefore = subjectOf('' as MemberId);
  const memberOf = ({ subject, sequence, data }: ReadMessage): StoredMember => ({
    id: subject.slice(membersBefore.length) as MemberId,
    value: utf8.decode(data),
    revision: sequence,
  });

  return {
    async list() {
      const members: StoredMember[] = [];
      const read = {
        stream,
        filter: `${membersBefore}*`,
        from: { seq: 1 },
        batchMessages: limits.membersPerRead,
        batchBytes: limits.answerPartBytes,
        timeoutMs,
      };
      for await (const message of readStream(nc, read)) members.push(memberOf(message));
      return members;
    },
    async readSome(ids) {
      const messages = await readLasts(nc, { stream, timeoutMs }, ids.map(subjectOf));
      return messages.map(memberOf);
    },
    read: (id) => readLast(nc, stream, subjectOf(id), timeoutMs),
    async replace(id, value, expected, options) {
      answers?.asked();
      const revision = await compareAndSet(nc, subjectOf(id), value, expected, { timeoutMs, ...options });
      answers?.heard();
      return revision;
    },
  };
}
