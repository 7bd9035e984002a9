/**
 * `backup`, `restore` and `nats-keys`, for operators: they work with NATS and files, not with the
 * API. Their needs are imported when they run, because the package of the command alone lacks them.
 */
import type { Command } from 'commander';
import { runCommand } from '../command.ts';
import type { Terminal } from '../context.ts';
import { exitCodes, Refused } from '../terminal/errors.ts';

type Run = (args: readonly string[], env: NodeJS.ProcessEnv) => Promise<number>;

const runs = {
  backup: async (args, env) => runCommand((await import('../backup/command.ts')).backupCommand, args, env),
  restore: async (args, env) => runCommand((await import('../restore/command.ts')).restoreCommand, args, env),
  'nats-keys': async (args, env) => runCommand((await import('../keys/command.ts')).keysCommand, args, env),
} satisfies Record<string, Run>;

const absent = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'];

export function addClusters(program: Command, { env, signal }: Terminal): void {
  const add = (name: keyof typeof runs, description: string): void => {
    program
      .command(`${name} [arguments...]`)
      .description(description)
      .helpOption(false)
      .allowUnknownOption()
      .passThroughOptions()
      .action(async (args: string[]) => {
        const code = await runs[name](args, env).catch((error: unknown) => {
          if (!absent.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
          throw new Refused(
            `"${name}" is not in the package of the command alone: run it in a checkout, or in the image longshore-tools`,
          );
        });
        // The NATS client leaves a socket behind where a server did not answer.
        process.exit(code !== 0 && signal.aborted ? exitCodes.interrupted : code);
      });
  };
  add('backup', 'Back up the cluster to a folder (online)');
  add('restore', 'Restore the cluster from a backup (actors stopped)');
  add('nats-keys', 'Create the NATS identities of a cluster in a folder');
}
