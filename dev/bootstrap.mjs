/**
 * What package.json's scripts call: from a fresh clone to a compiled program, then that program.
 * Plain JavaScript without dependencies, for it runs before there are any.
 */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const say = (text) => process.stderr.write(`${text}\n`);
const seconds = (startMs) => `${((performance.now() - startMs) / 1000).toFixed(1)} s`;

/** As package.json's `engines` say. */
function checkPlatform() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const fits = (major === 20 && minor >= 19) || (major === 22 && minor >= 12);
  if (!fits)
    fail(
      `Node ${process.versions.node} is not supported: Longshore needs Node 20 (20.19 or newer) or 22 (22.12 or newer).`,
    );
  if (process.platform === 'win32')
    fail('Longshore runs on Linux (and, with a Docker engine, on macOS), not on Windows.');
}

function fail(message) {
  say(message);
  process.exit(1);
}

/**
 * Runs a command to its end. Signals reach it once: a terminal's Ctrl-C goes to the whole process
 * group, the child included, so only what was sent to this process alone is passed on.
 */
function run(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: options.stdio ?? 'inherit', env: process.env });
    const output = [];
    child.stdout?.on('data', (chunk) => output.push(chunk));
    child.stderr?.on('data', (chunk) => output.push(chunk));
    const interactive = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY === true);
    const forward = (signal) => {
      if (!(signal === 'SIGINT' && interactive)) child.kill(signal);
    };
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
    for (const signal of signals) process.on(signal, forward);
    const settle = (code) => {
      for (const signal of signals) process.removeListener(signal, forward);
      resolve({ code, output: Buffer.concat(output).toString() });
    };
    child.once('error', (error) => {
      output.push(Buffer.from(`${command}: ${error.message}\n`));
      settle(127);
    });
    child.once('exit', (code, signal) => settle(code ?? 128 + (constants.signals[signal] ?? 0)));
  });
}

/** A step whose output matters only when it fails. */
async function step(name, command, args) {
  const startMs = performance.now();
  const { code, output } = await run(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  if (code !== 0) {
    process.stderr.write(output);
    say(`✗ ${name} failed after ${seconds(startMs)}`);
    process.exit(code);
  }
  return seconds(startMs);
}

const modifiedMs = (path) => statSync(join(root, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;

/**
 * npm writes its own copy of the lock file when an installation is complete, just before the lock
 * file itself.
 */
const betweenLockFilesMs = 5_000;

async function installDependencies() {
  const installedMs = modifiedMs('node_modules/.package-lock.json');
  if (installedMs > 0 && installedMs + betweenLockFilesMs >= modifiedMs('package-lock.json')) return;
  say('· npm ci …');
  const took = await step('npm ci', 'npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']);
  say(`· dependencies installed … ${took}`);
}

const bin = (name) => join(root, 'node_modules', '.bin', name);

/** tsc trusts its record of what it wrote, also when that was deleted. */
function forgetDeletedOutput() {
  if (!existsSync(join(root, 'dist'))) rmSync(join(root, '.cache', 'tsbuildinfo'), { force: true });
}

async function compile() {
  forgetDeletedOutput();
  const took = await step('compiling', process.execPath, [bin('tsc'), '-p', '.']);
  say(`· compiled … ${took}`);
}

/** Each is run, also after another failed, so that one run tells all. */
async function check(args) {
  const startMs = performance.now();
  forgetDeletedOutput();
  const checks = [
    ['format', [bin('prettier'), '--check', '--log-level', 'warn', '.']],
    ['lint', [bin('eslint'), '--cache', '--cache-location', join(root, '.cache', 'eslint'), ...args, '.']],
    // With output: the tests of the house rules, which follow, run what is compiled.
    ['types', [bin('tsc'), '-p', '.']],
  ];
  const results = await Promise.all(
    checks.map(async ([name, command]) => {
      const checkStartMs = performance.now();
      const { code, output } = await run(process.execPath, command, { stdio: ['ignore', 'pipe', 'pipe'] });
      say(`${code === 0 ? '✓' : '✗'} ${name} … ${seconds(checkStartMs)}`);
      if (code !== 0) process.stderr.write(output);
      return [name, code];
    }),
  );
  results.push(...(await checkHouse()));
  const failed = results.filter(([, code]) => code !== 0).map(([name]) => name);
  say(failed.length === 0 ? `check passed in ${seconds(startMs)}` : `check failed: ${failed.join(', ')}`);
  process.exit(failed.length === 0 ? 0 : 1);
}

/** The house rules are tests that need nothing but the sources: one process each, and all told. */
function checkHouse() {
  const names = readdirSync(join(root, 'test/house'))
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => name.slice(0, -'.test.ts'.length));
  return Promise.all(
    names.map(async (name) => {
      const startMs = performance.now();
      const { code, output } = await run(process.execPath, [join(root, 'dist/test/house', `${name}.test.js`)], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      say(`${code === 0 ? '✓' : '✗'} house: ${name} … ${seconds(startMs)}`);
      if (code !== 0) process.stderr.write(output);
      return [`house: ${name}`, code];
    }),
  );
}

async function execute(program, args) {
  const { code } = await run(process.execPath, ['--enable-source-maps', join(root, 'dist', program), ...args]);
  process.exit(code);
}

/** What each command runs of what is compiled; undefined: nothing more. */
const programs = {
  start: 'dev/start.js',
  test: 'test/run.js',
  build: undefined,
  docs: 'dev/docs/docs.js',
  bench: 'bench/run.js',
  faults: 'test/faults/run.js',
  backup: 'cli/backup/backup.js',
  restore: 'cli/restore/restore.js',
};

const [command = '', ...args] = process.argv.slice(2);
checkPlatform();
if (command === 'check') {
  await installDependencies();
  await check(args);
} else if (Object.hasOwn(programs, command)) {
  await installDependencies();
  await compile();
  const program = programs[command];
  if (program !== undefined) await execute(program, args);
} else {
  fail(`usage: node dev/bootstrap.mjs ${[...Object.keys(programs), 'check'].join('|')} [arguments]`);
}
