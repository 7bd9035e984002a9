/** Test files that a test of the runner writes. */
import { join, relative } from 'node:path';
import t, { type Test } from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import type { Bounds } from './room.ts';
import { failureLines, type RunOptions, type Totals } from './tap-stream.ts';

type Run = (
  files: readonly string[],
  env: NodeJS.ProcessEnv,
  stopped: AbortSignal,
  options: RunOptions,
) => Promise<Totals>;

export const one: Bounds = { least: 1, most: 1 };

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

/** Ways to fail, and the output that shows each of them. */
export type Failures = Readonly<Record<string, readonly [body: string, shown: RegExp]>>;

const failuresOfTests: Failures = {
  'assertion.mjs': [test('t.equal(1, 2, "sums agree")'), /not ok 1 - sums agree/],
  'thrown.mjs': [test('throw new Error("no such host")'), /no such host/],
  'rejected.mjs': [test('await Promise.reject(new Error("refused"))'), /refused/],
};

/**
 * Tests of what every runner does.
 * @param others further ways to fail
 */
export function testRunner(run: Run, others: Failures): void {
  t.test('files run one after another, and each is reported with what it skips', async (t) => {
    const files = { 'a.mjs': test('t.pass()'), 'b.mjs': test('t.pass(); t.skip("later")'), 'c.mjs': test('t.pass()') };
    const { totals, failures, passed } = await runFiles(t, run, files, { processes: one });
    t.same(passed, ['a.mjs', 'b.mjs', 'c.mjs']);
    t.same(totals, { passed: 3, failed: 0, skipped: 1 });
    t.same(failures, {});
  });

  t.test('every kind of failure of a file fails the run and is shown', async (t) => {
    const failing = { ...failuresOfTests, ...others };
    const { totals, failures, passed } = await runFiles(t, run, {
      ...Object.fromEntries(Object.entries(failing).map(([name, [body]]) => [name, body])),
      'last.mjs': test('t.pass()'),
    });
    t.same(passed, ['last.mjs']);
    t.same(Object.keys(failures).sort(), Object.keys(failing).sort());
    for (const [name, [, shown]] of Object.entries(failing)) t.match(failures[name], shown, name);
    t.ok(totals.failed >= Object.keys(failing).length);
  });
}
