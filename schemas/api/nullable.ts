/** A value, or null in an answer without one. */
import Type, { type TSchema } from 'typebox';

export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
