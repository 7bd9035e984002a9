/** `completion`, and the hidden `__complete` that its scripts run at each press of the Tab key. */
import { Argument, type Command } from 'commander';
import { withAbort } from '../../lib/time/backoff.ts';
import { parseDuration } from '../../lib/time/duration.ts';
import { limits } from '../../schemas/limits.ts';
import type { Terminal } from '../context.ts';
import { variableOf } from '../profiles.ts';
import { scripts, shells, type Shell } from './scripts.ts';
import { completionOf, type Completion } from './walk.ts';

/** A text that is no duration counts as unset: an error would be written into the line. */
const timeoutMs = ({ env }: Terminal): number =>
  parseDuration(variableOf(env, 'LONGSHORE_COMPLETION_TIMEOUT') ?? '') ?? limits.cliCompletionMs;

/**
 * Names for a completion. Without a server, a token or an answer in time, those that have come
 * until then.
 */
async function namesOf(completion: Completion, terminal: Terminal): Promise<ReadonlySet<string>> {
  const { kind, begun, before } = completion;
  const found = new Set<string>();
  if (kind === undefined) return found;
  const find = async ({ signal }: AbortController): Promise<void> => {
    const { namesFor } = await import('./names.ts');
    for await (const name of namesFor(kind, completion, { ...terminal, signal })) {
      if (name.startsWith(begun)) found.add(`${before}${name}`);
      if (found.size >= limits.cliCompletionItems) break;
    }
  };
  try {
    await withAbort([terminal.signal], find, timeoutMs(terminal));
  } catch {
    // An error would be written into the line that a person types.
  }
  return found;
}

async function complete(program: Command, terminal: Terminal, words: readonly string[]): Promise<void> {
  const completion = completionOf(program, words);
  const all = [...completion.words, ...(await namesOf(completion, terminal))];
  // Anything else would break the line of a shell.
  const printable = all.filter((word) => /^[\w@%+=:,./-]+$/.test(word));
  terminal.stdout.write(printable.map((word) => `${word}\n`).join(''));
}

export function addCompletion(program: Command, terminal: Terminal): void {
  program
    .command('completion')
    .description('Print a completion script for a shell')
    .addArgument(new Argument('<shell>', 'Name of the shell').choices(shells))
    .action((shell: Shell) => void terminal.stdout.write(scripts[shell]));
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .action((words: string[]) => complete(program, terminal, words));
}
