/** `npm run restore` restores a cluster from its backup, with all actors stopped. See docs/backup.md. */
import { parseArgs } from 'node:util';
import { systemClock } from '../../lib/clock.ts';
import { say, took } from '../../lib/terminal.ts';
import { withTarget } from '../backup/target.ts';
import { runCommand, theFolder, UsageError } from '../command.ts';
import { restoreCluster, type Restored } from './cluster.ts';

const help = `usage: npm run restore -- FOLDER [--replace] [--replicas N]

Brings back the cluster whose backup is in FOLDER. Stop all actors first; hosts may run on.

  --replace        deletes the state that NATS holds now
  --replicas N     copies of each stream: 1, 3 or 5; without it as many as were backed up

NATS_URLS, NATS_CREDS_FILE and NATS_CA_FILE name the cluster. Without NATS_URLS it is the one of
npm start. docs/backup.md says more.`;

interface Given {
  readonly folder: string;
  readonly replace: boolean;
  readonly replicas: number | undefined;
}

function read(args: readonly string[]): Given {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { replace: { type: 'boolean', default: false }, replicas: { type: 'string' } },
    allowPositionals: true,
  });
  const replicas = values.replicas === undefined ? undefined : Number(values.replicas);
  if (replicas !== undefined && ![1, 3, 5].includes(replicas)) {
    throw new UsageError(`--replicas is 1, 3 or 5, not ${values.replicas}.`);
  }
  return { folder: theFolder(positionals), replace: values.replace, replicas };
}

function tell({ cluster, partitions, eventsDropped }: Restored): void {
  for (const [number, loaded] of partitions.entries()) {
    if (loaded.kind === 'refuses') say(`✗ partition ${number} will not be served: ${loaded.why} (docs/runbook.md)`);
    else for (const key of loaded.quarantined) say(`✗ partition ${number}: ${key} is damaged (docs/runbook.md)`);
  }
  if (eventsDropped > 0) say(`· EVENTS: dropped ${eventsDropped} events that are newer than the saved partitions`);
  say(`Cluster ${cluster.id} is back, as incarnation ${cluster.incarnation}. Start actors and gateways.`);
}

async function run(given: Given, env: NodeJS.ProcessEnv): Promise<void> {
  const startMs = performance.now();
  const restored = await withTarget(env, (nc) =>
    restoreCluster(nc, {
      ...given,
      clock: systemClock,
      onChecked: ({ takenAt, cluster }) => say(`· the backup of cluster ${cluster.id} from ${takenAt} is whole`),
      onRestored: ({ config, state }) => say(`· ${config.name}: ${state.messages} messages`),
    }),
  );
  tell(restored);
  say(`Done in ${took(performance.now() - startMs)}`);
}

process.exit(await runCommand({ help, read, run, failed: 'not restored' }, process.argv.slice(2), process.env));
