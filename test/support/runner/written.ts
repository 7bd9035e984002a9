/** Test files that a test of the runner writes. */
import { join, relative } from 'node:path';
import type { Test } from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { failureLines, type RunOptions, type Totals } from './tap-stream.ts';

type Run = (
  files: readonly string[],
  env: NodeJS.ProcessEnv,
  stopped: AbortSignal,
  options: RunOptions,
) => Promise<Totals>;

export const test = (body: string): string => `import t from 'tap';\nt.test('it', async (t) => {\n${body}\n});\n`;

export interface Ran {
  readonly totals: Totals;
  /** The output shown for each failed file. */
  readonly failures: Record<string, string>;
  readonly passed: string[];
}

export async function runFiles(
  t: Test,
  run: Run,
  files: Record<string, string>,
  options: RunOptions = {},
): Promise<Ran> {
  const folder = t.testdir(files);
  const paths = Object.keys(files).map((name) => relative(repositoryRoot, join(folder, name)));
  const failures: Record<string, string> = {};
  const passed: string[] = [];
  const totals = await run(paths, process.env, new AbortController().signal, {
    ...options,
    report: ({ path, failed }, lines) => {
      const name = path.split('/').at(-1) ?? '';
      if (failed) failures[name] = failureLines(lines).join('\n');
      else passed.push(name);
    },
  });
  return { totals, failures, passed };
}
