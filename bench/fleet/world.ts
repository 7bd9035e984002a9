/**
 * A control plane with a fleet of hosts: nats-server, Redis, gateways, actors and agents are real,
 * the engines are simulated.
 */
import { mkdirSync, mkdtempSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createApi, type Api } from '../../dev/api.ts';
import { startNats, type Nats } from '../../dev/servers/nats.ts';
import { freePort, startServer, type Server } from '../../dev/process/process.ts';
import { startProgram, type Program } from '../../dev/stack/programs.ts';
import { startRedis } from '../../dev/servers/redis.ts';
import { devAudience, devIssuer, prepareTokenIssuer } from '../../dev/tokens.ts';
import type { Bench } from '../section.ts';
import type { AgentsTask, AgentsUse } from './agents.ts';
import type { EngineCounts } from '../../test/support/engine/model.ts';

export interface FleetSize {
  readonly hosts: number;
  readonly agentProcesses: number;
  readonly tenants: number;
  readonly actors: number;
  readonly gateways: number;
  /** True if hosts have no agents, but only report what they should run (simulated-host.ts). */
  readonly areSimulated?: boolean;
  /** Settings of agents that differ from the defaults. */
  readonly agentSettings?: Readonly<Record<string, string>>;
  /** Settings of actors that differ from the defaults. */
  readonly actorsSettings?: Readonly<Record<string, string>>;
}

export interface FleetWorld {
  readonly api: Api;
  readonly nats: Nats;
  readonly gatewayPorts: readonly number[];
  /** The files into which actors processes write the size of their heap (settle-preload.ts). */
  readonly memoryFiles: readonly string[];
  /** Tokens of the tenants, by their number. */
  readonly tokens: readonly string[];
  readonly operator: string;
  /** Processes by role. `restartActors` replaces those of the actors. */
  processes(): Readonly<Record<Role, readonly Server[]>>;
  engineCounts(): Promise<EngineCounts>;
  agentsUse(): Promise<AgentsUse>;
  /**
   * Kills all actors processes and starts them again. Resolves when all are ready, to the
   * milliseconds that their start took.
   */
  restartActors(): Promise<number>;
  stop(): Promise<void>;
}

export const roles = ['actors', 'gateway', 'nats-server', 'agents'] as const;
export type Role = (typeof roles)[number];

/** To enrol a host takes the control plane some milliseconds, and hosts enrol beside each other. */
const agentsReadyMs = (hosts: number): number => 120_000 + 200 * hosts;
const askDeadlineMs = 30_000;
const setUpAtATime = 16;
const tokenLifetimeS = 24 * 3600;
/** Folder for the agents' files, in memory: a thousand hosts cannot share this machine's disk. */
const memoryFolder = '/dev/shm';

/** Calls `work` for each item, `setUpAtATime` at a time. */
export async function each<T>(items: readonly T[], work: (item: T, number: number) => Promise<void>): Promise<void> {
  const waiting = items.map((item, number) => ({ item, number }));
  await Promise.all(
    Array.from({ length: setUpAtATime }, async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await work(next.item, next.number);
    }),
  );
}

export async function startFleetWorld(bench: Bench, size: FleetSize): Promise<FleetWorld> {
  const parts: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (const part of parts.splice(0).toReversed()) await part();
  };
  try {
    return await startParts(bench, size, parts, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startParts(
  bench: Bench,
  size: FleetSize,
  parts: (() => Promise<unknown>)[],
  stop: () => Promise<void>,
): Promise<FleetWorld> {
  const { env, signal } = bench;
  const folder = mkdtempSync(join(bench.folder, 'w'));
  const owned = <T extends { stop(): Promise<unknown> }>(part: T): T => {
    parts.push(() => part.stop());
    signal.throwIfAborted();
    return part;
  };
  const nats = owned(await startNats({ tool: await bench.tool('nats-server'), dir: join(folder, 'nats') }));
  const redis = owned(await startRedis({ tool: await bench.tool('redis-server'), folder: join(folder, 'redis') }));
  const issuer = await prepareTokenIssuer(join(folder, 'tokens'));
  const memoryFile = (number: number): string => join(folder, `heap-${number}`);
  const logFile = (name: string): string => join(folder, 'logs', `${name}.log`);
  const shared = { NATS_URLS: nats.url, LOG_LEVEL: 'warn' };
  const readyUrl = (port: number): string => `http://127.0.0.1:${port}/readyz`;
  const running: Record<Role, Server[]> = { actors: [], gateway: [], 'nats-server': [nats.server()], agents: [] };

  const actorsProgram = async (number: number): Promise<Program> => {
    const port = await freePort();
    return {
      name: 'actors',
      settings: {
        ...shared,
        NATS_CREDS_FILE: nats.actorsCredsFile,
        NODE_OPTIONS: `${env['NODE_OPTIONS'] ?? ''} --import ${settlePreload}`,
        FLEET_MEMORY_FILE: memoryFile(number),
        HOSTS_ACCOUNT: nats.hostsAccount,
        HOSTS_SIGNING_SEED_FILE: nats.hostsSigningSeedFile,
        METRICS_PORT: String(port),
        ...size.actorsSettings,
      },
      readyUrl: readyUrl(port),
      logFile: logFile(`actors-${number}`),
    };
  };
  const actors = await Promise.all(Array.from({ length: size.actors }, (_, number) => actorsProgram(number)));
  parts.push(() => Promise.all(running.actors.map((server) => server.stop())));
  // One after another, because the first process creates the cluster.
  for (const program of actors) running.actors.push(await startProgram(program, env));

  const gatewayPorts: number[] = [];
  for (let number = 0; number < size.gateways; number++) {
    const [port, metricsPort] = [await freePort(), await freePort()];
    gatewayPorts.push(port);
    const settings = {
      ...shared,
      NATS_CREDS_FILE: nats.gatewayCredsFile,
      HTTP_PORT: String(port),
      ...redis.settings,
      AUTH_ISSUER: devIssuer,
      AUTH_AUDIENCE: devAudience,
      AUTH_JWKS_FILE: issuer.jwksFile,
      RATE_LIMIT_TENANT_PER_SECOND: '1000000',
      RATE_LIMIT_TENANT_BURST: '1000000',
      METRICS_PORT: String(metricsPort),
    };
    const program: Program = {
      name: 'gateway',
      settings,
      readyUrl: readyUrl(port),
      logFile: logFile(`gateway-${number}`),
    };
    running.gateway.push(owned(await startProgram(program, env)));
  }
  const baseUrl = `http://127.0.0.1:${gatewayPorts[0]}`;
  const api = createApi(baseUrl);
  const operator = await issuer.mint({
    tenant: 'ops',
    subject: 'ops',
    scope: 'operator',
    lifetimeS: tokenLifetimeS,
  });
  const tokens = await prepareTenants(baseUrl, operator, size.tenants, issuer);
  const joinTokens: string[] = Array.from({ length: size.hosts }, () => '');
  await each(joinTokens, async (_, number) => {
    signal.throwIfAborted();
    joinTokens[number] = await api.joinToken(operator, { key: `h${number}`, region: 'default' });
  });

  const agentsFolder = mkdtempSync(join(existsSync(memoryFolder) ? memoryFolder : folder, 'lb-agents-'));
  parts.push(() => Promise.resolve(rmSync(agentsFolder, { recursive: true, force: true })));
  const agentPorts: number[] = [];
  for (let number = 0; number < size.agentProcesses; number++) {
    const port = await freePort();
    agentPorts.push(port);
    const task: AgentsTask = {
      port,
      gatewayUrl: baseUrl,
      folder: join(agentsFolder, String(number)),
      settings: size.agentSettings ?? {},
      areSimulated: size.areSimulated ?? false,
      joinTokens: joinTokens.filter((_, host) => host % size.agentProcesses === number),
    };
    running.agents.push(owned(await startAgents(task, number, logFile(`agents-${number}`))));
  }

  return {
    api,
    nats,
    gatewayPorts,
    memoryFiles: actors.map((_, number) => memoryFile(number)),
    tokens,
    operator,
    processes: () => running,
    engineCounts: async () => {
      const all = await Promise.all(agentPorts.map(async (port) => ask<EngineCounts>(port, 'counts')));
      return all.reduce((one, other) => sumOf(one, other));
    },
    agentsUse: async () => {
      const all = await Promise.all(agentPorts.map(async (port) => ask<AgentsUse>(port, 'use')));
      return all.reduce((one, other) => ({
        cpuSeconds: one.cpuSeconds + other.cpuSeconds,
        engineSeconds: one.engineSeconds + other.engineSeconds,
      }));
    },
    restartActors: async () => {
      await Promise.all(running.actors.map((server) => server.kill9()));
      const startMs = performance.now();
      running.actors = await Promise.all(actors.map((program) => startProgram(program, env)));
      return performance.now() - startMs;
    },
    stop,
  };
}

const settlePreload = pathToFileURL(join(import.meta.dirname, 'settle-preload.js')).href;

type Issuer = Awaited<ReturnType<typeof prepareTokenIssuer>>;

/** Creates tenants without caps, and resolves to their tokens. */
async function prepareTenants(baseUrl: string, operator: string, count: number, issuer: Issuer): Promise<string[]> {
  const tokens: string[] = Array.from({ length: count }, () => '');
  await each(tokens, async (_, number) => {
    const tenant = `tenant-${number}`;
    tokens[number] = await issuer.mint({ tenant, subject: 'user', lifetimeS: tokenLifetimeS });
    const answer = await fetch(`${baseUrl}/api/v2/operator/tenants/${tenant}`, {
      method: 'PUT',
      signal: AbortSignal.timeout(askDeadlineMs),
      headers: { authorization: `Bearer ${operator}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        regions: ['default'],
        caps: { containers: null, cpu_millis: null, mem_bytes: null, deletes_per_hour: null },
      }),
    });
    if (!answer.ok) throw new Error(`caps of ${tenant}: ${answer.status} ${await answer.text()}`);
  });
  return tokens;
}

function startAgents(task: AgentsTask, number: number, logFile: string): Promise<Server> {
  mkdirSync(task.folder, { recursive: true });
  const taskFile = join(task.folder, 'task.json');
  writeFileSync(taskFile, JSON.stringify(task), { mode: 0o600 });
  return startServer({
    name: `agents ${number}`,
    command: process.execPath,
    args: ['--enable-source-maps', join(import.meta.dirname, 'agents.js'), taskFile],
    env: process.env,
    cwd: task.folder,
    logFile,
    ready: async (signal) => (await fetch(`http://127.0.0.1:${task.port}/readyz`, { signal })).ok,
    readyDeadlineMs: agentsReadyMs(task.joinTokens.length),
    stopGraceMs: 1_000,
  });
}

async function ask<T>(port: number, what: 'counts' | 'use'): Promise<T> {
  const answer = await fetch(`http://127.0.0.1:${port}/${what}`, { signal: AbortSignal.timeout(askDeadlineMs) });
  return (await answer.json()) as T;
}

const sumOf = (one: EngineCounts, other: EngineCounts): EngineCounts => ({
  running: one.running + other.running,
  created: one.created + other.created,
  started: one.started + other.started,
  stopped: one.stopped + other.stopped,
  removed: one.removed + other.removed,
});
