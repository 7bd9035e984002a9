/** The record of a member: in its key, and in the notices that processes send each other. */
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { decoder } from '../../lib/decode.ts';
import type { MemberId } from '../../schemas/ids.ts';
import { decodeValue, encodeValue } from '../runtime/journal/codec.ts';
import type { StoredMember } from './member-store.ts';

const partitionNumbers = Type.Unsafe<readonly number[]>(Type.Array(Type.Integer()));
const MemberRecord = Type.Object({
  id: Type.Unsafe<MemberId>(Type.String()),
  /** Leaving: it takes no more partitions, and hands over those it has. Dead is final. */
  state: Type.Unsafe<'live' | 'leaving' | 'dead'>(Type.String()),
  /** Counts renewals, so that each record differs from the one before. */
  renewal: Type.Integer(),
  /** The partitions that it serves, as a hint. The epoch record of each partition decides. */
  partitions: partitionNumbers,
  /** Partitions that it cannot load; another member tries. Absent if it is dead. */
  refused: Type.Optional(partitionNumbers),
});
export type MemberRecord = Readonly<Static<typeof MemberRecord>>;
const memberShape = Compile(MemberRecord);

/** `undefined` if the value is unreadable. */
export function recordOf(value: string): MemberRecord | undefined {
  const decoded = decodeValue(value, memberShape);
  return decoded.ok ? decoded.value : undefined;
}

export const deadRecord = (id: MemberId): string =>
  encodeValue({ id, state: 'dead', renewal: 0, partitions: [] } satisfies MemberRecord);

/** The content of a record, apart from the number of renewals. */
export const contentOf = (record: MemberRecord | undefined): string => JSON.stringify({ ...record, renewal: 0 });

const MemberNotice = Type.Object({ record: Type.String(), revision: Type.Integer({ minimum: 1 }) });
const decodeNotice = decoder(MemberNotice);

/** The notice of a value that the store has acknowledged at this revision. */
export const noticeOf = ({ value, revision }: Pick<StoredMember, 'value' | 'revision'>): string =>
  JSON.stringify({ record: value, revision } satisfies Static<typeof MemberNotice>);

/** `undefined` if it says only that something changed. */
export function heardIn(notice: Uint8Array): StoredMember | undefined {
  try {
    const { record: value, revision } = decodeNotice(notice);
    const id = recordOf(value)?.id;
    return id === undefined ? undefined : { id, value, revision };
  } catch {
    return undefined;
  }
}
