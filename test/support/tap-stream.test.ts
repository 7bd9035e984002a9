import t from 'tap';
import { failureLines, testFiles, totalsOf } from './tap-stream.ts';

t.test('the totals of a run are read from its closing comment', (t) => {
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

t.test('files are selected by path, compiled path or part of a path', (t) => {
  const self = 'dist/test/support/tap-stream.test.js';
  for (const name of ['test/support/tap-stream.test.ts', './test/support/tap-stream', self, 'tap-stream']) {
    t.same(testFiles([name]), [self], name);
  }
  t.same(testFiles(['no such file']), []);
  t.ok(testFiles([]).includes(self));
  t.end();
});
