/**
 * `longshore backup` copies all state of a cluster into a folder while the cluster serves. See
 * docs/backup.md.
 */
import type { Terminal } from '../../cli/context.ts';
import { took } from '../../lib/terminal.ts';
import { systemClock } from '../../lib/time/clock.ts';
import { backUpCluster } from './cluster.ts';
import { savedStreams } from './folder.ts';
import { withTarget, type FindTarget } from './target.ts';

export interface Given {
  readonly folder: string;
  readonly withLogs: boolean;
}

export async function backUp(
  { env, stdout }: Terminal,
  findOther: FindTarget | undefined,
  given: Given,
): Promise<void> {
  const say = (text: string): void => stdout.write(`${text}\n`);
  const startMs = performance.now();
  const manifest = await withTarget(env, findOther, (nc) =>
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
