/**
 * The entry point of package.json's scripts. Each command installs and compiles only what it runs,
 * then runs it. Plain JavaScript without dependencies, because it runs before anything is
 * installed.
 */
import { join } from 'node:path';
import { check } from './build/check.mjs';
import { compileAll, compilePrograms, linkBenchPackages } from './build/compile.mjs';
import { installAll, installBench, installBenchTypes, installRuntime } from './build/install.mjs';
import { fail, root, run } from './build/run.mjs';

/** Keep in step with `engines` in package.json. */
function checkPlatform() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const fits = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major === 24 || major === 26;
  if (!fits) {
    fail(
      `Node ${process.versions.node} is not supported. Install Node 20 (20.19 or newer), 22 (22.12 or newer), 24 or 26.`,
    );
  }
  if (process.platform === 'win32') {
    fail('Longshore does not run on Windows. Use Linux, or macOS with a Docker engine.');
  }
}

async function prepareRuntime() {
  await installRuntime();
  await compilePrograms();
}

async function prepareAll() {
  await installAll();
  await compileAll();
}

async function prepareBench() {
  await prepareAll();
  await installBench();
  linkBenchPackages();
}

async function prepareCheck() {
  await prepareAll();
  await installBenchTypes();
}

/** `program` is the file in dist/ that runs after the preparation, with `options` first. */
const commands = {
  start: { prepare: prepareRuntime, program: 'dev/start.js' },
  build: { prepare: prepareRuntime },
  compile: { prepare: prepareAll },
  backup: { prepare: prepareRuntime, program: 'dev/longshore.js', options: ['backup'] },
  restore: { prepare: prepareRuntime, program: 'dev/longshore.js', options: ['restore'] },
  pack: { prepare: prepareRuntime, program: 'dev/release/pack-command.js' },
  test: { prepare: prepareAll, program: 'test/run.js' },
  all: { prepare: prepareAll, program: 'test/run.js', options: ['--all'] },
  nightly: { prepare: prepareAll, program: 'test/nightly.js' },
  docs: { prepare: prepareAll, program: 'dev/docs/docs.js' },
  faults: { prepare: prepareAll, program: 'test/faults/run.js' },
  bench: { prepare: prepareBench, program: 'bench/run.js' },
  check: { prepare: prepareCheck, then: check },
};

const [name = '', ...args] = process.argv.slice(2);
checkPlatform();
if (!Object.hasOwn(commands, name)) {
  fail(`usage: node dev/bootstrap.mjs ${Object.keys(commands).join('|')} [arguments]`);
}
const { prepare, program, options = [], then } = commands[name];
await prepare();
await then?.(args);
if (program !== undefined) {
  const { code } = await run(process.execPath, [
    '--enable-source-maps',
    join(root, 'dist', program),
    ...options,
    ...args,
  ]);
  process.exit(code);
}
