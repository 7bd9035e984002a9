/**
 * The cluster of `npm start`, for a backup or a restore. If its NATS server does not run, it is
 * started for as long as the command takes.
 */
import { join } from 'node:path';
import { BackupError } from '../../ops/backup/error.ts';
import type { Target } from '../../ops/backup/target.ts';
import { prepareNatsIdentity } from '../../ops/nats-keys/nats-identity.ts';
import { stateFolder } from '../paths.ts';
import { tryLock } from '../process/lockdir.ts';
import { startNats } from '../servers/nats.ts';
import { keptPorts, readPorts } from './ports.ts';

export async function startedTarget(env: NodeJS.ProcessEnv): Promise<Target> {
  const state = stateFolder(env);
  const folder = join(state, 'nats');
  const ports = join(state, 'ports.json');
  const lock = tryLock(join(state, 'start.lock'));
  if (lock !== undefined) {
    try {
      const nats = await startNats({ dir: folder, port: (await keptPorts(ports)).nats });
      const release = async (): Promise<void> => {
        await nats.stop();
        lock.release();
      };
      return { servers: [nats.url], credsFile: nats.credsFile, tlsCaFile: undefined, release };
    } catch (error) {
      lock.release();
      throw error;
    }
  }
  const port = readPorts(ports).nats;
  if (port === undefined)
    throw new BackupError(`${ports} has no port of NATS: wait until \`npm start\` has started NATS`);
  const { cpCredsFile: credsFile } = await prepareNatsIdentity(join(folder, 'keys'));
  return { servers: [`nats://127.0.0.1:${port}`], credsFile, tlsCaFile: undefined, release: async () => {} };
}
