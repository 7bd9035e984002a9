/** Help: each text is clear without the others, and uses common terms. */
import type { Command } from 'commander';
import t from 'tap';
import { programOf, withAllBelow } from '../../cli/program.ts';
import { groupsWithOps } from '../../ops/groups.ts';

const verbs = new Set(
  (
    'Allocate Allow Back Change Copy Create Delete Diagnose Disable Forward Leave List Manage Move Pass Print Re-enable Refuse ' +
    'Remove Replace Restore Resume Return Revoke Run Select Set Show Sign Start Stop Store Stream Wait'
  ).split(' '),
);

const firstWord = (text: string): string => text.split(' ')[0] ?? '';

/** Fault of a help text; `undefined` if there is none. */
function faultIn(text: string, kind: 'verb' | 'noun'): string | undefined {
  if (!/^[A-Z]/.test(text)) return 'begin with a capital';
  if (text.endsWith('.')) return 'no full stop at the end';
  if (/; default|^(What|Who|How|Where|When|Which|Whether|Its?|One|Those|That|The)\b/.test(text))
    return 'name the thing';
  if (/^\S+ (them|it)$/.test(text)) return 'name the thing in place of a pronoun';
  if (kind === 'verb' && !verbs.has(firstWord(text))) return 'begin with a verb';
  if (kind === 'noun' && verbs.has(firstWord(text)) && !/^Start of/.test(text)) return 'begin with a noun';
  return undefined;
}

function textsOf(command: Command): (readonly [place: string, text: string, kind: 'verb' | 'noun'])[] {
  const name = command.name();
  return [
    [name, command.description(), 'verb'],
    ...command.options.map(
      ({ flags, description, required, optional }) =>
        [`${name} ${flags}`, description, required || optional ? 'noun' : 'verb'] as const,
    ),
    // The name of most arguments says all.
    ...command.registeredArguments
      .filter(({ description }) => description !== '')
      .map((argument) => [`${name} ${argument.name()}`, argument.description, 'noun'] as const),
  ];
}

t.test('a command and a flag begin with a verb, another option and an argument with a noun', async (t) => {
  const program = await programOf({} as Parameters<typeof programOf>[0], groupsWithOps());
  const shown = withAllBelow(program).filter((command) => command.name() !== '__complete');
  const faults = shown.flatMap(textsOf).flatMap(([place, text, kind]) => {
    const fault = faultIn(text, kind);
    return fault === undefined ? [] : [`${place}: "${text}": ${fault}`];
  });
  t.same(faults, []);
  const link = shown.find((command) => command.name() === 'link');
  t.equal(link?.helpInformation().includes('Show help'), true, 'and so do the texts of commander itself');
  t.notMatch(shown.map((command) => command.helpInformation()).join(''), /display help|output the version/);
});

t.test('the rule refuses riddles and nothing else', (t) => {
  const rows = [
    ['list them', 'verb', 'begin with a capital'],
    ['List them', 'verb', 'name the thing in place of a pronoun'],
    ['List peers.', 'verb', 'no full stop at the end'],
    ['What asks it to stop', 'noun', 'name the thing'],
    ['Its name; default: any', 'noun', 'name the thing'],
    ['Host to run on; default: any', 'noun', 'name the thing'],
    ['Peers', 'verb', 'begin with a verb'],
    ['Wait for each container', 'noun', 'begin with a noun'],
    ['Longest wait for each container', 'noun', undefined],
    ['List peers', 'verb', undefined],
    ['CPU limit in cores, such as 0.5 or 2', 'noun', undefined],
  ] as const;
  for (const [text, kind, fault] of rows) t.equal(faultIn(text, kind), fault, text);
  t.end();
});
