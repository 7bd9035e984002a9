import t from 'tap';
import { runProcesses } from './processes.ts';
import { one, runFiles, test, testRunner } from './written.ts';

testRunner(runProcesses, {
  'import.mjs': ["import './absent.mjs';", /ERR_MODULE_NOT_FOUND/],
  'empty.mjs': ['', /empty\.mjs has no test/],
  'exit.mjs': [test('process.exit(0)'), /not ok/],
  'killed.mjs': [`${test('t.pass()')}process.kill(process.pid, 'SIGKILL');`, /ended with exit code null/],
  'late.mjs': [`${test('t.pass()')}process.once('exit', () => (process.exitCode = 3));`, /ended with exit code 3/],
});

t.test('a file that hangs is killed at its deadline, and the remaining files run', async (t) => {
  const files = { 'blocks.mjs': test('for (;;);'), 'next.mjs': test('t.pass()') };
  const { totals, failures, passed } = await runFiles(t, runProcesses, files, { processes: one, deadlineMs: 5_000 });
  t.match(failures['blocks.mjs'], /did not end within 5/);
  t.same(passed, ['next.mjs']);
  t.equal(totals.failed, 1);
});

t.test('the programs of a test run without the loaders of tap', async (t) => {
  const given = JSON.stringify(process.env['NODE_OPTIONS'] ?? '');
  const body = `t.equal(process.env.NODE_OPTIONS ?? '', ${given}); t.same(process.execArgv, ['--enable-source-maps']);`;
  const { failures } = await runFiles(t, runProcesses, { 'plain.mjs': test(body) });
  t.same(failures, {});
});
