/**
 * `npm run test:nightly`: what is too long for each change. It runs every step, also when one has
 * failed, and says at its end which did. The seeds are other ones each day.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { join } from 'node:path';
import { repositoryRoot } from '../dev/paths.ts';
import { say, took } from '../dev/steps.ts';

const dayMs = 86_400_000;
/** Another number is another night: other seeds, and other parts of what takes turns. */
const night = Number(process.env['LONGSHORE_TEST_TURN'] ?? Math.floor(Date.now() / dayMs));
/** Parts of the files that take turns; each night has another part. */
const turns = 3;

interface Step {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

const jitter = `--import=${join(repositoryRoot, 'dist/test/support/jitter.js')}`;

const steps: readonly Step[] = [
  {
    name: 'tests on servers: nightly ones, a third of the others, 300 seeds of the simulation',
    program: 'run.js',
    args: ['--kind', 'server,destructive,nightly', '--turn', String(turns)],
    env: { SEEDS: `${night * 300 + 1}-${night * 300 + 300}` },
  },
  {
    name: 'tests of the API on both HTTP engines',
    program: 'run.js',
    args: ['attacks/http', 'integration/gateway/fuzz', 'integration/gateway/process', 'integration/gateway/streams'],
    env: { LONGSHORE_TEST_NIGHT: 'on' },
  },
  {
    name: 'faults, 3 seeds, and a third of the mutants',
    program: 'faults/run.js',
    args: ['--seeds', `${night * 3 + 1}-${night * 3 + 3}`, '--mutants', String(turns)],
  },
  { name: 'mutants of the pure files by Stryker', program: 'mutants/stryker.js', args: [] },
  {
    name: 'fast tests on a machine with bad luck',
    program: 'run.js',
    args: ['--kind', 'fast'],
    env: { NODE_OPTIONS: [process.env['NODE_OPTIONS'], jitter].filter(Boolean).join(' ') },
  },
];

/** @returns the exit code */
function runStep({ program, args, env }: Step): Promise<number> {
  const command = ['--enable-source-maps', join(repositoryRoot, 'dist/test', program), ...args];
  const child = spawn(process.execPath, command, {
    cwd: repositoryRoot,
    // In a step of the night no test is skipped because a tool is missing (support/tools.ts).
    env: { ...process.env, CI: 'true', LONGSHORE_TEST_TURN: String(night), ...env },
    stdio: 'inherit',
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal ?? 'SIGKILL']));
  });
}

const failed: string[] = [];
const startMs = performance.now();
for (const step of steps) {
  const stepMs = performance.now();
  say(`=== ${step.name}`);
  const code = await runStep(step);
  say(`=== ${step.name}: exit code ${code} … ${took(performance.now() - stepMs)}`);
  if (code !== 0) failed.push(step.name);
}
say(`nightly … ${took(performance.now() - startMs)}${failed.length === 0 ? '' : `; failed: ${failed.join(', ')}`}`);
process.exitCode = failed.length === 0 ? 0 : 1;
