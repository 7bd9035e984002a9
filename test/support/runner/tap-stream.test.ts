import t from 'tap';
import { markOfFile, failureLines, testFiles, totalsOf, totalsOfFile } from './tap-stream.ts';

t.test('the totals of a run are parsed from tap’s closing comment', (t) => {
  const rows: [string, ReturnType<typeof totalsOf>][] = [
    ['# { total: 39, pass: 39 }', { passed: 39, failed: 0, skipped: 0 }],
    ['# { total: 6, pass: 2, fail: 1, skip: 2, todo: 1 }', { passed: 2, failed: 1, skipped: 3 }],
    ['# { total: 1, fail: 1 }', { passed: 0, failed: 1, skipped: 0 }],
    ['    # { total: 1, pass: 1 }', undefined],
    ['# time=12ms', undefined],
  ];
  for (const [line, totals] of rows) t.same(totalsOf(line), totals, line);
  t.end();
});

t.test('the counts of a file are parsed from the line that its worker prints', (t) => {
  const totals = { passed: 3, failed: 1, skipped: 0 };
  t.same(totalsOfFile(markOfFile(totals).trim()), totals);
  t.equal(totalsOfFile('# files'), undefined);
  t.end();
});

t.test('failures are picked from the output of a file', (t) => {
  const lines = [
    '    # Subtest: x',
    '        ok 1 - fine',
    '        not ok 2 - broken',
    '          ---',
    '',
    '        1..2',
  ];
  t.same(failureLines(lines), ['        not ok 2 - broken', '          ---']);
  t.end();
});

t.test('the test files are found', (t) => {
  t.ok(testFiles().includes('dist/test/support/runner/tap-stream.test.js'));
  t.end();
});
