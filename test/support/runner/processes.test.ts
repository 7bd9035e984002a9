import t from 'tap';
import { runProcesses } from './processes.ts';
import { runFiles, test } from './written.ts';

t.test('each file runs, and is reported with what it skips', async (t) => {
  const files = { 'a.mjs': test('t.pass()'), 'b.mjs': test('t.pass(); t.skip("later")'), 'c.mjs': test('t.pass()') };
  const { totals, failures, passed } = await runFiles(t, runProcesses, files, { processes: 1 });
  t.same(passed, ['a.mjs', 'b.mjs', 'c.mjs']);
  t.same(totals, { passed: 3, failed: 0, skipped: 1 });
  t.same(failures, {});
});

t.test('every kind of failure of a file fails the run and is shown', async (t) => {
  const files: Record<string, [body: string, shown: RegExp]> = {
    'assertion.mjs': [test('t.equal(1, 2, "sums agree")'), /not ok 1 - sums agree/],
    'thrown.mjs': [test('throw new Error("no such host")'), /no such host/],
    'rejected.mjs': [test('await Promise.reject(new Error("refused"))'), /refused/],
    'import.mjs': ["import './absent.mjs';", /ERR_MODULE_NOT_FOUND/],
    'empty.mjs': ['', /empty\.mjs has no test/],
    'exit.mjs': [test('process.exit(0)'), /not ok/],
    'killed.mjs': [`${test('t.pass()')}process.kill(process.pid, 'SIGKILL');`, /ended with exit code null/],
    'late.mjs': [`${test('t.pass()')}process.once('exit', () => (process.exitCode = 3));`, /ended with exit code 3/],
  };
  const { totals, failures, passed } = await runFiles(t, runProcesses, {
    ...Object.fromEntries(Object.entries(files).map(([name, [body]]) => [name, body])),
    'last.mjs': test('t.pass()'),
  });
  t.same(passed, ['last.mjs']);
  t.same(Object.keys(failures).sort(), Object.keys(files).sort());
  for (const [name, [, shown]] of Object.entries(files)) t.match(failures[name], shown, name);
  t.ok(totals.failed >= 8);
});

t.test('a file that hangs is killed at its deadline, and the remaining files run', async (t) => {
  const files = { 'blocks.mjs': test('for (;;);'), 'next.mjs': test('t.pass()') };
  const { totals, failures, passed } = await runFiles(t, runProcesses, files, { processes: 1, deadlineMs: 5_000 });
  t.match(failures['blocks.mjs'], /did not end within 5/);
  t.same(passed, ['next.mjs']);
  t.equal(totals.failed, 1);
});

t.test('the programs of a test run without the loaders of tap', async (t) => {
  const body = 't.equal(process.env.NODE_OPTIONS ?? "", ""); t.same(process.execArgv, ["--enable-source-maps"]);';
  const { failures } = await runFiles(t, runProcesses, { 'plain.mjs': test(body) });
  t.same(failures, {});
});
