import t from 'tap';
import { runBatches } from './batches.ts';
import { runFiles, test } from './written.ts';

t.test('one worker runs several files and reports each', async (t) => {
  const files = { 'a.mjs': test('t.pass()'), 'b.mjs': test('t.pass(); t.skip("later")'), 'c.mjs': test('t.pass()') };
  const { totals, failures, passed } = await runFiles(t, runBatches, files, { processes: 1 });
  t.same(passed, ['a.mjs', 'b.mjs', 'c.mjs']);
  t.same(totals, { passed: 3, failed: 0, skipped: 1 });
  t.same(failures, {});
});

t.test('every kind of failure of a file fails the run and is shown', async (t) => {
  const files: Record<string, [body: string, shown: RegExp]> = {
    'assertion.mjs': [test('t.equal(1, 2, "sums agree")'), /not ok 1 - sums agree/],
    'thrown.mjs': [test('throw new Error("no such host")'), /no such host/],
    'top.mjs': ["import t from 'tap'; t.equal(1, 2, 'at the top')", /not ok \d+ - at the top/],
    'rejected.mjs': [test('await Promise.reject(new Error("refused"))'), /refused/],
    'import.mjs': ["import './absent.mjs';", /absent/],
    'empty.mjs': ['', /has no test/],
  };
  const { totals, failures, passed } = await runFiles(t, runBatches, {
    ...Object.fromEntries(Object.entries(files).map(([name, [body]]) => [name, body])),
    'last.mjs': test('t.pass()'),
  });
  t.same(passed, ['last.mjs']);
  t.same(Object.keys(failures).sort(), Object.keys(files).sort());
  for (const [name, [, shown]] of Object.entries(files)) t.match(failures[name], shown, name);
  t.ok(totals.failed >= 6);
});

t.test('a file that ends its worker fails, and the remaining files run', async (t) => {
  const files = { 'exit.mjs': test('process.exit(0)'), 'next.mjs': test('t.pass()') };
  const { totals, failures, passed } = await runFiles(t, runBatches, files, { processes: 1 });
  t.match(failures['exit.mjs'], /ended its process with exit code/);
  t.same(passed, ['next.mjs']);
  t.same(totals, { passed: 1, failed: 1, skipped: 0 });
});

t.test('a file that hangs is killed at its deadline, and the remaining files run', async (t) => {
  const files = {
    'waits.mjs': test('setTimeout(() => {}, 1e6); await new Promise(() => {})'),
    'blocks.mjs': test('for (;;);'),
    'next.mjs': test('t.pass()'),
  };
  const { totals, failures, passed } = await runFiles(t, runBatches, files, { processes: 1, deadlineMs: 5_000 });
  t.match(failures['waits.mjs'], /did not end within 5/);
  t.match(failures['blocks.mjs'], /did not end within 5/);
  t.same(passed, ['next.mjs']);
  t.equal(totals.failed, 2);
});

t.test('a failure after the last file fails the run', async (t) => {
  const late = `${test('t.pass()')}process.once('exit', () => (process.exitCode = 3));`;
  const { totals, failures } = await runFiles(t, runBatches, { 'late.mjs': late }, { processes: 1 });
  t.same(Object.values(failures), ['exit code 3']);
  t.same(totals, { passed: 1, failed: 1, skipped: 0 });
});
