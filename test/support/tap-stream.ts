/** The test files, and the results in tap's stream. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../../dev/paths.ts';

/** Compiled test files that still have a source. */
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

/** The closing comment of tap's stream, as in `# { total: 3, pass: 1, fail: 1, skip: 1 }`. */
export function totalsOf(line: string): Totals | undefined {
  const text = /^# \{ (total: .*) \}$/.exec(line)?.[1];
  if (text === undefined) return undefined;
  const counts = Object.fromEntries(text.split(', ').map((pair) => pair.split(': ') as [string, string]));
  const count = (name: string): number => Number(counts[name] ?? 0);
  return { passed: count('pass'), failed: count('fail'), skipped: count('skip') + count('todo') };
}

/**
 * Of a file's lines in tap's stream, failures and what the test itself printed.
 */
export const tellingLines = (lines: readonly string[]): string[] =>
  lines.filter((line) => line.trim() !== '' && !/^\s*(ok \d|\d+\.\.\d+|# Subtest|# time=|# \{ total)/.test(line));
