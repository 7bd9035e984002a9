/**
 * What all commands of an operator share: `--help`, errors that say which argument is wrong, and
 * exit codes (0 done, 1 failed, 2 wrong arguments).
 */
import { reasonOf } from './backup/error.ts';
import { say } from '../lib/terminal.ts';
import { meant } from '../lib/validation/misspelt.ts';
import { destructive } from './suggestions.ts';

/** An argument is wrong; the message says which one and why. */
export class UsageError extends Error {}

export interface Command<T> {
  /** The first line is the usage: the command and its arguments. */
  readonly help: string;
  /** @throws UsageError, or an error of `parseArgs`, if an argument is wrong. */
  readonly read: (args: readonly string[]) => T;
  readonly run: (given: T, env: NodeJS.ProcessEnv) => Promise<void>;
  /** Start of an error line, such as `backup failed`. */
  readonly failed: string;
}

/** Resolves to the exit code. */
export async function runCommand<T>(
  command: Command<T>,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    say(command.help);
    return 0;
  }
  let given: T;
  try {
    given = command.read(args);
  } catch (error) {
    // What `parseArgs` adds is of no use here.
    const [reason] = reasonOf(error).split(' To specify a positional argument');
    say(`${reason}${suggestion(error, command.help)}\n${command.help.split('\n')[0]}\nRun with --help for details.`);
    return 2;
  }
  try {
    await command.run(given, env);
    return 0;
  } catch (error) {
    say(`✗ ${command.failed}: ${reasonOf(error)}`);
    return 1;
  }
}

/** The option that was meant by one that `parseArgs` does not know. */
function suggestion(error: unknown, help: string): string {
  const [, wrong] = /^Unknown option '--([^']+)'/.exec(reasonOf(error)) ?? [];
  const known = [...help.matchAll(/--([a-z-]+)/g)].flatMap(([option, name = '']) =>
    destructive.has(option) ? [] : [name.replaceAll('-', '_')],
  );
  const near = wrong === undefined ? undefined : meant(wrong, known);
  return near === undefined ? '' : `\n(Did you mean --${near.replaceAll('_', '-')}?)`;
}

/** The only positional argument of a command that takes one folder. */
export function folderArgument(positionals: readonly string[]): string {
  const [folder, ...more] = positionals;
  if (folder === undefined) throw new UsageError('FOLDER is missing.');
  if (more.length > 0) throw new UsageError(`Only one FOLDER is allowed; remove ${more.join(' ')}.`);
  return folder;
}
