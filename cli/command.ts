/**
 * What every command of an operator does alike: `--help`, arguments that it refuses with the reason,
 * and exit codes: 0 done, 1 failed, 2 wrong arguments.
 */
import { reasonOf } from './backup/error.ts';
import { say } from '../lib/terminal.ts';

/** The arguments are wrong; the message says which and why. */
export class UsageError extends Error {}

export interface Command<T> {
  /** Its first line names the command and its arguments. */
  readonly help: string;
  /** @throws where the arguments are wrong. */
  readonly read: (args: readonly string[]) => T;
  readonly run: (given: T, env: NodeJS.ProcessEnv) => Promise<void>;
  /** Begins the line of an error: `no backup`. */
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
    say(`${reasonOf(error)}\n${command.help.split('\n')[0]}\n--help says more.`);
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

/** The one folder that a command takes. */
export function theFolder(positionals: readonly string[]): string {
  const [folder, ...more] = positionals;
  if (folder === undefined) throw new UsageError('A folder is missing.');
  if (more.length > 0) throw new UsageError(`One folder, not also ${more.join(' ')}.`);
  return folder;
}
