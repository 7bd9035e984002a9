/** Files that commands look for if none is named, found as Compose finds its own. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The names of Compose files, in the order in which Compose looks for them. */
export const composeFiles = ['compose.yaml', 'compose.yml', 'docker-compose.yml', 'docker-compose.yaml'] as const;

/**
 * The nearest folder, this one or one above it, that has one of the files.
 * @param folder absolute
 */
export function folderWith(folder: string, names: readonly string[]): string | undefined {
  if (names.some((name) => existsSync(join(folder, name)))) return folder;
  const above = dirname(folder);
  return above === folder ? undefined : folderWith(above, names);
}
