/**
 * `backup`, `restore` and `nats-keys`: commands that work with NATS and files, not with the API.
 * Each imports its needs when it runs, because those take longer to load than a help to print.
 */
import { Option, type Command } from 'commander';
import type { Terminal } from '../cli/context.ts';
import { clusterCommands } from '../cli/operator/clusters.ts';
import { wholeNumber } from '../cli/terminal/arguments.ts';
import type { FindTarget } from './backup/target.ts';
import type { RestoreFlags } from './restore/command.ts';

/**
 * The action of a command, and then the end of the process: the NATS client leaves a socket behind
 * where a server did not answer.
 */
const ending =
  <Args extends readonly unknown[]>(run: (...args: Args) => Promise<void>) =>
  async (...args: Args): Promise<void> => {
    try {
      await run(...args);
    } finally {
      setImmediate(() => process.exit());
    }
  };

/** Longest lifetime of credentials. */
const daysMax = 3660;

const replicaCounts = ['1', '3', '5'];

const ofCluster = `
NATS_URLS, NATS_CREDS_FILE and NATS_CA_FILE name the cluster. See docs/backup.md.`;

const ofKeys = `
docs/deploy.md says where each file goes. NATS_URLS and NATS_CA_FILE name the servers that list asks
and that rotate and revoke change. A command that was interrupted can be repeated.`;

export function addOps(program: Command, terminal: Terminal, findOther?: FindTarget): void {
  program
    .command('backup')
    .description(clusterCommands.backup)
    .argument('<folder>', 'New or empty folder')
    .option('--without-logs', 'Leave out the log lines of containers')
    .addHelpText('after', ofCluster)
    .action(
      ending(async (folder: string, { withoutLogs }: { readonly withoutLogs?: true }) => {
        const { backUp } = await import('./backup/command.ts');
        await backUp(terminal, findOther, { folder, withLogs: withoutLogs !== true });
      }),
    );

  program
    .command('restore')
    .description(clusterCommands.restore)
    .argument('<folder>', 'Folder with the backup')
    .option('--replace', 'Delete the state that NATS holds now')
    .option('--other-cluster', 'Allow --replace where NATS holds another cluster than that of the backup')
    .addOption(
      new Option('--replicas <count>', 'Replicas of each stream (default: as at the time of the backup)').choices(
        replicaCounts,
      ),
    )
    .option(
      '--incarnation-above <number>',
      'Incarnation that the fault of hosts names, where they ignore the restored cluster',
      wholeNumber(0, Number.MAX_SAFE_INTEGER),
    )
    .option('--only-history', 'Restore what an interrupted restore left, while actors run')
    .option('--without-history', 'Leave events, audit, usage and log lines empty')
    .addHelpText('after', `\nStop all actors first; hosts may keep running.\n${ofCluster.trim()}`)
    .action(
      ending(async (folder: string, flags: RestoreFlags) => {
        const { restore } = await import('./restore/command.ts');
        await restore(terminal, findOther, folder, flags);
      }),
    );

  addKeys(program, terminal);
}

function addKeys(program: Command, terminal: Terminal): void {
  const commands = () => import('./nats-keys/command.ts');
  const keys = program.command('nats-keys').description(clusterCommands['nats-keys']).addHelpText('after', ofKeys);
  keys
    .command('create', { isDefault: true })
    .description('Create the NATS identities of a cluster in a folder, or show those it has')
    .argument('<folder>', 'Folder of the keys')
    .argument('[gateways...]', 'Names of gateways that get credentials of their own')
    .action(
      ending(async (folder: string, gateways: string[]) => (await commands()).createKeys(terminal, folder, gateways)),
    );
  keys
    .command('list')
    .description('List the keys of a folder, with their dates and connections')
    .argument('<folder>', 'Folder of the keys')
    .action(ending(async (folder: string) => (await commands()).listKeys(terminal, folder)));
  keys
    .command('rotate')
    .description('Create another key; the earlier ones stay valid')
    .argument('<folder>', 'Folder of the keys')
    .argument('<name>', 'Name of the key, such as gateway-g1, actors or hosts-signing')
    .option('--days <number>', 'Lifetime of the new credentials (default: no end)', wholeNumber(1, daysMax))
    .action(
      ending(async (folder: string, name: string, { days }: { readonly days?: number }) =>
        (await commands()).rotate(terminal, folder, name, days),
      ),
    );
  keys
    .command('revoke')
    .description('Revoke the earlier keys of a name, or one key')
    .argument('<folder>', 'Folder of the keys')
    .argument('<name-or-key>', 'Name of the keys, or the public key')
    .option('--now', 'Revoke a signing key, too, by which hosts are connected')
    .action(
      ending(async (folder: string, nameOrKey: string, { now }: { readonly now?: true }) =>
        (await commands()).revoke(terminal, folder, nameOrKey, now === true),
      ),
    );
}
