import t from 'tap';
import { completionOf } from '../../../cli/completion/walk.ts';
import { programOf } from '../../../cli/program.ts';
import { groupsWithOps } from '../../../ops/groups.ts';

/** No command runs here. */
const program = await programOf({} as Parameters<typeof programOf>[0], groupsWithOps());
const at = (line: string) => completionOf(program, line.split(' '));

t.test('commands, of the program and of a group', (t) => {
  t.same(at('sto').words, ['stop']);
  t.same(at('policy ').words, ['get', 'set', 'help']);
  t.notOk(at('').words.includes('__complete'), 'the hidden one is not offered');
  t.same(at('nothing ').words, [], 'nothing is known behind a word that is no command');
  t.end();
});

t.test('options, and their fixed values', (t) => {
  t.same(at('run --stop-').words, ['--stop-grace', '--stop-signal']);
  t.same(at('run --restart on_').words, ['on_failure']);
  t.same(at('run --restart=on_').words, ['--restart=on_failure']);
  t.same(at('run -e --restart on').words, [], 'the value of -e is --restart');
  t.same(at('wait web runn').words, ['running']);
  t.same(at('completion ').words, ['bash', 'zsh', 'fish']);
  t.same(at('logs -- --f').words, [], 'nothing is an option after --');
  t.same(at('run web --read').words, ['--read-only'], 'the command of a container follows --');
  t.same(at('run web -- sh --read').words, []);
  t.same(at('update web --reset us').words, ['user']);
  t.end();
});

t.test('arguments and options with names', (t) => {
  const kinds: readonly (readonly [line: string, kind: string | undefined])[] = [
    ['logs ', 'container'],
    ['logs -n 5 w', 'container'],
    ['inspect web w', undefined],
    ['logs web w', 'container'],
    ['rm web w', 'container'],
    ['secret set ', 'secret'],
    ['secret rm d', 'secret'],
    ['host drain ', 'host'],
    ['run --host ', 'host'],
    ['run --secret ', undefined],
    ['network get ', 'network'],
    ['peer add --network ', 'network'],
    ['peer add ', undefined],
    ['peer rm a b', 'peer'],
    ['profile use ', 'profile'],
    ['ps --profile ', 'profile'],
    ['token create ', undefined],
    ['exec ', 'container'],
    ['exec web ', undefined],
    ['exec web sh ', undefined],
    ['backup ', undefined],
  ];
  for (const [line, kind] of kinds) t.equal(at(line).kind, kind, line);
  t.same(at('exec web sh --').words, [], 'options of another program');
  t.match(at('run --host=b'), { kind: 'host', before: '--host=', begun: 'b' });
  t.end();
});

t.test('the server that is named on the line', (t) => {
  t.same(at('--profile a logs --server=https://b -n 3 ').given, { profile: 'a', server: 'https://b' });
  t.end();
});
