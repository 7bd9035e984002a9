/** Chooses the test files of a run, and sorts them. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'prettier';
import { repositoryRoot } from '../../../../dev/paths.ts';
import { run } from '../../../../dev/process/run.ts';
import { journeys, kindOf, nameOf, simulation, takingTurns, type Kind } from '../../../kinds.ts';
import { compiledOf, type Graph } from './graph.ts';
import { partOfTurn } from './rotation.ts';

const gitDeadlineMs = 10_000;

/** Kinds that `npm test` runs without a selection. */
const defaultKinds: readonly Kind[] = ['fast', 'contract'];

export interface Wish {
  /** Only these kinds; the default kinds and the journeys if `undefined`. */
  readonly kinds: readonly Kind[] | undefined;
  /** Parts of paths; all files if empty. Files that are named need not be of the default kinds. */
  readonly names: readonly string[];
  /** Adds each file that imports one of these compiled files, except nightly ones. */
  readonly changed: readonly string[];
}

/** @param all the compiled test files */
export function select(all: readonly string[], { kinds, names, changed }: Wish, graph: Graph): string[] {
  const isNamed = (path: string): boolean => names.length === 0 || names.some((name) => path.includes(name));
  const isOfKind = (path: string): boolean => {
    if (kinds !== undefined) return kinds.includes(kindOf(path));
    return names.length > 0 || defaultKinds.includes(kindOf(path)) || journeys.includes(nameOf(path));
  };
  const reachesChange = (path: string): boolean => {
    if (changed.length === 0 || kindOf(path) === 'nightly') return false;
    const imports = graph.importsOf(path);
    return changed.some((file) => imports.has(file));
  };
  return all.filter((path) => isNamed(path) && (isOfKind(path) || reachesChange(path)));
}

/**
 * Leaves only the files whose turn it is of those that take turns; so many `turns` one after
 * another have them all, and each takes as long.
 */
export function whoseTurnItIs(
  files: readonly string[],
  turns: number,
  turn = partOfTurn(turns),
  durations = readDurations(),
): string[] {
  const isAlwaysRun = (path: string): boolean => {
    const name = nameOf(path);
    return !takingTurns.includes(kindOf(path)) || journeys.includes(name) || name === simulation;
  };
  const dealt = longestFirst(
    files.filter((path) => !isAlwaysRun(path)),
    durations,
  );
  // There and back again, so that no turn has the longer one of each round.
  const turnOf = (at: number): number => {
    const place = at % (2 * turns);
    return place < turns ? place : 2 * turns - 1 - place;
  };
  const others = new Set(dealt.filter((_, at) => turnOf(at) !== turn));
  return files.filter((path) => !others.has(path));
}

/** The compiled files whose sources differ from the commit `since`, or are new. */
export async function changedFiles(since: string): Promise<string[]> {
  const git = async (...args: readonly string[]): Promise<string[]> => {
    const ran = await run('git', args, { cwd: repositoryRoot, deadlineMs: gitDeadlineMs });
    if (ran.code !== 0) throw new Error(`git ${args.join(' ')}: ${ran.stderr.trim()}`);
    return ran.stdout.split('\n').filter((line) => line.endsWith('.ts'));
  };
  const edited = await git('diff', '--name-only', '--relative', since, '--');
  const added = await git('ls-files', '--others', '--exclude-standard');
  return [...edited, ...added].map(compiledOf);
}

const durationsFile = join(repositoryRoot, 'test/durations.json');
/** Shorter files may run in any order. */
const worthNotingS = 2;

/** Seconds of each long file in an earlier run, by name. They decide the order alone. */
function readDurations(): ReadonlyMap<string, number> {
  if (!existsSync(durationsFile)) return new Map();
  return new Map(Object.entries(JSON.parse(readFileSync(durationsFile, 'utf8')) as Record<string, number>));
}

/** The longest first, so that no long file is left alone at the end. */
export function longestFirst(paths: readonly string[], durations = readDurations()): string[] {
  const secondsOf = (path: string): number => durations.get(nameOf(path)) ?? 0;
  return paths.toSorted((a, b) => secondsOf(b) - secondsOf(a));
}

/** Writes what this run has measured; what it has not run stays as it was. */
export async function keepDurations(measured: ReadonlyMap<string, number>): Promise<void> {
  const merged = new Map(readDurations());
  for (const [path, ms] of measured) merged.set(nameOf(path), Math.round(ms / 1000));
  const rows = [...merged]
    .filter(([name, seconds]) => seconds >= worthNotingS && existsSync(join(repositoryRoot, `test/${name}.test.ts`)))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  writeFileSync(durationsFile, await format(JSON.stringify(Object.fromEntries(rows)), { parser: 'json' }));
}
