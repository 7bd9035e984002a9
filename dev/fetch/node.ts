/**
 * Fetches an old release of each supported Node line, for the tests that run `npm start` on all of
 * them. The binaries come from the npm packages that carry them; not every release is there.
 */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { takeLock } from '../process/lockdir.ts';
import { run } from '../process/run.ts';

export const nodeVersions = { 20: '20.19.0', 22: '22.12.0', 24: '24.9.0', 26: '26.0.0' } as const;
export type NodeLine = keyof typeof nodeVersions;

const installDeadlineMs = 300_000;
const lockDeadlineMs = 900_000;

/**
 * Resolves to the folder that holds the executable, to be put first on PATH.
 * @throws Error if npm has no binary for this machine.
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
    // The package also has headers and npm; only the executable's folder is kept.
    renameSync(dirname(join(temporary, 'node_modules', name, 'bin/node')), folder);
    return folder;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
    lock.release();
  }
}
