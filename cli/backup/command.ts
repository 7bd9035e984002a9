/**
 * `longshore backup` copies all state of a cluster into a folder while the cluster serves. See
 * docs/backup.md.
 */
import { parseArgs } from 'node:util';
import { systemClock } from '../../lib/time/clock.ts';
import { say, took } from '../../lib/terminal.ts';
import { folderArgument, type Command } from '../command.ts';
import { backUpCluster } from './cluster.ts';
import { savedStreams } from './folder.ts';
import { withTarget } from './target.ts';

const help = `usage: longshore backup FOLDER [--without-logs]

Copies all state of a cluster into FOLDER, which must be new or empty, while the cluster serves.

  --without-logs   leaves out the containers' log lines

NATS_URLS, NATS_CREDS_FILE and NATS_CA_FILE name the cluster. Without NATS_URLS the command uses the
cluster of npm start. See docs/backup.md.`;

interface Given {
  readonly folder: string;
  readonly withLogs: boolean;
}

function read(args: readonly string[]): Given {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { 'without-logs': { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  return { folder: folderArgument(positionals), withLogs: !values['without-logs'] };
}

async function run(given: Given, env: NodeJS.ProcessEnv): Promise<void> {
  const startMs = performance.now();
  const manifest = await withTarget(env, (nc) =>
    backUpCluster(nc, {
      ...given,
      clock: systemClock,
      onSaved: ({ config, state, bytes }) => say(`· ${config.name}: ${state.messages} messages, ${bytes} bytes`),
    }),
  );
  const bytes = savedStreams(manifest).reduce((sum, stream) => sum + stream.bytes, 0);
  if (manifest.logs === undefined) say('· LOGS: left out (--without-logs)');
  say(
    `Backed up cluster ${manifest.cluster.id} to ${given.folder}: ${bytes} bytes in ${took(performance.now() - startMs)}`,
  );
}

export const backupCommand: Command<Given> = { help, read, run, failed: 'backup failed' };
