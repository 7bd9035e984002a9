/** The values of a YAML file, each with the place that it is written at. Pure. */
import { oneLine } from '../../../schemas/visible.ts';

export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export type Path = readonly string[];

/** A fault in a file, or a part that is ignored. */
export interface Remark {
  readonly place: Place;
  /** Path in its structure, such as `containers.web.env`; empty if it is in no one place. */
  readonly field: string;
  readonly message: string;
}

/** As editors and compilers write it: `longshore.yml:3:5: containers.web.image can't be blank`. */
export const textOfRemark = ({ place: { file, line, column }, field, message }: Remark): string =>
  oneLine(`${file}:${line}:${column}: ${field === '' ? message : `${field}: ${message}`}`);

interface Placed {
  /** Position of the value, or of its key if it is a list or a map. */
  readonly place: Place;
  readonly keyPlace: Place;
  /** A tag such as `!reset`. */
  readonly tag?: string | undefined;
}

export interface Leaf extends Placed {
  /** A text, a number, a boolean or null. */
  readonly value: unknown;
}

export interface List extends Placed {
  readonly items: readonly Tree[];
}

export interface Branch extends Placed {
  readonly entries: ReadonlyMap<string, Tree>;
}

export type Tree = Leaf | List | Branch;

export const isLeaf = (tree: Tree | undefined): tree is Leaf => tree !== undefined && 'value' in tree;
export const isList = (tree: Tree | undefined): tree is List => tree !== undefined && 'items' in tree;
export const isBranch = (tree: Tree | undefined): tree is Branch => tree !== undefined && 'entries' in tree;

/** A text, number or boolean as text; `undefined` for other values. */
export const textOf = (tree: Tree | undefined): string | undefined =>
  isLeaf(tree) && tree.value !== null ? String(tree.value) : undefined;

/** The tree at a path; `undefined` if there is none. */
export const below = (tree: Tree | undefined, ...path: Path): Tree | undefined =>
  path.reduce<Tree | undefined>(
    (here, part) => (isBranch(here) ? here.entries.get(part) : isList(here) ? here.items[Number(part)] : undefined),
    tree,
  );

/** A copy with another value of a key, or without the key. */
export function withEntry(tree: Branch, name: string, value: Tree | undefined): Branch {
  const entries = new Map(tree.entries);
  if (value === undefined) entries.delete(name);
  else entries.set(name, value);
  return { ...tree, entries };
}

/** A copy with another value at each such path; `*` is any key or item. */
export function changed(tree: Tree, [first, ...rest]: Path, change: (tree: Tree) => Tree): Tree {
  if (first === undefined) return change(tree);
  const ofPart = (name: string, part: Tree): Tree =>
    first === '*' || first === name ? changed(part, rest, change) : part;
  if (isList(tree)) return { ...tree, items: tree.items.map((item, at) => ofPart(String(at), item)) };
  if (!isBranch(tree)) return tree;
  const entries = [...tree.entries].map(([name, value]) => [name, ofPart(name, value)] as const);
  return { ...tree, entries: new Map(entries) };
}

/** The plain value, without positions. */
export function plainOf(tree: Tree): unknown {
  if (isList(tree)) return tree.items.map(plainOf);
  if (!isBranch(tree)) return tree.value;
  return Object.fromEntries([...tree.entries].map(([key, value]) => [key, plainOf(value)]));
}

/**
 * A remark about the value at a path, or about its key. If the path does not exist, its last
 * existing part.
 */
export function remarkIn(tree: Tree, path: Path, message: string, at: 'key' | 'value' = 'value'): Remark {
  let here = tree;
  for (const part of path) {
    const next = below(here, part);
    if (next === undefined) break;
    here = next;
  }
  return { place: at === 'key' ? here.keyPlace : here.place, field: path.join('.'), message };
}

/** Number of values in a tree. A value that occurs several times counts each time. */
export function sizeOf(tree: Tree, known = new Map<Tree, number>()): number {
  const found = known.get(tree);
  if (found !== undefined) return found;
  const parts = isList(tree) ? tree.items : isBranch(tree) ? [...tree.entries.values()] : [];
  const size = parts.reduce((sum, part) => sum + sizeOf(part, known), 1);
  known.set(tree, size);
  return size;
}
