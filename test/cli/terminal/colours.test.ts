import { stripVTControlCharacters } from 'node:util';
import t from 'tap';
import { isColoured, painted, paintOf, plain } from '../../../cli/terminal/colours.ts';
import { joined, Output, type Text } from '../../../cli/terminal/output.ts';
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
  const { stdin } = process;
  const [stdout, stderr] = [new Output(process.stdout), new Output(process.stderr)];
  const { signal } = new AbortController();
  const terminal = { env: { FORCE_COLOR: '1' }, stdin, stdout, stderr, signal, nowMs: () => 0 };
  t.equal(paintOf({ terminal, isJson: true }), plain);
  t.equal(paintOf({ terminal, isJson: false }), painted);
  t.equal(paintOf({ terminal, isJson: false }, 'stderr'), painted);
  t.end();
});

/** A text as a terminal gets it. */
function written(text: Text, isTTY = true): string {
  let all = '';
  const stream = { isTTY, write: (chunk: string) => (all += chunk) };
  new Output(stream as unknown as NodeJS.WriteStream).write(text);
  return all;
}

t.test('the word that a text begins with is painted', (t) => {
  t.equal(written(painted('running')), '\u001b[32mrunning\u001b[39m');
  t.equal(written(painted('failed: exited (1)')), '\u001b[31mfailed\u001b[39m: exited (1)');
  t.equal(written(painted('running, update pulling')), '\u001b[32mrunning\u001b[39m, update pulling');
  t.equal(written(painted('backoff')), '\u001b[33mbackoff\u001b[39m');
  t.equal(written(painted('stopped')), '\u001b[90mstopped\u001b[39m');
  t.equal(written(painted('✗ clock: late')), '\u001b[31m✗\u001b[39m clock: late');
  for (const text of ['', 'other', 'the running one']) t.equal(painted(text), text);
  t.end();
});

t.test('columns of a table are aligned without the codes, and only statuses are painted', (t) => {
  const columns = ['name', 'status', 'host'];
  const rows = [
    ['running', 'failed', 'a'],
    ['web', 'up, draining', 'b'],
  ];
  const shown = tableOf(columns, rows, '', { paint: painted });
  t.equal(stripVTControlCharacters(written(shown)), tableOf(columns, rows, ''));
  t.match(written(shown), 'running  \u001b[31mfailed\u001b[39m        a');
  t.end();
});

t.test('only colours of ours are colours', (t) => {
  const text = '\u001b[32mup\u001b[39m';
  t.equal(written(text), String.raw`\u001b[32mup\u001b[39m`);
  t.equal(written(text, false), text, 'a pipe gets the text');
  t.equal(written(joined([painted('up'), text])), String.raw`${'\u001b[32mup\u001b[39m'}\u001b[32mup\u001b[39m`);
  t.equal(written([{ sgr: '2J\u001b[1' }]), '', 'what is no colour is nothing');
  const [row = ''] = String(tableOf(['name', 'host'], [['\u001bx\ny', 'b']], ''))
    .split('\n')
    .slice(1);
  t.equal(written(row), String.raw`\u001bx\ny  b`, 'a cell stays in its line, and columns are aligned');
  t.end();
});
