/** The compiled programs of the last release, from the archive that the repository keeps. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../../dev/paths.ts';
import { unpackPrograms } from '../../dev/release/programs.ts';

/** `node dist/dev/release/pack.js e21476e test/upgrade/releases/0.1.0.tar.gz` made the archive. */
export const lastVersion = '0.1.0';

/**
 * Folder of its compiled programs. It lies below the repository root, because the programs run on
 * the `node_modules` of this tree.
 */
export async function unpackLastRelease(): Promise<string> {
  const folder = join(repositoryRoot, 'dist', 'releases', lastVersion);
  const archive = join(repositoryRoot, 'test/upgrade/releases', `${lastVersion}.tar.gz`);
  if (!existsSync(folder)) await unpackPrograms(archive, folder);
  return join(folder, 'dist');
}
