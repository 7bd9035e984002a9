/**
 * `npm test [-- options] [files...]`: finds the tools that the chosen files need, starts one
 * container engine and one registry for the whole run, runs the compiled test files, and leaves
 * nothing behind. Files of the kinds `fast` and `contract` share a few processes; each other file
 * has one of its own.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { sleep } from '../lib/time/backoff.ts';
import { findEngine, startPrivateEngine, type Engine } from '../dev/servers/engine.ts';
import { enter, strike } from '../dev/process/ledger.ts';
import { cacheFolder, repositoryRoot, shortTemporaryRoot } from '../dev/paths.ts';
import { reapAbandoned } from '../dev/process/reap.ts';
import { run } from '../dev/process/run.ts';
import { pushDemoImage, startRegistry, type Registry } from '../dev/servers/registry.ts';
import { say, step, took } from '../dev/steps.ts';
import { isOptional, toolNames, type ToolName } from '../dev/fetch/tool-table.ts';
import { findTool, ToolMissing } from '../dev/fetch/tools.ts';
import { kindOf, kinds, type Kind } from './kinds.ts';
import { canStartEngine } from './support/servers.ts';
import { inCi } from './support/tools.ts';
import { runBatches } from './support/runner/batches.ts';
import { readGraph, type Graph } from './support/runner/choice/graph.ts';
import { runProcesses } from './support/runner/processes.ts';
import { changedFiles, keepDurations, longestFirst, select, whoseTurnItIs } from './support/runner/choice/selection.ts';
import { sayResult, sum, testFiles, type RunOptions, type Totals } from './support/runner/tap-stream.ts';

const usage = `usage: npm test -- [options] [parts of paths...]
Without any: the kinds fast and contract, and a few whole journeys.
  --kind a,b       the files of these kinds: ${kinds.join(', ')}
  --all            the files of all kinds
  --changed        also files, except nightly ones, that import what differs from the last commit
  --since REF      the same, with what differs from REF
  --turn N         only one of N parts of the files that take turns: each commit has another part,
                   and N commits in a row have them all
  --durations      note how long the files took, in test/durations.json, for the order of later runs`;

const cores = availableParallelism();
const bundleDeadlineMs = 60_000;

/** Bounds on files that run at once: `fast` never waits, the others wait most of their time. */
const processes = {
  fast: { least: cores + 1, most: cores + 1 },
  contract: { least: Math.ceil(cores / 2), most: cores + 1 },
  others: { least: cores, most: 4 * cores },
};

interface Options {
  readonly kinds: readonly Kind[] | undefined;
  readonly names: readonly string[];
  readonly since: string | undefined;
  /** One of so many parts of the files that take turns. */
  readonly turns: number;
  readonly keepsDurations: boolean;
}

function readOptions(args: readonly string[]): Options | undefined {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      kind: { type: 'string', multiple: true, default: [] },
      all: { type: 'boolean', default: false },
      changed: { type: 'boolean', default: false },
      since: { type: 'string' },
      turn: { type: 'string', default: '1' },
      durations: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const named = values.kind.flatMap((text) => text.split(',')).filter((text) => text !== '');
  const unknown = named.filter((name) => !(kinds as readonly string[]).includes(name));
  if (unknown.length > 0) throw new Error(`no such kind: ${unknown.join(', ')}\n${usage}`);
  const turns = Number(values.turn);
  if (!Number.isInteger(turns) || turns < 1) throw new Error(`--turn ${values.turn}: give a number of parts\n${usage}`);
  return {
    kinds: values.all ? kinds : named.length === 0 ? undefined : (named as Kind[]),
    names: positionals.map((name) => name.replace(/^(\.\/)?(dist\/)?/, '').replace(/\.ts$/, '.js')),
    since: values.since ?? (values.changed ? 'HEAD' : undefined),
    turns,
    keepsDurations: values.durations,
  };
}

/**
 * Finds the tools that the files need, and fetches the optional ones now, so that no test's
 * deadline includes a download.
 */
async function findTools(names: readonly ToolName[]): Promise<void> {
  for (const name of names) {
    const found = step(
      name,
      (report) => findTool(name, { env: process.env, cacheFolder: cacheFolder(process.env), report }),
      ({ version, origin }) => `${version} (${origin})`,
    );
    if (isOptional(name) && !inCi) await found.catch((error: unknown) => lacking(name, error));
    else await found;
  }
}

function lacking(name: ToolName, error: unknown): void {
  if (!(error instanceof ToolMissing)) throw error;
  say(`${error.message}\nTests that need ${name} are skipped.`);
}

/** The tools that any of the files may use. Those of the kind `fast` use none. */
function toolsFor(files: readonly string[], graph: Graph): ToolName[] {
  const others = files.filter((path) => kindOf(path) !== 'fast');
  const needed = new Set(others.flatMap((path) => [...graph.toolsOf(path)]));
  return toolNames.filter((name) => needed.has(name));
}

/** So that tests start the programs as they are compiled now, by whatever compiled them. */
async function bundlePrograms(): Promise<void> {
  const { code, stderr } = await run(process.execPath, [join(repositoryRoot, 'dev/build/bundle.mjs')], {
    deadlineMs: bundleDeadlineMs,
  });
  if (code !== 0) throw new Error(`the programs were not bundled:\n${stderr}`);
}

/** Servers and variables that the test files of a run share. */
interface Shared {
  readonly env: NodeJS.ProcessEnv;
  stop(): Promise<void>;
}

/**
 * Starts a private engine if possible, so that a run neither sees nor leaves anything in the
 * machine's own, and a registry with the demo image.
 */
async function startShared(folder: string): Promise<Shared> {
  let engine: Engine | undefined;
  let registry: Registry | undefined;
  const stop = async (): Promise<void> => {
    await registry?.stop();
    if (engine?.origin === 'private') await engine.stop();
  };
  try {
    engine = await step(
      'Docker engine',
      async () => {
        const running = canStartEngine ? undefined : await findEngine(process.env);
        if (running !== undefined) return running;
        return startPrivateEngine({ dir: join(folder, 'engine'), firewall: true, throwaway: true });
      },
      ({ version, origin }) => `${version} (${origin})`,
    );
    registry = await step('registry', async () => {
      const started = await startRegistry({ folder: join(folder, 'registry') });
      await pushDemoImage(started.address);
      return started;
    });
    return {
      env: { LONGSHORE_TEST_DOCKER_HOST: engine.host, LONGSHORE_TEST_REGISTRY: registry.address },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const servers = 'dist/test/support/servers.js';

/** Runs first what needs no server, then the other kinds side by side. */
async function runAll(
  files: readonly string[],
  env: NodeJS.ProcessEnv,
  stopped: AbortSignal,
  report: NonNullable<RunOptions['report']>,
): Promise<Totals> {
  const of = (...wanted: readonly Kind[]): string[] =>
    longestFirst(files.filter((path) => wanted.includes(kindOf(path))));
  const fast = await runBatches(of('fast'), env, stopped, { report, processes: processes.fast });
  const others = await Promise.all([
    runBatches(of('contract'), env, stopped, { report, processes: processes.contract }),
    runProcesses(of('server', 'destructive', 'nightly', 'house'), env, stopped, {
      report,
      processes: processes.others,
    }),
  ]);
  return others.reduce(sum, fast);
}

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  if (options === undefined) {
    say(usage);
    return 0;
  }
  const startMs = performance.now();
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted.abort());
  const goOn = (): void => {
    if (interrupted.signal.aborted) throw new Error('interrupted');
  };

  const graph = await readGraph();
  const changed = options.since === undefined ? [] : await changedFiles(options.since);
  const chosen = select(testFiles(), { ...options, changed }, graph);
  const files = whoseTurnItIs(chosen, options.turns);
  if (files.length === 0) throw new Error(`no test file matches ${args.join(' ')}`);
  await bundlePrograms();
  await reapAbandoned();
  await findTools(toolsFor(files, graph));
  goOn();

  const folder = mkdtempSync(join(shortTemporaryRoot(), 'longshore-test-'));
  enter({ kind: 'folder', id: folder, path: folder });
  mkdirSync(join(folder, 'tmp'));
  let shared: Shared | undefined;
  let totals: Totals;
  const measured = new Map<string, number>();
  try {
    if (files.some((path) => graph.importsOf(path).has(servers))) shared = await startShared(folder);
    goOn();
    const env = { ...process.env, TMPDIR: join(folder, 'tmp'), ...shared?.env };
    totals = await runAll(files, env, interrupted.signal, (result, lines) => {
      if (!result.failed) measured.set(result.path, result.ms);
      sayResult(result, lines);
    });
  } finally {
    await shared?.stop();
    // Waits until the guards of ended test processes have ended their servers.
    await reapAbandoned();
    rmSync(folder, { recursive: true, force: true });
    strike(folder);
  }
  goOn();
  if (options.keepsDurations) await keepDurations(measured);
  const { passed, failed, skipped } = totals;
  say(`${files.length} files, ${skipped} skipped … ${took(performance.now() - startMs)}`);
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  return failed > 0 ? 1 : 0;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  say((error as Error).message);
  process.stdout.write('0 passed, 1 failed\n');
  process.exitCode = 1;
}
// Ends the process even if a library keeps a connection.
await sleep(0);
process.exit();
