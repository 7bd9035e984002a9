/**
 * `npm run test:unit [files...]`: the tests of single source files. They start no server and fetch
 * nothing (a rule of .dependency-cruiser.mjs). Simulations, servers and whole processes are in
 * `npm test` alone.
 */
import { say, took } from '../dev/steps.ts';
import { runTap } from './support/tap-run.ts';
import { testFiles } from './support/tap-stream.ts';

const isUnit = (path: string): boolean => !/test\/(?:attacks|e2e|faults|integration|sim|upgrade)\//.test(path);

const startMs = performance.now();
const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted.abort());

const selection = process.argv.slice(2);
const files = testFiles(selection).filter(isUnit);
if (files.length === 0) {
  say(`no unit test matches ${selection.join(' ')}`);
  process.exit(1);
}
const { totals, exitCode } = await runTap(files, process.env, interrupted.signal);
say(`${files.length} files … ${took(performance.now() - startMs)}`);
process.stdout.write(`${totals.passed} passed, ${totals.failed} failed\n`);
process.exitCode = exitCode;
