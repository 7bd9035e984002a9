/** Actors processes, by their leases. */
import type { NatsConnection } from '@nats-io/transport-node';
import type { MemberId } from '../../../schemas/ids.ts';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { createJetStreamMemberStore } from '../../../actors/membership/jetstream-member-store.ts';
import { decodeValue } from '../../../actors/runtime/journal/codec.ts';
import { journalBucketOf } from '../../../actors/runtime/store/jetstream-store.ts';

export interface Member {
  readonly id: MemberId;
  /** The bucket that has its journal. */
  readonly journal: string;
  readonly partitions: readonly number[];
}

const shape = Compile(Type.Object({ state: Type.String(), partitions: Type.Array(Type.Integer()) }));

/** Members that are not declared dead; the answer may be stale. */
export async function membersOf(nc: NatsConnection): Promise<Member[]> {
  const all = await createJetStreamMemberStore(nc).list();
  return all.flatMap(({ id, value }) => {
    const record = decodeValue(value, shape);
    if (!record.ok || record.value.state === 'dead') return [];
    return [{ id, journal: journalBucketOf(id), partitions: record.value.partitions }];
  });
}
