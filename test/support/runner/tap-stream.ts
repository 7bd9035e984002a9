/** Finds test files, and reads results from the output of their processes. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../../../dev/paths.ts';
import { say, took } from '../../../dev/steps.ts';
import type { Bounds } from './room.ts';

/** Paths of the compiled test files, in order; one whose source was deleted is ignored. */
export function testFiles(): string[] {
  return readdirSync(join(repositoryRoot, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('dist/test', name.replace(/\.ts$/, '.js')))
    .filter((name) => existsSync(join(repositoryRoot, name)))
    .sort();
}

export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const none: Totals = { passed: 0, failed: 0, skipped: 0 };
export const oneFailed: Totals = { ...none, failed: 1 };

export const sum = (a: Totals, b: Totals): Totals => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  skipped: a.skipped + b.skipped,
});

/** Parses the closing comment of tap's output, such as `# { total: 3, pass: 2, fail: 1 }`. */
export function totalsOf(line: string): Totals | undefined {
  const text = /^# \{ (total: .*) \}$/.exec(line)?.[1];
  if (text === undefined) return undefined;
  const counts = Object.fromEntries(text.split(', ').map((pair) => pair.split(': ') as [string, string]));
  const count = (name: string): number => Number(counts[name] ?? 0);
  return { passed: count('pass'), failed: count('fail'), skipped: count('skip') + count('todo') };
}

export interface FileResult {
  /** The compiled file. */
  readonly path: string;
  readonly failed: boolean;
  readonly ms: number;
}

/** Result of a file: its counts and its output. */
export interface Outcome {
  readonly totals: Totals;
  readonly lines: readonly string[];
}

export interface RunOptions {
  /** Processes that run at once; by default one for each processor. */
  readonly processes?: Bounds;
  /** Deadline of one file. */
  readonly deadlineMs?: number;
  readonly report?: (result: FileResult, lines: readonly string[]) => void;
}

/** The line that a worker prints after each file. */
export const markOfFile = ({ passed, failed, skipped }: Totals): string => `\n# file ${passed} ${failed} ${skipped}\n`;

export function totalsOfFile(line: string): Totals | undefined {
  const [, passed, failed, skipped] = /^# file (\d+) (\d+) (\d+)$/.exec(line) ?? [];
  if (passed === undefined) return undefined;
  return { passed: Number(passed), failed: Number(failed), skipped: Number(skipped) };
}

/** Keeps the lines of a file's output that are failures or that the test printed itself. */
export const failureLines = (lines: readonly string[]): string[] =>
  lines.filter(
    (line) => line.trim() !== '' && !/^\s*(ok \d|\d+\.\.\d+|# Subtest|# time=|# \{ total|TAP version)/.test(line),
  );

export function sayResult({ path, failed, ms }: FileResult, lines: readonly string[]): void {
  const source = path.replace(/^dist\//, '').replace(/\.js$/, '.ts');
  say(`${failed ? '✗' : '✓'} ${source} … ${took(ms)}`);
  if (failed) for (const line of failureLines(lines)) process.stdout.write(`${line}\n`);
}
