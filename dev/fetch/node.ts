/**
 * Node of each supported line, for the tests that run `npm start` on all of them: the oldest
 * supported release of a line where that was to be had, from the npm packages that carry Node's
 * own binaries.
 */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { takeLock } from '../process/lockdir.ts';
import { run } from '../process/run.ts';

export const nodeVersions = { 20: '20.19.0', 22: '22.12.0', 24: '24.9.0' } as const;
export type NodeLine = keyof typeof nodeVersions;

const installDeadlineMs = 300_000;
const lockDeadlineMs = 900_000;

/**
 * Resolves to the folder of the executable, to stand first on PATH.
 * @throws where npm has no binary for this machine.
 */
export async function nodeFolder(line: NodeLine, cacheFolder: string): Promise<string> {
  const version = nodeVersions[line];
  const parent = join(cacheFolder, 'node');
  const folder = join(parent, version);
  if (existsSync(folder)) return folder;
  mkdirSync(parent, { recursive: true });
  const lock = await takeLock(join(parent, 'fetch.lock'), lockDeadlineMs, `fetching Node ${version}`);
  const temporary = mkdtempSync(join(parent, 'install-'));
  try {
    if (existsSync(folder)) return folder;
    const name = `node-${process.platform}-${process.arch}`;
    const options = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
    const installed = await run('npm', ['install', '--prefix', temporary, ...options, `${name}@${version}`], {
      deadlineMs: installDeadlineMs,
    });
    if (installed.code !== 0) throw new Error(`npm install ${name}@${version}: ${installed.stderr.slice(-1000)}`);
    // The package has headers and npm too: the executable's folder is all that is kept.
    renameSync(dirname(join(temporary, 'node_modules', name, 'bin/node')), folder);
    return folder;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
    lock.release();
  }
}
