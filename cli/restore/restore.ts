/**
 * `npm run restore -- FOLDER [--replace] [--replicas N]`: a cluster from its backup, while no
 * actors process runs. See docs/backup.md.
 */
import { parseArgs } from 'node:util';
import { systemClock } from '../../lib/clock.ts';
import { reasonOf } from '../backup/error.ts';
import { withTarget } from '../backup/target.ts';
import { restoreCluster, type Restored } from './cluster.ts';
import { say, took } from '../../dev/steps.ts';

const usage = 'usage: npm run restore -- FOLDER [--replace] [--replicas N]';

function readArguments(args: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { replace: { type: 'boolean', default: false }, replicas: { type: 'string' } },
      allowPositionals: true,
    });
    const [folder, ...more] = positionals;
    const replicas = values.replicas === undefined ? undefined : Number(values.replicas);
    if (folder === undefined || more.length > 0) return undefined;
    if (replicas !== undefined && ![1, 3, 5].includes(replicas)) return undefined;
    return { folder, replace: values.replace, replicas };
  } catch {
    return undefined;
  }
}

function tell({ cluster, partitions, eventsDropped }: Restored): void {
  for (const [number, loaded] of partitions.entries()) {
    if (loaded.kind === 'refuses') say(`✗ partition ${number} will not be served: ${loaded.why} (docs/runbook.md)`);
    else for (const key of loaded.quarantined) say(`✗ partition ${number}: ${key} is damaged (docs/runbook.md)`);
  }
  if (eventsDropped > 0) say(`· EVENTS: ${eventsDropped} messages told of what came after the partitions were saved`);
  say(`Cluster ${cluster.id} is back, as incarnation ${cluster.incarnation}. Start actors and gateways.`);
}

async function main(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const given = readArguments(args);
  if (given === undefined) {
    say(usage);
    return 2;
  }
  const startMs = performance.now();
  try {
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
    return 0;
  } catch (error) {
    say(`✗ not restored: ${reasonOf(error)}`);
    return 1;
  }
}

process.exit(await main(process.argv.slice(2), process.env));
