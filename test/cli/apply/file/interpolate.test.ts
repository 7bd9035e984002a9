import t from 'tap';
import { interpolated } from '../../../../cli/apply/file/interpolate.ts';

const set: Readonly<Record<string, string>> = { NAME: 'web', EMPTY: '', OTHER: '1.2', JSON: '{"json":2}' };
const variables = {
  valueOf: (name: string) => set[name],
  missing: (name: string): string => `<${name}>`,
};

t.test('variables are filled in as Compose does', (t) => {
  const rows = [
    ['plain', 'plain'],
    ['$NAME:$OTHER', 'web:1.2'],
    ['a${NAME}b', 'awebb'],
    ['$$NAME costs $$5', '$NAME costs $5'],
    ['$NONE ${NONE}', '<NONE> <NONE>'],
    ['${NONE:-x}${NONE-x}', 'xx'],
    ['${EMPTY:-x}|${EMPTY-x}', 'x|'],
    ['${NAME:-x}${NAME-x}', 'webweb'],
    ['${NAME:+x}${NONE:+x}|${EMPTY:+x}|${EMPTY+x}', 'x||x'],
    ['${NONE:-${OTHER:-y}}', '1.2'],
    ['${NONE:-a}b}', 'ab}'],
    ['${NAME:?must}${EMPTY?must}', 'web'],
    ['${NONE:-$${x}}', '${x}'],
    ['$NAME-bar', 'web-bar'],
    ['${NONE:-/a:-b}', '/a:-b'],
    ['${NONE-b?c}${NONE-va:-lu:?e}', 'b?cva:-lu:?e'],
    ['${NONE-$NAME ${NAME:+second}}', 'web second'],
    ['${NONE:-${EMPTY-x}}|', '|'],
    ['${NONE:+${NONE},}B', 'B'],
    // Braces of a default come in pairs.
    ['${NONE:-{"json":1}}', '{"json":1}'],
    ['${JSON:-{"json":1}} ${JSON-{}}', '{"json":2} {"json":2}'],
    ['${NONE:-{}} ${NONE:-c}', '{} c'],
    ['${NONE:-{x}', '{x'],
    ['${NONE:-$${x}', '${x'],
  ] as const;
  for (const [text, result] of rows) t.equal(interpolated(text, variables), result, text);
  t.end();
});

t.test('the error of a malformed variable says what to write', (t) => {
  const rows = [
    ['5$', /no name follows "\$": write "\$\$"/],
    ['$-', /no name follows/],
    ['${NAME', /is not closed/],
    ['${1}', /"\$\{1\}" is no variable/],
    ['${NAME!x}', /is no variable/],
    ['${NONE:?set it}', /the variable NONE is not set: set it/],
    ['${NONE?a-b ${NAME}}', /the variable NONE is not set: a-b web/],
    ['${EMPTY:?}', /the variable EMPTY is not set: the file needs it/],
  ] as const;
  for (const [text, message] of rows)
    t.throws(() => interpolated(text, variables), { name: 'BadVariable', message }, text);
  t.end();
});

t.test('as Compose does, a dollar sign that begins no variable stays', (t) => {
  const lenient = { ...variables, isLenient: true };
  const rows = [
    ['cost 5$', 'cost 5$'],
    ['$(hostname) $} $', '$(hostname) $} $'],
    ['${NONE:-$2a$NAME}', '$2aweb'],
    ['$$NAME', '$NAME'],
    ['^REGEX$', '^REGEX$'],
  ] as const;
  for (const [text, result] of rows) t.equal(interpolated(text, lenient), result, text);
  for (const text of ['${1}', '${NAME', '${', '${}', '${ }', '${ NAME}', '${NAME }', '${NAME!}'])
    t.throws(() => interpolated(text, lenient), { name: 'BadVariable' }, text);
  t.end();
});
