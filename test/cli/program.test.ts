/** The commands of the program, and those that a command line loads. */
import { Command } from 'commander';
import t from 'tap';
import { groups as alone } from '../../cli/groups.ts';
import { programOf } from '../../cli/program.ts';
import { groupsWithOps } from '../../ops/groups.ts';

const terminal = {} as Parameters<typeof programOf>[0];
const groups = groupsWithOps();
const namesIn = ({ commands }: Command): string[] => commands.map((command) => command.name());

t.test('each group has the commands that it names', async (t) => {
  for (const { names, load } of [...groups, ...alone]) {
    const program = new Command().enablePositionalOptions();
    (await load())(program, terminal);
    t.same(namesIn(program), names);
  }
  const all = groups.flatMap(({ names }) => names);
  t.same(namesIn(await programOf(terminal, groups)), all, 'and the program has all, in their order');
  t.equal(new Set(all).size, all.length, 'each of them once');
  t.same(namesIn(await programOf(terminal, alone)), all, 'and so has the package of the command line alone');
});

t.test('a line has the commands that it needs', async (t) => {
  const all = namesIn(await programOf(terminal, groups));
  const of = async (line: string): Promise<string[]> => namesIn(await programOf(terminal, groups, line.split(' ')));
  t.same(await of('apply --dry-run'), ['apply']);
  t.same(await of('--json --profile ps --server=https://logs audit'), ['audit'], 'a value of an option is no command');
  t.same(await of('-- policy'), ['policy']);
  t.same(await of('--version'), []);
  for (const line of ['', '--help', 'help ps', 'pss', '--jsn', '--profile'])
    t.same(await of(line), all, `${line}: help, or a suggestion`);
});

t.test('a line to complete has all names, and the options of its command', async (t) => {
  const all = namesIn(await programOf(terminal, groups));
  const whole = await programOf(terminal, groups);
  const program = await programOf(terminal, groups, ['__complete', '--', '--json', 'wait', 'w', '--t']);
  const optionsOf = (of: Command, name: string) =>
    of.commands.find((command) => command.name() === name)?.options.map(({ flags }) => flags);
  t.same(namesIn(program), all);
  t.same(optionsOf(program, 'wait'), optionsOf(whole, 'wait'));
  t.notSame(optionsOf(program, 'run'), optionsOf(whole, 'run'), 'those of others are not loaded');
});
