/**
 * Takes out each guard in a copy of dist/, and runs what has to notice; as many at a time as the
 * machine has processors.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { repositoryRoot } from '../../dev/paths.ts';
import { run } from '../../dev/process/run.ts';
import { say, took } from '../../dev/steps.ts';
import { mutants, type Killer, type Mutant } from './mutants.ts';

const killerDeadlineMs = 5 * 60_000;
/**
 * One failure is enough; and a test that waits in vain has to say so itself: by default tap ends
 * its process after 30 s.
 */
const env = { ...process.env, TAP_BAIL: '1', TAP_TIMEOUT: String(killerDeadlineMs / 1000) };

export interface Tally {
  readonly killed: number;
  readonly all: number;
}

/**
 * The text with the guard taken out; undefined where what is taken out does not stand there exactly
 * once.
 */
function mutated(text: string, { edits }: Mutant): string | undefined {
  let changed = text;
  for (const { find, replace } of edits) {
    const parts = changed.split(find);
    if (parts.length !== 2) return undefined;
    changed = parts.join(replace);
  }
  return changed;
}

function commandOf(killer: Killer, dist: string): string[] {
  switch (killer.by) {
    case 'simulation':
      return [join(dist, 'test/sim/until-fault.js'), String(killer.seeds)];
    case 'test':
      return [join(dist, killer.file.replace(/\.ts$/, '.js'))];
  }
}

/** @returns what is wrong; undefined: the mutant was killed. */
async function tryOut(mutant: Mutant, dist: string): Promise<string | undefined> {
  const path = join(dist, mutant.file);
  const original = readFileSync(path, 'utf8');
  const text = mutated(original, mutant);
  if (text === undefined) return 'what it takes out does not stand there exactly once';
  writeFileSync(path, text);
  try {
    const killer = await run(process.execPath, commandOf(mutant.killedBy, dist), { deadlineMs: killerDeadlineMs, env });
    if (killer.code === 0) return 'it lives';
    // The killer has to have found harm, not to have broken down.
    if (killer.code === 1 && killer.stdout.trim() !== '') return undefined;
    return `its killer ended with ${killer.code ?? killer.signal}: ${killer.stderr.slice(0, 2000)}`;
  } finally {
    writeFileSync(path, original);
  }
}

/** Those whose name holds one of the parts; all, where there is none. */
export async function killMutants(parts: readonly string[]): Promise<Tally> {
  const chosen = mutants.filter(({ name }) => parts.length === 0 || parts.some((part) => name.includes(part)));
  const waiting = [...chosen];
  let killed = 0;
  const folder = mkdtempSync(join(tmpdir(), 'longshore-mutants-'));
  const lane = async (index: number): Promise<void> => {
    const place = join(folder, String(index));
    cpSync(join(repositoryRoot, 'dist'), join(place, 'dist'), { recursive: true });
    for (const name of ['node_modules', 'package.json']) symlinkSync(join(repositoryRoot, name), join(place, name));
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const startMs = performance.now();
      const fault = await tryOut(mutant, join(place, 'dist'));
      if (fault === undefined) killed++;
      const mark = fault === undefined ? '✓' : '✗';
      say(`${mark} ${mutant.name}${fault === undefined ? '' : `: ${fault}`} … ${took(performance.now() - startMs)}`);
    }
  };
  try {
    await Promise.all(Array.from({ length: availableParallelism() }, async (_, index) => lane(index)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  say(`${killed} of ${chosen.length} mutants killed`);
  return { killed, all: chosen.length };
}
