/** `npm start`: runs the whole stack with a demo container until Ctrl-C. */
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { declareDemo, demoLines, demoName, demoSettled, showDemo } from './demo/container.ts';
import { askNeighbour, declareNeighbour, neighbourCommand } from './demo/neighbour.ts';
import { isToBeUpdated, updateDemo } from './demo/update.ts';
import { profilesFile, showCommands, writeDemoProfiles } from './demo/profiles.ts';
import { keptDemoPeer, showDemoPeer, type DemoPeer } from './demo/peer.ts';
import { startDevice, type Device } from './demo/device.ts';
import { makeSignInLink, signInLinks } from './demo/sign-in.ts';
import { lockState, tryLock } from './process/lockdir.ts';
import { writePrivateFile } from '../lib/process/private-file.ts';
import { cacheFolder, stateFolder } from './paths.ts';
import { reapAbandoned } from './process/reap.ts';
import { startStack, type Stack } from './stack/stack.ts';
import { say, step, took } from './steps.ts';
import { aborted } from '../lib/time/backoff.ts';

/** Writes what scripts need to use the stack while it runs. */
function writeDevFile(path: string, stack: Stack, vpn: DemoPeer): void {
  const { api, tokens, engine, image, nats, metricsUrls } = stack;
  const content = {
    baseUrl: api.baseUrl,
    tenants: tokens.tenants,
    operator: tokens.operator,
    docker: { host: engine.host },
    image,
    nats: { url: nats.url },
    metrics: metricsUrls,
    vpn,
    pid: process.pid,
  };
  writePrivateFile(path, `${JSON.stringify(content, undefined, 2)}\n`);
}

/** Keeps the logs of the previous start, and no older ones. */
function turnLogs(state: string): void {
  const [logs, previous] = [join(state, 'logs'), join(state, 'logs.previous')];
  rmSync(previous, { recursive: true, force: true });
  try {
    renameSync(logs, previous);
  } catch {
    // The first start: there are no logs yet.
  }
}

async function main(env: NodeJS.ProcessEnv): Promise<number> {
  const startMs = performance.now();
  const state = stateFolder(env);
  mkdirSync(state, { recursive: true, mode: 0o700 });
  const lockPath = join(state, 'start.lock');
  const lock = tryLock(lockPath);
  if (lock === undefined) {
    const owner = lockState(lockPath, Date.now());
    const pid = owner.held && owner.pid !== undefined ? ` (process ${owner.pid})` : '';
    say(`Longshore already runs on ${state}${pid}. Stop it, or set LONGSHORE_STATE to another folder.`);
    return 1;
  }
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (!stopping.signal.aborted) say('');
      stopping.abort();
    });
  }
  const devFile = join(state, 'dev.json');
  const profiles = profilesFile(state);
  let stack: Stack | undefined;
  let device: Device | undefined;
  try {
    await reapAbandoned();
    turnLogs(state);
    const started = await startStack({
      env,
      stateFolder: state,
      cacheFolder: cacheFolder(env),
      signal: stopping.signal,
    });
    stack = started;
    const [vpn, demo] = await Promise.all([
      step('demo VPN peer', () => keptDemoPeer(started, join(state, 'vpn'))),
      demoContainer(started, stopping.signal).catch((error: unknown) => {
        if (stopping.signal.aborted) throw error;
        // The user may have broken the demo container; the stack still serves.
        return { id: undefined, show: () => say((error as Error).message), update: () => Promise.resolve() };
      }),
    ]);
    writeDevFile(devFile, started, vpn);
    writeDemoProfiles(profiles, started);
    device = await demoDevice(started, vpn, demo.id, state, stopping.signal);
    await demo.show(profiles);
    showDemoPeer(started, vpn, device?.said);
    showCommands(profiles, demoName, started.hasNetwork ? [neighbourCommand] : []);
    const links = signInLinks(state, env);
    if (links !== undefined) {
      say(`  sign in    ${makeSignInLink(links, started.api.baseUrl, Date.now())} (once, within an hour)`);
    }
    say(`Up after ${took(performance.now() - startMs)}. Logs are in ${join(state, 'logs')}; Press Ctrl-C to stop.`);
    await Promise.all([aborted(stopping.signal), demo.update()]);
    return 0;
  } catch (error) {
    if (stopping.signal.aborted) return 0;
    say((error as Error).message);
    return 1;
  } finally {
    for (const file of [devFile, profiles]) rmSync(file, { force: true });
    await device?.stop();
    await stack?.stop();
    lock.release();
  }
}

/** Undefined if it reaches nothing; a line says why. */
async function demoDevice(
  stack: Stack,
  vpn: DemoPeer,
  container: string | undefined,
  state: string,
  signal: AbortSignal,
): Promise<Device | undefined> {
  const { vpnTools } = stack;
  if (container === undefined || vpnTools === undefined) return undefined;
  return step('device of the VPN peer', () => startDevice(stack, vpnTools, vpn, container, state, signal)).catch(
    (error: unknown) => {
      if (signal.aborted) throw error;
      say(`the demo peer has no device: ${(error as Error).message}`);
      return undefined;
    },
  );
}

interface Demo {
  /** `undefined` if none runs. */
  readonly id: string | undefined;
  /** Prints it. @param profiles of the command line */
  show(profiles: string): Promise<void> | void;
  /** Updates it, and prints how that went. */
  update(): Promise<void>;
}

/** Declares the demo container and waits until it runs. */
async function demoContainer(stack: Stack, signal: AbortSignal): Promise<Demo> {
  const { api } = stack;
  const { token } = stack.tokens.tenants.demo;
  const container = await step('demo container declared', () => declareDemo(stack));
  if (stack.hasNetwork) await step('second one declared', () => declareNeighbour(stack));
  const status = await step(
    'demo container',
    () => demoSettled(api, token, container.id, signal),
    (seen) => seen.status,
  );
  const lines = await step('first log lines', () => demoLines(api, token, container.id, signal));
  return {
    id: status.status === 'running' ? container.id : undefined,
    show: async (profiles) => {
      const isAsked = stack.hasNetwork && status.status === 'running';
      const network = isAsked ? await askNeighbour(profiles, signal) : undefined;
      await showDemo(stack, container.id, status, lines, network);
    },
    update: async () => {
      if (status.status !== 'running' || !isToBeUpdated(container)) return;
      await updateDemo(stack, container.id, signal).catch((error: unknown) => {
        if (!signal.aborted) say((error as Error).message);
      });
    },
  };
}

process.exit(await main(process.env));
