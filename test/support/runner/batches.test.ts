import t from 'tap';
import { runBatches } from './batches.ts';
import { one, runFiles, test, testRunner } from './written.ts';

testRunner(runBatches, {
  'top.mjs': ["import t from 'tap'; t.equal(1, 2, 'at the top')", /not ok \d+ - at the top/],
  'import.mjs': ["import './absent.mjs';", /absent/],
  'empty.mjs': ['', /has no test/],
});

t.test('a file that ends its worker fails, and the remaining files run', async (t) => {
  const files = { 'exit.mjs': test('process.exit(0)'), 'next.mjs': test('t.pass()') };
  const { totals, failures, passed } = await runFiles(t, runBatches, files, { processes: one });
  t.match(failures['exit.mjs'], /ended its process with exit code/);
  t.same(passed, ['next.mjs']);
  t.same(totals, { passed: 1, failed: 1, skipped: 0 });
});

t.test('things that a file has started end before the next one, and a failed file spoils no other', async (t) => {
  const ending = `import t from 'tap';\nglobalThis.open = true;\nt.teardown(() => { globalThis.open = false; });\n`;
  const files = {
    'a.mjs': `${ending}t.test('it', async (t) => t.equal(globalThis.open, true));`,
    'b.mjs': test('t.equal(globalThis.open, false)'),
    'c.mjs': test('globalThis.broken = true; t.fail()'),
    'd.mjs': test('t.equal(globalThis.broken, undefined)'),
  };
  const { passed } = await runFiles(t, runBatches, files, { processes: one });
  t.same(passed, ['a.mjs', 'b.mjs', 'd.mjs']);
});

t.test('tests run side by side in the file that asks for it, and in no later one', async (t) => {
  const both = (most: number): string => `
    for (const name of ['one', 'other']) {
      t.test(name, async (t) => {
        globalThis.most = Math.max(globalThis.most, (globalThis.open += 1));
        await new Promise((resolve) => setTimeout(resolve, 50));
        globalThis.open -= 1;
      });
    }
    t.test('at most', async (t) => t.equal(globalThis.most, ${most}));\n`;
  const begin = "import t from 'tap';\nglobalThis.open = globalThis.most = 0;\n";
  const files = { 'a.mjs': `${begin}t.jobs = 2;${both(2)}`, 'b.mjs': `${begin}${both(1)}` };
  const { passed, failures } = await runFiles(t, runBatches, files, { processes: one });
  t.same(passed, ['a.mjs', 'b.mjs'], JSON.stringify(failures));
});

t.test('a file that hangs is killed at its deadline, and the remaining files run', async (t) => {
  const files = {
    'waits.mjs': test('setTimeout(() => {}, 1e6); await new Promise(() => {})'),
    'blocks.mjs': test('for (;;);'),
    'next.mjs': test('t.pass()'),
  };
  const { totals, failures, passed } = await runFiles(t, runBatches, files, { processes: one, deadlineMs: 5_000 });
  t.match(failures['waits.mjs'], /did not end within 5/);
  t.match(failures['blocks.mjs'], /did not end within 5/);
  t.same(passed, ['next.mjs']);
  t.equal(totals.failed, 2);
});

t.test('a failure after the last file fails the run', async (t) => {
  const late = `${test('t.pass()')}process.once('exit', () => (process.exitCode = 3));`;
  const { totals, failures } = await runFiles(t, runBatches, { 'late.mjs': late }, { processes: one });
  t.same(Object.values(failures), ['exit code 3']);
  t.same(totals, { passed: 1, failed: 1, skipped: 0 });
});
