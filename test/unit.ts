/**
 * `npm run test:unit [files...]`: the tests of single source files, many in one process. They start
 * no server and fetch nothing (a rule of .dependency-cruiser.mjs). Simulations, servers and whole
 * processes are in `npm test` alone; the rules of the house in `npm run check`.
 */
import { say, took } from '../dev/steps.ts';
import { runBatches } from './support/runner/batches.ts';
import { isUnit, testFiles } from './support/runner/tap-stream.ts';

const startMs = performance.now();
const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted.abort());

const selection = process.argv.slice(2);
const files = testFiles(selection).filter(isUnit);
if (files.length === 0) {
  say(`no unit test matches ${selection.join(' ')}`);
  process.exit(1);
}
const { passed, failed } = await runBatches(files, process.env, interrupted.signal);
say(`${files.length} files … ${took(performance.now() - startMs)}`);
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed > 0 || interrupted.signal.aborted ? 1 : 0;
