/** Applies each mutant to a copy of dist/ and runs its killer, on all processors. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { repositoryRoot } from '../../dev/paths.ts';
import { run } from '../../dev/process/run.ts';
import { say, took } from '../../dev/steps.ts';
import type { Mutant } from './mutant.ts';
import { changed, compiled, DoesNotApply } from './syntax.ts';

const killerDeadlineMs = 5 * 60_000;
const simulationSeeds = 1000;
/** The first failure ends a killer, and the deadline ends one that waits. */
const env = {
  ...process.env,
  TAP_BAIL: '1',
  TAP_TIMEOUT: String(killerDeadlineMs / 1000),
  UNTIL_DEADLINE_MS: '30000',
};

export interface Tally {
  readonly killed: number;
  readonly all: number;
}

const inJavaScript = (path: string): string => path.replace(/\.ts$/, '.js');

/** The compiled file with the mutant in it. @throws DoesNotApply */
export function mutated({ file, changes }: Mutant): string {
  return compiled(file, changed(file, readFileSync(join(repositoryRoot, file), 'utf8'), changes));
}

const commandOf = ({ killedBy, firstSeed = 1 }: Mutant, dist: string): string[] =>
  killedBy === 'simulation'
    ? [join(dist, 'test/sim/until-fault.js'), String(simulationSeeds), String(firstSeed)]
    : [join(dist, inJavaScript(killedBy))];

/** @returns the reason why the mutant survived, or `undefined` if it was killed */
async function tryOut(mutant: Mutant, dist: string): Promise<string | undefined> {
  const path = join(dist, inJavaScript(mutant.file));
  const original = readFileSync(path, 'utf8');
  try {
    writeFileSync(path, mutated(mutant));
    const killer = await run(process.execPath, commandOf(mutant, dist), { deadlineMs: killerDeadlineMs, env });
    if (killer.code === 0) return 'it lives';
    // The killer must have found a fault; a crash does not count.
    if (killer.code === 1 && killer.stdout.trim() !== '') return undefined;
    return `its killer ended with ${killer.code ?? killer.signal}: ${killer.stderr.slice(0, 2000)}`;
  } catch (error) {
    if (error instanceof DoesNotApply) return `${mutant.file}: ${error.message}`;
    throw error;
  } finally {
    writeFileSync(path, original);
  }
}

/** A copy of dist/ below `place`, with what it needs, for mutants and their tests. */
export function copyPrograms(place: string): void {
  cpSync(join(repositoryRoot, 'dist'), join(place, 'dist'), { recursive: true });
  // The programs that a test starts must hold the mutant.
  rmSync(join(place, 'dist/programs'), { recursive: true, force: true });
  for (const name of ['node_modules', 'package.json']) symlinkSync(join(repositoryRoot, name), join(place, name));
}

export async function killMutants(chosen: readonly Mutant[]): Promise<Tally> {
  const waiting = [...chosen];
  let killed = 0;
  const folder = mkdtempSync(join(tmpdir(), 'longshore-mutants-'));
  const lane = async (index: number): Promise<void> => {
    const place = join(folder, String(index));
    copyPrograms(place);
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const startMs = performance.now();
      const fault = await tryOut(mutant, join(place, 'dist'));
      if (fault === undefined) killed++;
      const mark = fault === undefined ? '✓' : '✗';
      say(`${mark} ${mutant.name}${fault === undefined ? '' : `: ${fault}`} … ${took(performance.now() - startMs)}`);
    }
  };
  try {
    const lanes = Math.min(availableParallelism(), chosen.length);
    await Promise.all(Array.from({ length: lanes }, (_, index) => lane(index)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  say(`${killed} of ${chosen.length} mutants killed`);
  return { killed, all: chosen.length };
}
