/** Finds, reads and interpolates the files that a Compose file names, and collects their faults. */
import { existsSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { limits } from '../../../schemas/limits.ts';
import { Refused } from '../../terminal/errors.ts';
import { readFile } from '../../terminal/input.ts';
import { SourceFile } from '../file/source.ts';
import {
  changed,
  isBranch,
  isLeaf,
  isList,
  remarkIn,
  textOf,
  textOfRemark,
  type Path,
  type Remark,
  type Tree,
} from '../file/tree.ts';
import { isOutside, withHome } from '../file/values.ts';
import { BadLine, rawVariablesIn, variablesIn } from './dot-env.ts';
import { mergeTags } from './merge.ts';

export type Lookup = (name: string) => string | undefined;

/** The folder and the variables that a file is read with. */
export interface Scope {
  /** Folder that its paths are relative to, from that of the first file. */
  readonly base: string;
  readonly valueOf: Lookup;
}

export interface Opened {
  readonly tree: Tree;
  /** Absolute. */
  readonly path: string;
}

/** False for a folder that is called `.env`. */
export const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

/** @throws Refused if it can't be read */
export function readVariables(path: string, valueOf: Lookup, isRaw = false): Record<string, string> {
  const text = readFile(path).toString('utf8');
  try {
    return isRaw ? rawVariablesIn(text, valueOf) : variablesIn(text, valueOf);
  } catch (error) {
    throw error instanceof BadLine ? new Refused(`${path}: ${error.message}`) : error;
  }
}

/** Paths whose values stay texts as they are written: `1.10` is no number. */
const texts: readonly Path[] = [
  ['environment', '*'],
  ['command'],
  ['command', '*'],
  ['entrypoint'],
  ['entrypoint', '*'],
  ['user'],
].map((path) => ['services', '*', ...path]);
const modes: readonly Path[] = ['secrets', 'configs'].map((kind) => ['services', '*', kind, '*', 'mode']);

const isRemote = (path: string): boolean => /^(?:\w[\w+.-]*:\/\/|git@|github\.com\/)/.test(path);

export const joined = (base: string, path: string): string =>
  base === '' || isAbsolute(path) || path.startsWith('~') ? path : join(base, path);

const changedText =
  (change: (text: string) => string) =>
  (tree: Tree): Tree => {
    const text = textOf(tree);
    return text === undefined ? tree : { ...tree, value: change(text) };
  };

/** Makes the paths in a file relative to the folder of the first file. */
function moved(tree: Tree, base: string): Tree {
  const ofPath = changedText((path) => joined(base, path));
  const ofFile = (file: Tree): Tree => (isBranch(file) ? changed(file, ['path'], ofPath) : ofPath(file));
  const ofFiles = (files: Tree): Tree => (isList(files) ? changed(files, ['*'], ofFile) : ofFile(files));
  const withEnvFiles = changed(tree, ['services', '*', 'env_file'], ofFiles);
  return changed(changed(withEnvFiles, ['secrets', '*', 'file'], ofPath), ['configs', '*', 'file'], ofPath);
}

/** Gives variables without a value those of an included file. */
function withVariables(environment: Tree, valueOf: Lookup): Tree {
  const ofItem = changedText((text) => {
    const value = text.includes('=') ? undefined : valueOf(text);
    return value === undefined ? text : `${text}=${value}`;
  });
  if (isList(environment)) return changed(environment, ['*'], ofItem);
  if (!isBranch(environment)) return environment;
  const entries = [...environment.entries].map(([name, value]) => {
    const isUnset = isLeaf(value) && value.value === null && value.tag === undefined;
    const found = isUnset ? valueOf(name) : undefined;
    return [name, found === undefined ? value : { ...value, value: found }] as const;
  });
  return { ...environment, entries: new Map(entries) };
}

export class ComposeFiles {
  readonly valueOf: Lookup;
  /** Name of the first file, for messages. */
  readonly #first: string;
  readonly #folder: string;
  /** Faults by their texts: a file may be read several times. */
  readonly #faults = new Map<string, Remark>();
  readonly #warnings = new Map<string, Remark>();
  readonly #opened = new Map<string, { readonly scope: Scope; readonly file: Opened | undefined }>();
  /** Variables of secrets that only an included file has. */
  readonly #scoped = new Map<string, string>();

  constructor(first: string, folder: string, valueOf: Lookup) {
    this.#first = first;
    this.#folder = folder;
    this.valueOf = valueOf;
  }

  get faults(): Remark[] {
    return [...this.#faults.values()];
  }

  get warnings(): Remark[] {
    return [...this.#warnings.values()];
  }

  /** Includes variables that only a secret of an included file names. */
  variableOf(name: string): string | undefined {
    return this.#scoped.get(name) ?? this.valueOf(name);
  }

  fault(at: Tree, message: string, field: Path = []): void {
    const remark = { ...remarkIn(at, [], message), field: field.join('.') };
    this.#faults.set(textOfRemark(remark), remark);
  }

  /** As `treeOf`, but `undefined` after a fault of the syntax. */
  checkedTree(source: SourceFile, scope: Scope): Tree | undefined {
    const faults = source.syntaxFaults(mergeTags);
    for (const fault of faults) this.#faults.set(textOfRemark(fault), fault);
    if (faults.length > 0) return undefined;
    const tree = this.treeOf(source, scope);
    if (!isBranch(tree)) this.fault(tree, 'must be an object');
    return tree;
  }

  /**
   * The tree with its variables filled in and its paths relative to the folder of the first file.
   */
  treeOf(source: SourceFile, { base, valueOf }: Scope): Tree {
    const { faults, warnings } = source.interpolate(valueOf, true);
    for (const fault of faults) this.#faults.set(textOfRemark(fault), fault);
    for (const warning of warnings) this.#warnings.set(textOfRemark(warning), warning);
    for (const pattern of texts) source.keepTexts(pattern);
    for (const pattern of modes) source.readOctal(pattern);
    const tree = moved(source.tree(), base);
    if (valueOf === this.valueOf) return tree;
    const ofSecret = changedText((name) => this.#scopedName(name, valueOf));
    return changed(
      changed(tree, ['services', '*', 'environment'], (one) => withVariables(one, valueOf)),
      ['secrets', '*', 'environment'],
      ofSecret,
    );
  }

  /** A unique name for a variable: two included files may give one variable different values. */
  #scopedName(name: string, valueOf: Lookup): string {
    const value = valueOf(name);
    if (value === undefined || value === this.valueOf(name)) return name;
    let scoped = name;
    while ((this.variableOf(scoped) ?? value) !== value) scoped += '_';
    this.#scoped.set(scoped, value);
    return scoped;
  }

  /**
   * @param name of a file, relative to the folder of the first one
   * @param at the node that names it, for faults
   * @returns its absolute path, or `undefined` beside a fault
   */
  #find(name: string, at: Tree): string | undefined {
    const path = resolve(this.#folder, withHome(name));
    if (isRemote(name)) this.fault(at, `${name} is not on this machine: Longshore reads no remote files`);
    else if (!existsSync(path)) this.fault(at, `there is no file ${name}`);
    else {
      const outside = remarkIn(at, [], `reads ${path}, which is outside of the folder of this file`);
      if (isOutside(this.#folder, path) && !this.#warnings.has(path)) this.#warnings.set(path, outside);
      return path;
    }
    return undefined;
  }

  /** @returns `undefined` after a fault; parameters as of `#find` */
  open(name: string, at: Tree, scope: Scope): Opened | undefined {
    const path = this.#find(name, at);
    if (path === undefined) return undefined;
    const known = this.#opened.get(path);
    if (known?.scope.base === scope.base && known.scope.valueOf === scope.valueOf) return known.file;
    if (this.#opened.size >= limits.applyNamedFiles) {
      this.fault(at, `is one of more than ${limits.applyNamedFiles} files: use fewer`);
      return undefined;
    }
    const file = this.#read(name, path, at, scope);
    this.#opened.set(path, { scope, file });
    return file;
  }

  #read(name: string, path: string, at: Tree, scope: Scope): Opened | undefined {
    try {
      const shown = isAbsolute(name) || name.startsWith('~') ? path : join(dirname(this.#first), name);
      const tree = this.checkedTree(new SourceFile(shown, readFile(path).toString('utf8')), scope);
      return tree === undefined ? undefined : { tree, path };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.fault(at, error.message);
      return undefined;
    }
  }

  /**
   * Those of files of variables, under those of `valueOf`.
   * @param named each with what names it
   * @param usual the file that is read in their place if it is there
   */
  variablesOf(named: readonly (readonly [string, Tree])[], usual: string, valueOf: Lookup, at: Tree): Lookup {
    const isUsual = named.length === 0 && isFile(resolve(this.#folder, withHome(usual)));
    const given = isUsual ? [[usual, at] as const] : named.filter(([name]) => name !== '/dev/null');
    if (given.length === 0) return valueOf;
    const found: Record<string, string> = {};
    const own: Lookup = (name) => valueOf(name) ?? (Object.hasOwn(found, name) ? found[name] : undefined);
    for (const [name, from] of given) {
      const path = this.#find(name, from);
      if (path === undefined) continue;
      try {
        Object.assign(found, readVariables(path, own));
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        this.fault(from, error.message);
      }
    }
    return own;
  }
}
