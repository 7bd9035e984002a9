/**
 * Work that is too long for each run is divided, and runs take turns: each commit has its part, and
 * `test:nightly` gives each day its own by `LONGSHORE_TEST_TURN`.
 */
import { spawnSync } from 'node:child_process';
import { repositoryRoot } from '../../../../dev/paths.ts';

/** Number of the part that this run has, below `parts`: the next commit or night has another. */
export function partOfTurn(parts: number): number {
  const given = process.env['LONGSHORE_TEST_TURN'];
  if (given !== undefined) return Number(given) % parts;
  const { stdout } = spawnSync('git', ['rev-list', '--count', 'HEAD'], { cwd: repositoryRoot, encoding: 'utf8' });
  // A copy without its history always has the first part.
  return (Number.parseInt(stdout, 10) || 0) % parts;
}
