/** Work that is too long for each run is divided, and each commit has its part. */
import { spawnSync } from 'node:child_process';
import { repositoryRoot } from '../../../../dev/paths.ts';

/** Number of the part that this commit has, below `parts`: the next commit has the next one. */
export function partOfCommit(parts: number): number {
  const { stdout } = spawnSync('git', ['rev-list', '--count', 'HEAD'], { cwd: repositoryRoot, encoding: 'utf8' });
  // A copy without its history always has the first part.
  return (Number.parseInt(stdout, 10) || 0) % parts;
}
