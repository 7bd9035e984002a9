/** Imports of test files, read from the compiled files, so types do not count. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { init, parse } from 'es-module-lexer';
import { repositoryRoot } from '../../../../dev/paths.ts';
import { toolNames, type ToolName } from '../../../../dev/fetch/tool-table.ts';

export interface Graph {
  /** The file itself and all files of ours that it imports, directly or not. */
  importsOf(path: string): ReadonlySet<string>;
  /**
   * The tools whose names stand in the file, or in what it imports of test/ and of the servers of
   * development. Some may not be used; none is missing.
   */
  toolsOf(path: string): ReadonlySet<ToolName>;
}

/** Paths are those of compiled files, relative to the root: `dist/test/run.js`. */
export async function readGraph(): Promise<Graph> {
  await init();
  const texts = new Map<string, string>();
  const direct = new Map<string, readonly string[]>();
  const textOf = (path: string): string => {
    const known = texts.get(path);
    if (known !== undefined) return known;
    const full = join(repositoryRoot, path);
    const text = existsSync(full) ? readFileSync(full, 'utf8') : '';
    texts.set(path, text);
    return text;
  };
  const directOf = (path: string): readonly string[] => {
    const known = direct.get(path);
    if (known !== undefined) return known;
    const [imports] = parse(textOf(path));
    const found = imports.flatMap(({ specifier }) =>
      specifier?.startsWith('.') === true ? [normalize(join(dirname(path), specifier))] : [],
    );
    direct.set(path, found);
    return found;
  };
  const importsOf = (path: string): ReadonlySet<string> => {
    const found = new Set([path]);
    for (const from of found) for (const next of directOf(from)) found.add(next);
    return found;
  };
  return {
    importsOf,
    toolsOf: (path) => {
      const ours = [...importsOf(path)].filter((imported) => /^dist\/(test|dev\/(servers|stack))\//.test(imported));
      const isNamed = (name: ToolName): boolean => ours.some((file) => textOf(file).includes(`'${name}'`));
      return new Set(toolNames.filter(isNamed));
    },
  };
}

/** The compiled file of a source: `lib/log.ts` → `dist/lib/log.js`. */
export const compiledOf = (source: string): string => join('dist', source.replace(/\.ts$/, '.js'));
