/** Finds test files, and reads results from tap's output. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../../dev/paths.ts';

/** Paths of the compiled test files; one whose source was deleted is ignored. */
export function testFiles(selection: readonly string[]): string[] {
  const sources = readdirSync(join(repositoryRoot, 'test'), { recursive: true, encoding: 'utf8' })
    .map((name) => `test/${name}`)
    .filter((name) => name.endsWith('.test.ts'))
    .sort();
  const wanted = selection.map((name) => name.replace(/^(\.\/)?(dist\/)?/, '').replace(/\.js$/, '.ts'));
  const chosen = wanted.length === 0 ? sources : sources.filter((name) => wanted.some((part) => name.includes(part)));
  return chosen
    .map((name) => join('dist', name.replace(/\.ts$/, '.js')))
    .filter((name) => existsSync(join(repositoryRoot, name)));
}

export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Parses the closing comment of tap's output, such as `# { total: 3, pass: 2, fail: 1 }`. */
export function totalsOf(line: string): Totals | undefined {
  const text = /^# \{ (total: .*) \}$/.exec(line)?.[1];
  if (text === undefined) return undefined;
  const counts = Object.fromEntries(text.split(', ').map((pair) => pair.split(': ') as [string, string]));
  const count = (name: string): number => Number(counts[name] ?? 0);
  return { passed: count('pass'), failed: count('fail'), skipped: count('skip') + count('todo') };
}

/** Keeps the lines of a file's output that are failures or that the test printed itself. */
export const failureLines = (lines: readonly string[]): string[] =>
  lines.filter((line) => line.trim() !== '' && !/^\s*(ok \d|\d+\.\.\d+|# Subtest|# time=|# \{ total)/.test(line));
