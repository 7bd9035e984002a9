/**
 * The fields that a container has in a file: those of the API's table, but for its name, which is
 * its key, its project, which is the file's name, and the parts of its image, which are one text.
 * Pure.
 */
import Type, { type TOptional, type TSchema } from 'typebox';
import {
  fieldOf,
  kept,
  settable,
  type containerFields,
  type MetadataName,
  type NotedName,
  type PartName,
  type SettableName,
} from '../../../schemas/api/fields/container.ts';
import type { Process } from '../../../schemas/api/fields/process-part.ts';
import { cpuIn, cpuPattern, memoryIn, memoryPattern } from '../../terminal/quantities.ts';
import type { Path } from './tree.ts';

export const imageParts = ['registry', 'repository', 'tag', 'digest'] as const satisfies readonly SettableName[];
export type ImagePart = (typeof imageParts)[number];
export type EntryName = Exclude<SettableName | MetadataName | NotedName | PartName, ImagePart | 'name' | 'project'>;

export const entryNames = [...new Set([...settable, ...kept])].filter(
  (name): name is EntryName => !([...imageParts, 'name', 'project'] as readonly string[]).includes(name),
);

/** Fields that a file may write in another form than the API. */
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

/** A text that YAML may take for a number or a boolean; it is read as written (`keepTexts`). */
export const Text = (options: { readonly pattern?: string; readonly description?: string } = {}) =>
  Type.Unsafe<string>({ type: ['string', 'number', 'boolean'], ...options });

interface Node {
  readonly type?: string;
  readonly description?: string;
  readonly maxProperties?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly patternProperties?: Readonly<Record<string, Node>>;
  readonly items?: Node;
  readonly anyOf?: readonly Node[];
}

const isText = (node: Node | undefined): boolean => node?.type === 'string';
const ofMap = ({ patternProperties }: Node): Node | undefined => Object.values(patternProperties ?? {})[0];
/** A file leaves out what it does not set, in place of null. */
const withoutNull = (node: Node): Node => node.anyOf?.find(({ type }) => type !== 'null') ?? node;

/** A schema whose texts may be written as numbers and booleans. */
function textual(node: Node): TSchema {
  const { description, maxProperties, maxItems, properties } = node;
  const documented = description === undefined ? {} : { description };
  if (isText(node)) return Text(documented);
  if (properties !== undefined) {
    const entries = Object.entries(properties).map(([name, one]) => [name, Type.Optional(textual(withoutNull(one)))]);
    return Type.Object(Object.fromEntries(entries) as Record<string, TSchema>, {
      additionalProperties: false,
      ...documented,
    });
  }
  if (isText(ofMap(node)))
    return Type.Record(Type.String(), Text(), {
      ...(maxProperties === undefined ? {} : { maxProperties }),
      ...documented,
    });
  if (isText(node.items)) return Type.Array(Text(), { ...(maxItems === undefined ? {} : { maxItems }), ...documented });
  return node;
}

const nodeOf = (name: EntryName): Node => fieldOf(name).given as Node;

const schemaOf = (name: EntryName): TSchema =>
  isWritten(name)
    ? Text({ pattern: written[name].pattern, description: written[name].description })
    : textual(nodeOf(name));

export const entryProperties = Object.fromEntries(
  entryNames.map((name) => [name, Type.Optional(schemaOf(name))]),
) as unknown as { readonly [F in EntryName]: TOptional<(typeof containerFields)[F]['given']> };

function textsIn(node: Node): Path[] {
  if (isText(node)) return [[]];
  if (isText(ofMap(node)) || isText(node.items)) return [['*']];
  return Object.entries(node.properties ?? {}).flatMap(([name, one]) =>
    textsIn(withoutNull(one)).map((path) => [name, ...path]),
  );
}

/** Paths of all texts in the entry of a container, relative to the entry. */
export const textPaths: readonly Path[] = entryNames.flatMap((name) =>
  textsIn(nodeOf(name)).map((path) => [name, ...path]),
);

const withSizes = ({ tmpfs, shm_size, ...process }: Process): Process => ({
  ...process,
  ...(tmpfs === undefined
    ? {}
    : { tmpfs: Object.fromEntries(Object.entries(tmpfs).map(([path, size]) => [path, memoryIn(size)])) }),
  ...(shm_size === undefined ? {} : { shm_size: memoryIn(shm_size) }),
});

/**
 * A value in the form of the API. An absent limit gets its default; other fields stay `undefined`.
 */
export function valueOf(name: EntryName, value: unknown): unknown {
  if (isWritten(name)) return written[name].read((value ?? fieldOf(name).fallback) as string);
  return name === 'process' && value !== undefined ? withSizes(value as Process) : value;
}
