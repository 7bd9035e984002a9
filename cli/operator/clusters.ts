/**
 * `backup`, `restore` and `nats-keys`, for operators. They work with NATS and files, not with the
 * API, so the package of the command line alone has their names only (ops/ has the commands).
 */
import type { Command } from 'commander';
import { Refused } from '../terminal/errors.ts';

/** Their descriptions by name, in the order of the help. */
export const clusterCommands = {
  backup: 'Back up the cluster to a folder (online)',
  restore: 'Restore the cluster from a backup (actors stopped)',
  'nats-keys': 'Manage the NATS identities of a cluster in a folder',
} as const;

export function addAbsent(program: Command): void {
  for (const [name, description] of Object.entries(clusterCommands)) {
    program
      .command(`${name} [arguments...]`)
      .description(description)
      .helpOption(false)
      .allowUnknownOption()
      .passThroughOptions()
      .action(() => {
        throw new Refused(
          `"${name}" is not in the package of the command line alone: run it in a checkout, or in the image ` +
            'longshore-tools',
        );
      });
  }
}
