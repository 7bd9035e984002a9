/**
 * `npm test [files...]`: finds the tools, starts one container engine and one registry for the
 * whole run, runs the compiled test files, and leaves nothing behind. Unit tests share a few
 * processes; each other file has one of its own. A path or a part of it selects files.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { sleep } from '../lib/time/backoff.ts';
import { findEngine, startPrivateEngine, type Engine } from '../dev/servers/engine.ts';
import { enter, strike } from '../dev/process/ledger.ts';
import { cacheFolder, shortTemporaryRoot } from '../dev/paths.ts';
import { reapAbandoned } from '../dev/process/reap.ts';
import { pushDemoImage, startRegistry, type Registry } from '../dev/servers/registry.ts';
import { say, step, took } from '../dev/steps.ts';
import { isOptional, toolNames, type ToolName } from '../dev/fetch/tool-table.ts';
import { findTool, ToolMissing, type Tool } from '../dev/fetch/tools.ts';
import { canStartEngine } from './support/servers.ts';
import { inCi } from './support/tools.ts';
import { runBatches } from './support/runner/batches.ts';
import { runProcesses } from './support/runner/processes.ts';
import { isUnit, sum, testFiles, type Totals } from './support/runner/tap-stream.ts';

/**
 * Finds the tools that a run needs, and fetches the optional ones now, so that no test's deadline
 * includes a download.
 */
async function findTools(): Promise<Record<ToolName, Tool>> {
  const found: [ToolName, Tool][] = [];
  for (const name of toolNames) {
    const find = step(
      name,
      (report) => findTool(name, { env: process.env, cacheFolder: cacheFolder(process.env), report }),
      ({ version, origin }) => `${version} (${origin})`,
    );
    const mayLack = isOptional(name) && !inCi;
    const tool = mayLack ? await find.catch((error: unknown) => lacking(name, error)) : await find;
    if (tool !== undefined) found.push([name, tool]);
  }
  return Object.fromEntries(found) as Record<ToolName, Tool>;
}

function lacking(name: ToolName, error: unknown): undefined {
  if (!(error instanceof ToolMissing)) throw error;
  say(`${error.message}\nTests that need ${name} are skipped.`);
}

/**
 * Starts a private engine if possible, so that a run neither sees nor leaves anything in the
 * machine's own.
 */
async function startEngine(dir: string, tool: Tool): Promise<Engine> {
  const running = canStartEngine ? undefined : await findEngine(process.env);
  return running ?? startPrivateEngine({ dir, tool, firewall: true, throwaway: true });
}

async function main(selection: readonly string[]): Promise<number> {
  const startMs = performance.now();
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted.abort());
  const goOn = (): void => {
    if (interrupted.signal.aborted) throw new Error('interrupted');
  };

  const files = testFiles(selection);
  if (files.length === 0) throw new Error(`no test file matches ${selection.join(' ')}`);
  await reapAbandoned();
  const tools = await findTools();
  goOn();

  const folder = mkdtempSync(join(shortTemporaryRoot(), 'longshore-test-'));
  enter({ kind: 'folder', id: folder, path: folder });
  mkdirSync(join(folder, 'tmp'));
  let engine: Engine | undefined;
  let registry: Registry | undefined;
  let totals: Totals;
  try {
    engine = await step(
      'Docker engine',
      () => startEngine(join(folder, 'engine'), tools.dockerd),
      ({ version, origin }) => `${version} (${origin})`,
    );
    goOn();
    registry = await step('registry', async () => {
      const started = await startRegistry({ folder: join(folder, 'registry'), tool: tools['docker-registry'] });
      await pushDemoImage(started.address);
      return started;
    });
    goOn();
    const env = {
      ...process.env,
      TMPDIR: join(folder, 'tmp'),
      LONGSHORE_TEST_DOCKER_HOST: engine.host,
      LONGSHORE_TEST_REGISTRY: registry.address,
      LONGSHORE_TEST_NATS_SERVER: tools['nats-server'].path,
      LONGSHORE_TEST_REDIS_SERVER: tools['redis-server'].path,
      LONGSHORE_TEST_DOCKERD: tools.dockerd.path,
      LONGSHORE_TEST_BUSYBOX: tools.busybox.path,
      LONGSHORE_TEST_PROMTOOL: tools.promtool.path,
    };
    totals = await runBatches(files.filter(isUnit), env, interrupted.signal);
    goOn();
    totals = sum(
      totals,
      await runProcesses(
        files.filter((path) => !isUnit(path)),
        env,
        interrupted.signal,
      ),
    );
  } finally {
    await registry?.stop();
    if (engine?.origin === 'private') await engine.stop();
    // Waits until the guards of ended test processes have ended their servers.
    await reapAbandoned();
    rmSync(folder, { recursive: true, force: true });
    strike(folder);
  }
  goOn();
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
