/** The compiled programs of the last release, from the archive in this folder. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../../dev/paths.ts';
import { unpackPrograms } from '../../dev/release/programs.ts';

/** Made by `node dist/dev/release/pack.js e0ba87c0 test/upgrade/releases/0.2.0.tar.gz`. */
export const lastVersion = '0.2.0';

/**
 * Unpacks the archive and resolves to the folder of the programs. It is inside the repository,
 * because the programs need its `node_modules`.
 */
export async function unpackLastRelease(): Promise<string> {
  const folder = join(repositoryRoot, 'dist', 'releases', lastVersion);
  const archive = join(repositoryRoot, 'test/upgrade/releases', `${lastVersion}.tar.gz`);
  if (!existsSync(folder)) await unpackPrograms(archive, folder);
  return join(folder, 'dist');
}
