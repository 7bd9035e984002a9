/** A value or null, which is what stands in an answer where there is nothing to say. */
import Type, { type TSchema } from 'typebox';

export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
