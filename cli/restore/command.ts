/**
 * `longshore restore` restores a cluster from its backup while no actors run. See docs/backup.md.
 */
import { parseArgs } from 'node:util';
import { systemClock } from '../../lib/time/clock.ts';
import { say, took } from '../../lib/terminal.ts';
import { withTarget } from '../backup/target.ts';
import { folderArgument, UsageError, type Command } from '../command.ts';
import { limits } from '../../schemas/limits.ts';
import type { Manifest, SavedStream } from '../backup/folder.ts';
import { continueHistory, restoreCluster, type Servable } from './cluster.ts';
import type { RestoredHistory } from './history.ts';

const help = `usage: longshore restore FOLDER [--replace] [--replicas N] [--other-cluster]
                         [--incarnation-above N] [--only-history] [--without-history]

Restores the cluster whose backup is in FOLDER. Stop all actors first; hosts may keep running. Start
the actors when it says so: events, audit, usage and log lines come back while the cluster serves.

  --replace          deletes the state that NATS holds now
  --other-cluster    allows --replace where NATS holds another cluster than that of the backup
  --replicas N       replicas of each stream: 1, 3 or 5; default: as many as at the time of the backup
  --incarnation-above N
                     if hosts ignore the restored cluster: the incarnation that their fault names
  --only-history     brings what an interrupted restore left, while actors run
  --without-history  events, audit, usage and log lines begin empty

NATS_URLS, NATS_CREDS_FILE and NATS_CA_FILE name the cluster. Without NATS_URLS the command uses the
cluster of npm start. See docs/backup.md.`;

interface Given {
  readonly folder: string;
  readonly replace: boolean;
  readonly replicas: number | undefined;
  readonly otherCluster: boolean;
  readonly incarnationAbove: number | undefined;
  readonly onlyHistory: boolean;
  readonly withoutHistory: boolean;
}

function read(args: readonly string[]): Given {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      replace: { type: 'boolean', default: false },
      replicas: { type: 'string' },
      'other-cluster': { type: 'boolean', default: false },
      'incarnation-above': { type: 'string' },
      'only-history': { type: 'boolean', default: false },
      'without-history': { type: 'boolean', default: false },
    },
    allowPositionals: true,
  });
  const replicas = values.replicas === undefined ? undefined : Number(values.replicas);
  if (replicas !== undefined && ![1, 3, 5].includes(replicas)) {
    throw new UsageError(`--replicas must be 1, 3 or 5, not ${values.replicas}.`);
  }
  const above = values['incarnation-above'];
  const incarnationAbove = above === undefined ? undefined : Number(above);
  if (incarnationAbove !== undefined && !(Number.isSafeInteger(incarnationAbove) && incarnationAbove >= 0)) {
    throw new UsageError(`--incarnation-above must be a whole number, not ${above}.`);
  }
  return {
    folder: folderArgument(positionals),
    replace: values.replace,
    replicas,
    otherCluster: values['other-cluster'],
    incarnationAbove,
    onlyHistory: values['only-history'],
    withoutHistory: values['without-history'],
  };
}

function reportServable({ cluster, partitions, hosts }: Servable): void {
  for (const [number, loaded] of partitions.entries()) {
    if (loaded.kind === 'refuses') say(`✗ partition ${number} cannot be served: ${loaded.why} (see docs/runbook.md)`);
    else for (const key of loaded.quarantined) say(`✗ partition ${number}: ${key} is damaged (see docs/runbook.md)`);
  }
  if (hosts.silent.length > 0) {
    say(`· ${named(hosts.silent)} did not answer: look at their faults once they are back (docs/backup.md)`);
  }
  if (hosts.implausible.length > 0) {
    say(`✗ ${named(hosts.implausible)} will ignore this cluster: they have seen one of years ahead (docs/backup.md)`);
  }
  say(`Restored cluster ${cluster.id} as incarnation ${cluster.incarnation}. Start the actors and gateways.`);
}

function named(hosts: readonly string[]): string {
  const some = hosts.slice(0, limits.restoreHostsNamed).join(', ');
  return hosts.length === 1
    ? `host ${some}`
    : `${hosts.length} hosts (${some}${hosts.length > limits.restoreHostsNamed ? ', …' : ''})`;
}

function reportHistory({ eventsDropped, linesDropped }: RestoredHistory): void {
  if (eventsDropped > 0) say(`· EVENTS: deleted ${eventsDropped} messages that are newer than the saved partitions`);
  if (linesDropped > 0) say(`· AUDIT: deleted ${linesDropped} messages that are newer than the saved partitions`);
}

async function run(given: Given, env: NodeJS.ProcessEnv): Promise<void> {
  const startMs = performance.now();
  const options = {
    ...given,
    clock: systemClock,
    onChecked: ({ takenAt, cluster }: Manifest, isChecked: boolean) => {
      say(`· the backup of cluster ${cluster.id}, made at ${takenAt}, is complete and undamaged`);
      if (!isChecked) say('· manifest.json has no checksum (backups of the last release): compare it with a copy');
    },
    onRestored: ({ config, state }: SavedStream) => say(`· ${config.name}: ${state.messages} messages`),
    onServable: (servable: Servable) => {
      reportServable(servable);
      say(`· all state is back after ${took(performance.now() - startMs)}; history follows`);
    },
  };
  const restore = given.onlyHistory ? continueHistory : restoreCluster;
  reportHistory(await withTarget(env, (nc) => restore(nc, options)));
  say(`Done in ${took(performance.now() - startMs)}`);
}

export const restoreCommand: Command<Given> = { help, read, run, failed: 'restore failed' };
