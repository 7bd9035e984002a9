/** Suggestions for a word that longshore does not know. */
import t from 'tap';
import { programOf, withAllBelow } from '../../cli/program.ts';
import { suggestionFor, withSuggestion } from '../../cli/suggestions.ts';
import { groupsWithOps } from '../../ops/groups.ts';

const program = await programOf({} as Parameters<typeof programOf>[0], groupsWithOps());
const namesOf = (group: string): string[] =>
  (withAllBelow(program).find((command) => command.name() === group)?.commands ?? []).map((one) => one.name());

t.test('words of other tools, and misspelt ones', (t) => {
  const rows = [
    ['longshore', 'top', '(Did you mean stats?)'],
    ['longshore', 'destroy', '(Did you mean rm?)'],
    ['longshore', 'history', '(Did you mean versions?)'],
    ['longshore', 'scale', '(Longshore has no replicas. Run another container.)'],
    ['longshore', 'volumes', '(Longshore has no volumes. It keeps what the image declares as VOLUME.)'],
    ['longshore', 'restrt', '(Did you mean restart?)'],
    ['longshore', 'stopp', ''],
    ['longshore', 'revok', ''],
    ['longshore', 'rename', '(A container keeps its name. Run another one under the new name.)'],
    ['longshore', 'attach', '(Did you mean logs --follow?)'],
    [
      'longshore',
      'rollout',
      '("longshore update" changes a container, "longshore restart" and "longshore rollback" are commands, too.)',
    ],
    ['longshore', 'open', '(Longshore gives a container no URL. "longshore port" shows the addresses of its ports.)'],
    ['longshore', 'port-forward', '(Did you mean forward?)'],
    ['longshore', 'list', '(Did you mean ps?)'],
    ['longshore', 'create', '(Did you mean run?)'],
    ['longshore', 'up', '(Did you mean apply?)'],
    ['longshore', 'key', '(Did you mean token?)'],
    ['longshore', 'keys', '(API tokens: "longshore token". NATS identities of a cluster: "longshore nats-keys".)'],
    ['longshore', 'hosts', '(Did you mean host ls?)'],
    ['longshore', 'pss', '(Did you mean ps?)'],
    ['longshore', 'signingkey', '(Did you mean signing-key?)'],
    ['longshore', 'toString', ''],
    ['longshore', 'nothing', ''],
    ['secret', 'create', '(Did you mean set?)'],
    ['secret', 'delete', '(Did you mean rm?)'],
    ['registry', 'delete', '(Did you mean logout?)'],
    ['token', 'revoke', '(Did you mean rm?)'],
    ['host', 'add', '(Did you mean join-token?)'],
    ['profile', 'switch', '(Did you mean use?)'],
    ['policy', 'show', '(Did you mean get?)'],
  ] as const;
  for (const [group, word, line] of rows) t.equal(suggestionFor(word, namesOf(group)).trimEnd(), line, word);
  t.end();
});

t.test('options of other tools, and misspelt ones', (t) => {
  const options = ['--lines', '--follow', '--json'];
  t.match(suggestionFor('--tail', options), 'Did you mean --lines?');
  t.match(suggestionFor('--filter', [...options, '--label']), 'Did you mean --label?');
  t.match(suggestionFor('--previous', options), 'all runs');
  t.match(suggestionFor('--since', options), '-n');
  t.match(suggestionFor('--since', [...options, '--from']), 'Did you mean --from?');
  t.match(suggestionFor('--volume', options), 'no bind mounts');
  t.match(suggestionFor('--jsn', options), 'Did you mean --json?');
  const wait = withAllBelow(program).find((command) => command.name() === 'wait')!;
  const given = "error: unknown option '--for=condition=complete'\n";
  t.match(withSuggestion(wait, given), `${given}("longshore wait" takes a status`, 'a value may stand behind it');
  t.equal(suggestionFor('--prun', ['--prune', '--all', '--force']), '');
  t.end();
});

t.test('a destructive command is suggested only for a word that asks for it', (t) => {
  const asking = ['delete', 'del', 'destroy', 'remove', 'unset', 'revoke', 'kill', 'down', 'terminate', 'restart'];
  const destroying = /\b(rm|stop|revoke|restore|logout|unlink|rotate|password|disable|drain)\b/;
  const foreign = 'ls list get show add create new edit top ps rollout stat stor restor revok stp stopp rmm log-out';
  const groups = withAllBelow(program).filter(({ commands }) => commands.length > 0);
  for (const group of groups) {
    const names = group.commands.map((one) => one.name());
    const near = names.flatMap((name) => [`${name}x`, name.slice(1), `x${name}`]);
    for (const word of [...foreign.split(' '), ...near].filter((one) => !asking.includes(one)))
      t.notMatch(suggestionFor(word, names).split('?')[0], destroying, `${group.name()} ${word}`);
  }
  for (const word of asking.slice(0, -1)) t.match(suggestionFor(word, ['rm', 'stop']), destroying, word);
  t.end();
});
