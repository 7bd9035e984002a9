/**
 * Installs dependencies that are missing or older than the lock file, and no more than a command
 * needs.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { modifiedMs, root, say, step } from './run.mjs';

/** npm writes its record of an installation up to this long before it touches the lock file. */
const betweenLockFilesMs = 5_000;

/** Paths of the installed packages; undefined if none are installed or the lock file is newer. */
function installedIn(folder) {
  const record = join(folder, 'node_modules/.package-lock.json');
  const installedMs = modifiedMs(record);
  if (installedMs === 0 || installedMs + betweenLockFilesMs < modifiedMs(join(folder, 'package-lock.json'))) {
    return undefined;
  }
  return Object.keys(JSON.parse(readFileSync(record, 'utf8')).packages);
}

async function install(folder, what, args) {
  say(`· npm ci (${what}) …`);
  const took = await step('npm ci', 'npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error', ...args], {
    cwd: folder,
  });
  say(`· ${what} installed … ${took}`);
}

const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** True if the compiler and the tests' tools are installed. */
const hasDevelopmentTools = () => {
  const installed = installedIn(root);
  return (
    installed !== undefined && Object.keys(devDependencies).every((name) => installed.includes(`node_modules/${name}`))
  );
};

/** Installs what the programs import, and the 4 MB of tools that strip their types. */
export async function installRuntime() {
  if (installedIn(root) === undefined) await install(root, 'what is run', ['--omit=dev']);
}

/** Installs everything, including the compiler, the linters and the tests' tools. */
export async function installAll() {
  if (!hasDevelopmentTools()) await install(root, 'dependencies', []);
}

const bench = join(root, 'bench');

/**
 * Installs the packages that type-check the benchmark's peers, without workerd's binary of 138 MB.
 */
export async function installBenchTypes() {
  if (installedIn(bench) === undefined) await install(bench, 'types of the peers', ['--omit=optional']);
}

/** Installs the systems that the benchmark runs for comparison. */
export async function installBench() {
  const isWhole = installedIn(bench)?.some((name) => name.startsWith('node_modules/@cloudflare/workerd-'));
  if (isWhole !== true) await install(bench, 'peers of the benchmark', []);
}
