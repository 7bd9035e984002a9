/** Runs `longshore` as a process: its arguments, its signals and its exit code. */
import { CommanderError } from 'commander';
import { InterruptedError } from './client/errors.ts';
import type { Terminal } from './context.ts';
import type { Group } from './groups.ts';
import { programOf } from './program.ts';
import { codeOf, Exit, exitCodes, wordsOf } from './terminal/errors.ts';
import { Output } from './terminal/output.ts';

/** Runs one command. @returns the exit code */
export async function runLine(args: readonly string[], terminal: Terminal, groups: readonly Group[]): Promise<number> {
  try {
    const program = await programOf(terminal, groups, args);
    await program.parseAsync([...args], { from: 'user' });
    return exitCodes.done;
  } catch (error) {
    // commander has printed the error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
    const isSaid = error instanceof Exit || error instanceof InterruptedError;
    if (!isSaid) terminal.stderr.write(`${wordsOf(error)}\n`);
    return isSaid || !terminal.signal.aborted ? codeOf(error) : exitCodes.interrupted;
  }
}

/** @param groups the commands that this program has */
export async function runLongshore(groups: readonly Group[]): Promise<void> {
  const interrupt = new AbortController();
  // The first Ctrl-C ends the command in good order, the second one at once.
  process.once('SIGINT', () => interrupt.abort());
  process.once('SIGTERM', () => interrupt.abort());
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // `longshore logs web | head`
    if (error.code === 'EPIPE') process.exit(exitCodes.done);
  });
  const { env, stdin } = process;
  const terminal = {
    env,
    stdin,
    stdout: new Output(process.stdout),
    stderr: new Output(process.stderr),
    signal: interrupt.signal,
    nowMs: () => Date.now(),
  };
  process.exitCode = await runLine(process.argv.slice(2), terminal, groups);
}
