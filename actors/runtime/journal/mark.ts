/**
 * The checkpoint mark of a partition: its commits up to this one are under keys of their own, and
 * the later ones are in the journals that the mark names. A journal has commits of a partition only
 * after the mark names it.
 *
 * A mark without journals is one of release 0.1.0: its later commits are in a ring in the bucket
 * (legacy.ts). The newer form has a format of its own, so that a process of that release refuses to
 * load what it would load without its last commits.
 */
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import type { MemberId } from '../../../schemas/ids.ts';
import { decodeValue, encodeValue, type Decoded, type Encoded } from './codec.ts';

const StoredMark = Type.Object({
  number: Type.Integer(),
  /** Members with journals that may have later commits; none: there are no later ones. */
  journals: Type.Unsafe<readonly MemberId[]>(Type.Array(Type.String())),
});

export type Mark = Readonly<Static<typeof StoredMark>> | LegacyMark;
export interface LegacyMark {
  readonly number: number;
  readonly journals: 'in the bucket';
}

/** None for a mark of release 0.1.0. */
export const journalsNamedBy = ({ journals }: Mark): readonly MemberId[] =>
  journals === 'in the bucket' ? [] : journals;

const format = '2';
const markShape = Compile(StoredMark);
const legacyShape = Compile(Type.Integer());

export const encodeMark = (mark: Mark): string =>
  mark.journals === 'in the bucket' ? encodeValue(mark.number) : encodeValue(mark, format);

export function decodeMark(value: Encoded): Decoded<Mark> {
  const decoded = decodeValue(value, markShape, format);
  if (decoded.ok) return decoded;
  const legacy = decodeValue(value, legacyShape);
  if (!legacy.ok) return decoded.fault.startsWith('format') ? legacy : decoded;
  return { ok: true, value: { number: legacy.value, journals: 'in the bucket' } };
}
