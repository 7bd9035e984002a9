/**
 * `npm run check`: runs every check, even after one has failed, so that one run reports everything.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { bin, root, run, say, seconds } from './run.mjs';

/** Tap's half minute is too short for the tests of the rules on a machine that is busy. */
const env = { ...process.env, TAP_TIMEOUT: process.env['TAP_TIMEOUT'] ?? '600' };

async function checked(name, command) {
  const startMs = performance.now();
  const { code, output } = await run(process.execPath, command, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  say(`${code === 0 ? '✓' : '✗'} ${name} … ${seconds(startMs)}`);
  if (code !== 0) process.stderr.write(output);
  return [name, code];
}

export async function check(args) {
  const startMs = performance.now();
  const results = await Promise.all([
    checked('format', [bin('prettier'), '--check', '--log-level', 'warn', '.']),
    checked('lint', [bin('eslint'), '--cache', '--cache-location', join(root, '.cache', 'eslint'), ...args, '.']),
    checked('types', [bin('tsc'), '-p', '.']),
    checked('types of the benchmark’s peers', [bin('tsc'), '-p', 'bench']),
  ]);
  results.push(...(await checkHouse()));
  const failed = results.filter(([, code]) => code !== 0).map(([name]) => name);
  say(failed.length === 0 ? `check passed in ${seconds(startMs)}` : `check failed: ${failed.join(', ')}`);
  process.exit(failed.length === 0 ? 0 : 1);
}

/** Runs test/house, the tests that need only the sources. */
function checkHouse() {
  const names = readdirSync(join(root, 'test/house'))
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => name.slice(0, -'.test.ts'.length));
  return Promise.all(
    names.map((name) => checked(`house: ${name}`, [join(root, 'dist/test/house', `${name}.test.js`)])),
  );
}
