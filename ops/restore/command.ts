/**
 * `longshore restore` restores a cluster from its backup while no actors run. See docs/backup.md.
 */
import type { Terminal } from '../../cli/context.ts';
import { took } from '../../lib/terminal.ts';
import { systemClock } from '../../lib/time/clock.ts';
import type { Manifest, SavedStream } from '../backup/folder.ts';
import { withTarget, type FindTarget } from '../backup/target.ts';
import { continueHistory, restoreCluster, type Servable } from './cluster.ts';
import type { RestoredHistory } from './history.ts';

/** Hosts that the output names. */
const restoreHostsNamed = 20;

/** The options of the command, by their names. */
export interface RestoreFlags {
  readonly replace?: true;
  /** A number. */
  readonly replicas?: string;
  readonly otherCluster?: true;
  readonly incarnationAbove?: number;
  readonly onlyHistory?: true;
  readonly withoutHistory?: true;
}

type Say = (text: string) => void;

function reportServable(say: Say, { cluster, partitions, hosts }: Servable): void {
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
  const some = hosts.slice(0, restoreHostsNamed).join(', ');
  return hosts.length === 1
    ? `host ${some}`
    : `${hosts.length} hosts (${some}${hosts.length > restoreHostsNamed ? ', …' : ''})`;
}

function reportHistory(say: Say, { eventsDropped, linesDropped }: RestoredHistory): void {
  if (eventsDropped > 0) say(`· EVENTS: deleted ${eventsDropped} messages that are newer than the saved partitions`);
  if (linesDropped > 0) say(`· AUDIT: deleted ${linesDropped} messages that are newer than the saved partitions`);
}

export async function restore(
  { env, stdout }: Terminal,
  findOther: FindTarget | undefined,
  folder: string,
  flags: RestoreFlags,
): Promise<void> {
  const say: Say = (text) => stdout.write(`${text}\n`);
  const startMs = performance.now();
  const options = {
    folder,
    replace: flags.replace === true,
    otherCluster: flags.otherCluster === true,
    replicas: flags.replicas === undefined ? undefined : Number(flags.replicas),
    incarnationAbove: flags.incarnationAbove,
    withoutHistory: flags.withoutHistory === true,
    clock: systemClock,
    onChecked: ({ takenAt, cluster }: Manifest, isChecked: boolean) => {
      say(`· the backup of cluster ${cluster.id}, made at ${takenAt}, is complete and undamaged`);
      if (!isChecked) say('· manifest.json has no checksum (a backup of before 0.2.0): compare it with a copy');
    },
    onRestored: ({ config, state }: SavedStream) => say(`· ${config.name}: ${state.messages} messages`),
    onServable: (servable: Servable) => {
      reportServable(say, servable);
      say(`· all state is back after ${took(performance.now() - startMs)}; history follows`);
    },
  };
  const run = flags.onlyHistory === true ? continueHistory : restoreCluster;
  reportHistory(say, await withTarget(env, findOther, (nc) => run(nc, options)));
  say(`Done in ${took(performance.now() - startMs)}`);
}
