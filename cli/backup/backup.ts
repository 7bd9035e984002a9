/**
 * `npm run backup -- FOLDER [--without-logs]`: all state of a cluster into a folder, while it
 * serves. See docs/backup.md.
 */
import { parseArgs } from 'node:util';
import { systemClock } from '../../lib/clock.ts';
import { backUpCluster } from './cluster.ts';
import { reasonOf } from './error.ts';
import { savedStreams } from './folder.ts';
import { withTarget } from './target.ts';
import { say, took } from '../../dev/steps.ts';

const usage = 'usage: npm run backup -- FOLDER [--without-logs]';

function readArguments(args: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { 'without-logs': { type: 'boolean', default: false } },
      allowPositionals: true,
    });
    const [folder, ...more] = positionals;
    return folder === undefined || more.length > 0 ? undefined : { folder, withLogs: !values['without-logs'] };
  } catch {
    return undefined;
  }
}

async function main(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const given = readArguments(args);
  if (given === undefined) {
    say(usage);
    return 2;
  }
  const startMs = performance.now();
  try {
    const manifest = await withTarget(env, (nc) =>
      backUpCluster(nc, {
        ...given,
        clock: systemClock,
        onSaved: ({ config, state, bytes }) => say(`· ${config.name}: ${state.messages} messages, ${bytes} bytes`),
      }),
    );
    const bytes = savedStreams(manifest).reduce((sum, stream) => sum + stream.bytes, 0);
    if (manifest.logs === undefined) say('· LOGS: left out, as asked');
    say(`Cluster ${manifest.cluster.id} is in ${given.folder}: ${bytes} bytes in ${took(performance.now() - startMs)}`);
    return 0;
  } catch (error) {
    say(`✗ no backup: ${reasonOf(error)}`);
    return 1;
  }
}

process.exit(await main(process.argv.slice(2), process.env));
