/** The command line as a tree of commands (commander); docs/cli.md is written from it. */
import { Command, Option } from 'commander';
import { version } from '../lib/version.ts';
import type { Terminal } from './context.ts';
import type { Group } from './groups.ts';
import { withSuggestion } from './suggestions.ts';

/** Options that may stand before and after the name of a command. */
const globalOptions = (): readonly Option[] => [
  new Option('--profile <name>', 'Profile to use (default: the current one)'),
  new Option('--server <url>', 'URL of a server, in place of that of the profile (env: LONGSHORE_SERVER)'),
  new Option('--json', 'Print JSON'),
];

/** The first word that is neither an option nor the value of one. */
function commandIn(args: readonly string[]): string | undefined {
  const valued = globalOptions().flatMap(({ long, required }) => (required ? [long] : []));
  return args.find((word, at) => !word.startsWith('-') && !valued.includes(args[at - 1]));
}

const groupOf = (groups: readonly Group[], name: string | undefined): Group | undefined =>
  groups.find(({ names }) => name !== undefined && names.includes(name));

/** The hidden command that completes a line, with the commands that the line names. */
const completing = '__complete';

interface Parts {
  readonly loaded: readonly Group[];
  /** True if the commands of the other groups are present by name only. */
  readonly hasNames: boolean;
}

/** Groups that a line needs. Help and a misspelt command need all. */
function partsFor(groups: readonly Group[], args: readonly string[]): Parts {
  const name = commandIn(args);
  const group = groupOf(groups, name);
  if (group === undefined) return { loaded: args.includes('--version') ? [] : groups, hasNames: false };
  if (name !== completing) return { loaded: [group], hasNames: false };
  const completed = groupOf(groups, commandIn(args.slice(args.indexOf(completing) + 1)));
  return { loaded: [group, ...(completed === undefined ? [] : [completed])], hasNames: true };
}

/**
 * @param groups the commands that the program has
 * @param args words of the command line: only their commands are loaded; all if absent
 */
export async function programOf(
  terminal: Terminal,
  groups: readonly Group[],
  args?: readonly string[],
): Promise<Command> {
  const { loaded, hasNames } = args === undefined ? { loaded: groups, hasNames: false } : partsFor(groups, args);
  const program = new Command('longshore')
    .description('Run containers on your hosts')
    .version(version, '-V, --version', 'Show the version')
    .helpOption('-h, --help', 'Show help')
    .helpCommand('help [command]', 'Show help for a command')
    // Words after the arguments of `exec` belong to the program in the container.
    .enablePositionalOptions()
    // `withSuggestion` suggests nothing destructive.
    .showSuggestionAfterError(false)
    .showHelpAfterError('Run it with --help for details.')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
    });
  const adding = new Map(await Promise.all(loaded.map(async (group) => [group, await group.load()] as const)));
  for (const group of groups) {
    const add = adding.get(group);
    if (add !== undefined) add(program, terminal);
    else if (hasNames) for (const name of group.names) program.command(name);
  }
  for (const command of withAllBelow(program)) {
    command.configureOutput({ outputError: (text, write) => write(withSuggestion(command, text)) });
    for (const option of globalOptions()) {
      if (!command.options.some(({ long }) => long === option.long))
        command.addOption(option.hideHelp(command !== program && option.long !== '--json'));
    }
  }
  return program;
}

/** A command and all below it, in their order. */
export const withAllBelow = (command: Command): Command[] => [command, ...command.commands.flatMap(withAllBelow)];
