import t from 'tap';
import { parseCommand, usage } from '../../../host-agent/commands/arguments.ts';

const join = (token: object, url?: string) => ({ kind: 'join', token, url });
const cases: readonly [line: string, expected: object][] = [
  ['', { kind: 'run' }],
  ['help', { kind: 'help' }],
  ['--help', { kind: 'help' }],
  ['join --help', { kind: 'help' }],
  ['doctor', { kind: 'doctor', asJson: false }],
  ['doctor --json', { kind: 'doctor', asJson: true }],
  ['join', join({ kind: 'settings' })],
  ['join --token T', join({ kind: 'argument', token: 'T' })],
  ['join --token-file f', join({ kind: 'file', path: 'f' })],
  ['join --token-file -', join({ kind: 'stdin' })],
  ['join --token=T --url http://g:1', join({ kind: 'argument', token: 'T' }, 'http://g:1')],
];
for (const [line, expected] of cases) {
  t.test(`host-agent ${line}`, (t) => {
    t.same(parseCommand(line.split(' ').filter((word) => word !== '')), expected);
    t.end();
  });
}

const refused: readonly [line: string, message: RegExp][] = [
  ['docter', /there is no command docter/],
  ['--json', /there is no command --json/],
  ['doctor now', /now/],
  ['doctor --jsn', /--jsn/],
  ['join T', /'T'/],
  ['join --token', /--token/],
  ['join --token=', /the token is empty/],
  ['join --token T --token-file f', /not both/],
  ['join --url ftp://g', /--url must be an http or https URL/],
  ['help me', /help takes no argument/],
];
for (const [line, message] of refused) {
  t.test(`host-agent ${line}: refused`, (t) => {
    t.match(parseCommand(line.split(' ')), { kind: 'wrong', message });
    t.end();
  });
}

t.test('the usage names every command and option', (t) => {
  for (const word of ['join', 'doctor', '--token ', '--token-file', '--url', '--json'])
    t.ok(usage.includes(word), word);
  t.end();
});
