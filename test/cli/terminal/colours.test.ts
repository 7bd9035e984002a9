import { stripVTControlCharacters } from 'node:util';
import t from 'tap';
import { isColoured, painted, paintOf, plain } from '../../../cli/terminal/colours.ts';
import { tableOf } from '../../../cli/terminal/table.ts';

const tty = { isTTY: true };

t.test('colours: on a terminal, unless the environment says otherwise', (t) => {
  t.equal(isColoured({}, tty), true);
  t.equal(isColoured({}, {}), false);
  t.equal(isColoured({ TERM: 'dumb' }, tty), false);
  t.equal(isColoured({ NO_COLOR: '' }, tty), true, 'an empty value says nothing');
  for (const value of ['1', '0', 'false']) t.equal(isColoured({ NO_COLOR: value }, tty), false, value);
  t.equal(isColoured({ FORCE_COLOR: '1' }, {}), true);
  t.equal(isColoured({ FORCE_COLOR: '0' }, tty), false);
  t.equal(isColoured({ NO_COLOR: '1', FORCE_COLOR: '1' }, tty), false);
  t.end();
});

t.test('never with --json', (t) => {
  const { stdin, stdout, stderr } = process;
  const { signal } = new AbortController();
  const terminal = { env: { FORCE_COLOR: '1' }, stdin, stdout, stderr, signal, nowMs: () => 0 };
  t.equal(paintOf({ terminal, isJson: true }), plain);
  t.equal(paintOf({ terminal, isJson: false }), painted);
  t.equal(paintOf({ terminal, isJson: false }, 'stderr'), painted);
  t.end();
});

t.test('the word that a text begins with is painted', (t) => {
  t.equal(painted('running'), '\u001b[32mrunning\u001b[39m');
  t.equal(painted('failed: exited (1)'), '\u001b[31mfailed\u001b[39m: exited (1)');
  t.equal(painted('running, update pulling'), '\u001b[32mrunning\u001b[39m, update pulling');
  t.equal(painted('backoff'), '\u001b[33mbackoff\u001b[39m');
  t.equal(painted('stopped'), '\u001b[90mstopped\u001b[39m');
  t.equal(painted('✗ clock: late'), '\u001b[31m✗\u001b[39m clock: late');
  for (const text of ['', 'other', 'the running one']) t.equal(painted(text), text);
  t.end();
});

t.test('columns of a table are aligned without the codes, and only statuses are painted', (t) => {
  const columns = ['name', 'status', 'host'];
  const rows = [
    ['running', 'failed', 'a'],
    ['web', 'up, draining', 'b'],
  ];
  const shown = tableOf(columns, rows, '', painted);
  t.equal(stripVTControlCharacters(shown), tableOf(columns, rows, ''));
  t.match(shown, 'running  \u001b[31mfailed\u001b[39m        a');
  t.end();
});
