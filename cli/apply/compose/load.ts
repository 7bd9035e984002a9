/**
 * Loads a Compose file, the files that it includes and extends, and the files that override it, as
 * one tree. The paths in it are relative to the folder of the first file, or absolute.
 */
import { basename, dirname, join, resolve } from 'node:path';
import { limits } from '../../../schemas/limits.ts';
import type { SourceFile } from '../file/source.ts';
import {
  below,
  isBranch,
  isLeaf,
  isList,
  sizeOf,
  textOf,
  withEntry,
  type Branch,
  type Path,
  type Remark,
  type Tree,
} from '../file/tree.ts';
import { ComposeFiles, joined, type Lookup, type Opened, type Scope } from './files.ts';
import { merged, settled } from './merge.ts';

export interface Loaded {
  /** `undefined` after a fault. */
  readonly tree: Tree | undefined;
  readonly faults: readonly Remark[];
  readonly warnings: readonly Remark[];
  /** Variables that secrets name, also those of included files, which may have their own. */
  readonly variableOf: Lookup;
}

/**
 * @param source without faults of its syntax
 * @param folder of the first file, which names of files are relative to
 * @param overrides are merged over it, one after another
 */
export function loaded(
  source: SourceFile,
  folder: string,
  valueOf: Lookup,
  overrides: readonly SourceFile[] = [],
): Loaded {
  const files = new ComposeFiles(source.file, folder, valueOf);
  const scope = { base: '', valueOf };
  const first = { tree: files.treeOf(source, scope), path: resolve(folder, basename(source.file)) };
  const others = overrides.flatMap((one) => {
    const tree = files.checkedTree(one, scope);
    return tree === undefined ? [] : [{ tree, path: resolve(folder, basename(one.file)) }];
  });
  const tree = settled(new Loader(files).model([first, ...others], scope, []));
  if (sizeOf(tree) > limits.applyExpandedValues) files.fault(tree, tooMuch);
  const { faults, warnings } = files;
  const variableOf: Lookup = (name) => files.variableOf(name);
  return { tree: faults.length > 0 ? undefined : tree, faults, warnings, variableOf };
}

const tooMuch = `with all that it extends and includes it has more than ${limits.applyExpandedValues} values: use fewer`;

/** The items of a list, or the one value in its place. */
function itemsOf(tree: Tree | undefined): readonly Tree[] {
  if (isList(tree)) return tree.items;
  return tree === undefined || (isLeaf(tree) && tree.value === null) ? [] : [tree];
}

class Loader {
  readonly #files: ComposeFiles;
  /** Services with all that they extend, by the branch that has them. */
  readonly #services = new Map<Branch, Map<string, Tree>>();
  readonly #sizes = new Map<Tree, number>();
  readonly #settled = new Map<Tree, Tree>();
  /** Number of values that went through merges. */
  #values = 0;

  constructor(files: ComposeFiles) {
    this.#files = files;
  }

  /** @param above paths of the files that include these */
  model(files: readonly Opened[], scope: Scope, above: readonly string[]): Tree {
    const [first, ...others] = files.map(({ tree, path }) =>
      this.#extended(this.#included(tree, scope, [...above, path]), scope, path),
    );
    if (first === undefined) throw new Error('there is no file to merge');
    return others.reduce((base, over) => this.#merged(base, over, []), first);
  }

  #merged(base: Tree, over: Tree, path: Path): Tree {
    if (this.#values > limits.applyExpandedValues) return over;
    this.#values += sizeOf(base, this.#sizes) + sizeOf(over, this.#sizes);
    if (this.#values > limits.applyExpandedValues) {
      this.#files.fault(over, tooMuch);
      return over;
    }
    const clash = "can't be merged with what it overrides: write both in one form";
    return merged(base, over, path, (at, field) => this.#files.fault(at, clash, field));
  }

  /** Merges the file over the files that it includes. */
  #included(tree: Tree, scope: Scope, chain: readonly string[]): Tree {
    const given = below(tree, 'include');
    if (given === undefined || !isBranch(tree)) return tree;
    if (!isList(given) && textOf(given) !== undefined) this.#files.fault(given, 'must be a list', ['include']);
    const items = isList(given) ? given.items : [];
    return items.reduce<Branch>(
      (all, item, at) => {
        const model = this.#includedModel(item, scope, chain, ['include', String(at)]);
        return isBranch(model) ? this.#imported(all, model) : all;
      },
      withEntry(tree, 'include', undefined),
    );
  }

  #includedModel(item: Tree, scope: Scope, chain: readonly string[], field: Path): Tree | undefined {
    const files = this.#files;
    const { valueOf } = scope;
    for (const [key, value] of isBranch(item) ? item.entries : [])
      if (!['path', 'project_directory', 'env_file'].includes(key)) files.fault(value, 'is not known', [...field, key]);
    const named = (one: Tree): readonly [string, Tree] => [joined(scope.base, textOf(one) ?? ''), one];
    const paths = itemsOf(isBranch(item) ? item.entries.get('path') : item).map(named);
    const [[name] = ['']] = paths;
    if (paths.length === 0 || paths.some(([, path]) => textOf(path) === undefined)) {
      files.fault(item, 'must be a path, or a map with path', field);
      return undefined;
    }
    const directory = textOf(below(item, 'project_directory'));
    const base = directory === undefined ? dirname(name) : joined(scope.base, directory);
    const variables = itemsOf(below(item, 'env_file')).map(named);
    const own = { base, valueOf: files.variablesOf(variables, join(base, '.env'), valueOf, item) };
    const opened = paths.map(([path, at]) => files.open(path, at, own));
    const [first] = opened;
    if (first !== undefined && chain.includes(first.path)) {
      files.fault(item, `goes in a circle: ${[...chain, first.path].map((one) => basename(one)).join(' → ')}`, field);
      return undefined;
    }
    const all = opened.filter((one) => one !== undefined);
    return all.length < opened.length ? undefined : this.model(all, own, chain);
  }

  #imported(all: Branch, model: Branch): Branch {
    let result = all;
    for (const [key, values] of model.entries) {
      if (['name', 'version'].includes(key) || key.startsWith('x-')) continue;
      const own = result.entries.get(key);
      if (isBranch(own) && isBranch(values)) {
        const entries = new Map(own.entries);
        for (const [name, value] of values.entries) {
          const over = entries.get(name);
          entries.set(name, over === undefined ? value : this.#merged(value, over, [key, name]));
        }
        result = withEntry(result, key, { ...own, entries });
      } else if (own === undefined || (isLeaf(own) && own.value === null)) result = withEntry(result, key, values);
    }
    return result;
  }

  /** Merges services over the services that they extend. */
  #extended(tree: Tree, scope: Scope, file: string): Tree {
    const services = below(tree, 'services');
    if (!isBranch(tree) || !isBranch(services)) return tree;
    const entries = [...services.entries.keys()].flatMap((name) => {
      const service = this.#service(name, services, scope, file, []);
      return service === undefined ? [] : [[name, service] as const];
    });
    return withEntry(tree, 'services', { ...services, entries: new Map(entries) });
  }

  #service(name: string, services: Branch, scope: Scope, file: string, above: readonly string[]): Tree | undefined {
    const service = services.entries.get(name);
    const given = below(service, 'extends');
    if (!isBranch(service) || given === undefined) return service;
    const known = this.#services.get(services) ?? new Map<string, Tree>();
    this.#services.set(services, known);
    const found = known.get(name);
    if (found !== undefined) return found;
    const own = withEntry(service, 'extends', undefined);
    const field = ['services', name, 'extends'];
    const here = `${name} of ${file}`;
    const why = above.includes(here)
      ? 'goes in a circle'
      : above.length > limits.applyDepth && `is one of more than ${limits.applyDepth} in a row`;
    if (why !== false) {
      this.#files.fault(given, why, field);
      return own;
    }
    const base = this.#baseOf(given, services, scope, file, [...above, here], field);
    const result = isBranch(base) ? this.#merged(settled(base, this.#settled), own, ['services', name]) : own;
    known.set(name, result);
    return result;
  }

  /** The service that another one extends. */
  #baseOf(
    given: Tree,
    services: Branch,
    scope: Scope,
    file: string,
    above: readonly string[],
    field: Path,
  ): Tree | undefined {
    const extended = textOf(isBranch(given) ? given.entries.get('service') : given);
    const named = textOf(below(given, 'file'));
    if (extended === undefined) {
      this.#files.fault(given, 'must be the name of a service, or a map with service', field);
      return undefined;
    }
    if (named === undefined) {
      if (services.entries.has(extended)) return this.#service(extended, services, scope, file, above);
      this.#files.fault(given, `names "${extended}", which is no service`, field);
      return undefined;
    }
    const name = joined(scope.base, named);
    const own = { ...scope, base: dirname(name) };
    const opened = this.#files.open(name, given, own);
    if (opened === undefined) return undefined;
    const others = below(opened.tree, 'services');
    if (isBranch(others) && others.entries.has(extended))
      return this.#service(extended, others, own, opened.path, above);
    this.#files.fault(given, `names "${extended}", which is no service of ${name}`, field);
    return undefined;
  }
}
