/** The members' keys in JetStream. */
import type { NatsConnection } from '@nats-io/transport-node';
import { readStream } from '../../lib/stream-read.ts';
import { bucketPrefix, buckets, bucketStream, keys } from '../../schemas/buckets.ts';
import type { MemberId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { compareAndSet, readLast } from '../../lib/jetstream-keys.ts';
import type { MemberStore, StoredMember } from './member-store.ts';

const { bucket } = buckets.members;
const stream = bucketStream(bucket);
const prefix = bucketPrefix(bucket);
const utf8 = new TextDecoder();
const timeoutMs = limits.memberRequestMs;

export function createJetStreamMemberStore(nc: NatsConnection): MemberStore {
  const subjectOf = (id: MemberId): string => prefix + keys.member(id);
  const membersBefore = subjectOf('' as MemberId);

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
      for await (const { subject, sequence, data } of readStream(nc, read)) {
        members.push({
          id: subject.slice(membersBefore.length) as MemberId,
          value: utf8.decode(data),
          revision: sequence,
        });
      }
      return members;
    },
    read: (id) => readLast(nc, stream, subjectOf(id), timeoutMs),
    replace: (id, value, expected, options) =>
      compareAndSet(nc, subjectOf(id), value, expected, { timeoutMs, ...options }),
  };
}
