/**
 * `node dist/test/mutants/stryker.js`: Stryker changes every expression of a few pure files, one at
 * a time, and runs the tests that reach it. It fails if the score is below `scoreMin`, or if it
 * takes longer than `deadlineMs`.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { repositoryRoot } from '../../dev/paths.ts';
import { run } from '../../dev/process/run.ts';
import { say } from '../../dev/steps.ts';
import { copyPrograms } from './kill.ts';

const deadlineMs = 8 * 60_000;
/** In percent; docs/faults.md has the score. */
const scoreMin = 88;

/** Files that decide, with unit tests of less than a second below the same path of test/. */
const pureFiles = [
  'actors/domain/placement',
  'host-agent/images/pull-slots',
  'lib/fill',
  'lib/rpc/item',
  'lib/time/cautious-clock',
  'lib/time/duration',
];

const configuration = {
  testRunner: 'tap',
  plugins: ['@stryker-mutator/tap-runner'],
  tap: { testFiles: pureFiles.map((path) => `dist/test/${path}.test.js`), forceBail: true },
  mutate: pureFiles.map((path) => `dist/${path}.js`),
  // Words of messages, and initial values, which types fix.
  mutator: { excludedMutations: ['StringLiteral', 'ObjectLiteral', 'ArrayDeclaration'] },
  coverageAnalysis: 'perTest',
  ignoreStatic: true,
  // The folder is a copy already.
  inPlace: true,
  concurrency: availableParallelism(),
  timeoutMS: 10_000,
  thresholds: { high: 100, low: scoreMin, break: scoreMin },
  reporters: ['clear-text'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  allowConsoleColors: false,
};

const folder = mkdtempSync(join(tmpdir(), 'longshore-stryker-'));
try {
  copyPrograms(folder);
  writeFileSync(join(folder, 'stryker.config.json'), JSON.stringify(configuration));
  const program = join(repositoryRoot, 'node_modules/@stryker-mutator/core/bin/stryker.js');
  const { code, stdout, stderr, timedOut } = await run(process.execPath, [program, 'run'], { cwd: folder, deadlineMs });
  say(`${stdout}${stderr}`);
  if (timedOut) say(`Stryker took longer than ${deadlineMs / 60_000} minutes: run it while the machine is idle`);
  process.exitCode = code ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
