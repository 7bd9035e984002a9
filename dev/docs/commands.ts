/** The commands of `longshore`, as docs/cli.md lists them. */
import type { Command } from 'commander';
import { programOf, withAllBelow } from '../../cli/program.ts';
import { groupsWithOps } from '../../ops/groups.ts';
import { code, table } from './markdown.ts';

/** The commands are described here and never run, so nothing of the terminal is used. */
const noTerminal = {} as Parameters<typeof programOf>[0];
const program = await programOf(noTerminal, groupsWithOps());

const pathOf = (command: Command): string =>
  command.parent === null ? '' : `${pathOf(command.parent)} ${command.name()}`.trim();

const usageOf = (command: Command): string =>
  [pathOf(command), ...command.registeredArguments.map((one) => argumentText(one))].join(' ');

function argumentText(argument: Command['registeredArguments'][number]): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

export function commandsTable(): string {
  const all = withAllBelow(program).filter(
    (command) => command.parent !== null && command.commands.length === 0 && command.name() !== '__complete',
  );
  const shown = (command: Command): string =>
    command.options
      .filter(({ long, hidden }) => !hidden && long !== '--json')
      .map(({ flags, description }) => `${code(flags)} ${description}`)
      .join('<br>');
  return table(
    ['Command', 'Does', 'Options'],
    all.map((command) => [code(usageOf(command)), command.description(), shown(command)]),
  );
}
