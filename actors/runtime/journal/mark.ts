/**
 * The checkpoint mark of a partition: its commits up to this one are under keys of their own, and
 * the later ones are in the journals that the mark names. A journal has commits of a partition only
 * after the mark names it.
 */
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import type { MemberId } from '../../../schemas/ids.ts';
import { decodeValue, encodeValue, type Decoded, type Encoded } from './codec.ts';

const Stored = Type.Object({
  number: Type.Integer(),
  /** Members with journals that may have later commits; empty if there are no later ones. */
  journals: Type.Unsafe<readonly MemberId[]>(Type.Array(Type.String())),
});

export type Mark = Readonly<Static<typeof Stored>>;

const format = '2';
const markShape = Compile(Stored);

export const encodeMark = (mark: Mark): string => encodeValue(mark, format);
export const decodeMark = (value: Encoded): Decoded<Mark> => decodeValue(value, markShape, format);
