/**
 * The fields that a container has in a file: those of the API's table, but for its name, which is
 * its key, its project, which is the file's name, and the parts of its image, which are one text.
 * Pure.
 */
import Type, { type TOptional, type TSchema } from 'typebox';
import { fieldOf, settable, type containerFields, type SettableName } from '../../../schemas/api/fields/container.ts';
import { cpuIn, cpuPattern, memoryIn, memoryPattern } from '../../terminal/quantities.ts';
import type { Path } from './tree.ts';

export const imageParts = ['registry', 'repository', 'tag', 'digest'] as const satisfies readonly SettableName[];
export type ImagePart = (typeof imageParts)[number];
export type EntryName = Exclude<SettableName, ImagePart | 'name' | 'project'>;

export const entryNames = settable.filter(
  (name): name is EntryName => !([...imageParts, 'name', 'project'] as readonly string[]).includes(name),
);

/** What people may write otherwise than the API takes it. */
export const written = {
  cpu_limit: {
    pattern: cpuPattern,
    description: 'CPUs, such as 0.5.',
    form: 'must be a number of CPUs with at most three decimals, like 0.5',
    read: cpuIn,
  },
  mem_limit: {
    pattern: memoryPattern,
    description: 'Such as 256m.',
    form: 'must be a whole number of bytes, or one with k, m or g, like 256m',
    read: memoryIn,
  },
} as const satisfies Partial<Record<EntryName, object>>;

const isWritten = (name: EntryName): name is keyof typeof written => Object.hasOwn(written, name);

/** YAML may take it for a number or a boolean; it is read as it is written (`keepTexts`). */
export const Text = (options: { readonly pattern?: string; readonly description?: string } = {}) =>
  Type.Unsafe<string>({ type: ['string', 'number', 'boolean'], ...options });

const typeOf = (name: EntryName): unknown => (fieldOf(name).given as { readonly type?: unknown }).type;

function schemaOf(name: EntryName): TSchema {
  const { given } = fieldOf(name);
  const { description, maxProperties } = given as { description?: string; maxProperties?: number };
  const documented = description === undefined ? {} : { description };
  if (isWritten(name)) return Text({ pattern: written[name].pattern, description: written[name].description });
  switch (typeOf(name)) {
    case 'string':
      return Text(documented);
    case 'object':
      return Type.Record(Type.String(), Text(), {
        ...(maxProperties === undefined ? {} : { maxProperties }),
        ...documented,
      });
    default:
      return given;
  }
}

export const entryProperties = Object.fromEntries(
  entryNames.map((name) => [name, Type.Optional(schemaOf(name))]),
) as unknown as { readonly [F in EntryName]: TOptional<(typeof containerFields)[F]['given']> };

/** Where an entry has texts, below its container. */
export const textPaths: readonly Path[] = entryNames.flatMap((name): Path[] => {
  const type = typeOf(name);
  return type === 'string' ? [[name]] : type === 'object' ? [[name, '*']] : [];
});

/** A value in the form of the API. Undefined: absent, and it has no default that a file names. */
export const valueOf = (name: EntryName, value: unknown): unknown =>
  isWritten(name) ? written[name].read((value ?? fieldOf(name).fallback) as string) : value;
