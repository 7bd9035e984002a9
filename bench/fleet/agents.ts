/**
 * A process with many hosts. Each host has its own enrolment, keys and NATS connection, and either
 * an agent (host-agent/agent.ts, started as main.ts starts it) on an engine in memory, or only the
 * agent's side of the control plane (simulated-host.ts). `/readyz` answers 200 when all hosts have
 * a session, `/counts` returns what the hosts did with containers, `/use` the CPU time, and
 * `/metrics` the summed metrics of all agents.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { AggregatorRegistry, Registry } from 'prom-client';
import { startAgent } from '../../host-agent/agent.ts';
import type { Transport } from '../../host-agent/docker/transport.ts';
import { enrol, keyFrom, loadSeed } from '../../host-agent/link/identity/identity.ts';
import { settings } from '../../host-agent/settings.ts';
import { systemClock } from '../../lib/time/clock.ts';
import { readSettings } from '../../lib/config.ts';
import type { Lifecycle } from '../../lib/lifecycle.ts';
import { createLog } from '../../lib/log.ts';
import { EngineModel, type EngineCounts } from '../../test/support/engine/model.ts';
import { transportTo } from '../../test/support/engine/transport.ts';
import { startSimulatedHost, type HostParts } from './simulated-host.ts';

/** The task of the process, from the file that its argument names. */
export interface AgentsTask {
  readonly port: number;
  readonly gatewayUrl: string;
  /** Folder for the state of the agents. */
  readonly folder: string;
  /** Settings of the agents, as environment variables. */
  readonly settings: Readonly<Record<string, string>>;
  readonly joinTokens: readonly string[];
  /** True if the hosts have no agent and no engine, but only report what they should run. */
  readonly areSimulated: boolean;
}

/** Limits enrolments at a time: their signatures would keep the actors from all other work. */
const enrolmentsAtATime = 4;
const enrolDeadlineMs = 120_000;
const lowPriority = 5;

const log = createLog('host-agents', 'warn');
/** Nothing is stopped one by one: the agents end with the process, and containers run on. */
const life: Lifecycle = {
  onStop: () => undefined,
  fail: (event, error) => {
    log.error(event, { error });
    process.exit(1);
  },
};

/** Hosts are other machines: the control plane goes before them. */
setPriority(lowPriority);
/** If Linux shares the cores by session (sched(7), autogroup), this counts, not the above. */
const sharePath = '/proc/self/autogroup';
if (existsSync(sharePath)) writeFileSync(sharePath, String(lowPriority));

const taskFile = process.argv[2];
if (taskFile === undefined) throw new Error('usage: agents.js TASK_FILE');
const task = JSON.parse(readFileSync(taskFile, 'utf8')) as AgentsTask;

interface Host {
  readonly counts: EngineCounts;
  /** Of its agent; `undefined` if it has none. */
  readonly registry?: Registry;
  readonly hasSession: () => Promise<boolean>;
}
const hosts: Host[] = [];

/** Time of calls to the engines; each is done before it returns. */
let callsMs = 0;

function timed({ call, open, close }: Transport): Transport {
  const time = <R>(work: () => R): R => {
    const before = performance.now();
    try {
      return work();
    } finally {
      callsMs += performance.now() - before;
    }
  };
  return { call: (asked) => time(() => call(asked)), open: (asked) => time(() => open(asked)), close };
}

async function startHost(joinToken: string, number: number): Promise<void> {
  const stateDir = join(task.folder, String(number));
  const given = readSettings(settings, {
    REGISTRIES_ALLOWED: 'docker.io',
    CONTAINER_FIREWALL: 'off',
    ...task.settings,
    STATE_DIR: stateDir,
    LONGSHORE_URL: task.gatewayUrl,
  });
  const seed = await loadSeed(stateDir);
  const identity = await enrol(
    {
      gatewayUrl: task.gatewayUrl,
      joinToken,
      publicKey: keyFrom(seed).getPublicKey(),
      backoff: { minMs: given.RETRY_MIN, maxMs: given.RETRY_MAX },
    },
    log,
    AbortSignal.timeout(enrolDeadlineMs),
  );
  const parts = { settings: given, identity, seed, clock: systemClock, log };
  hosts.push(task.areSimulated ? await startSimulatedHost(parts) : await startWholeHost(parts));
}

async function startWholeHost(parts: HostParts): Promise<Host> {
  const model = new EngineModel({ hasEveryImage: true });
  const registry = new Registry();
  await startAgent({ ...parts, registry, life, transport: timed(transportTo(model)) });
  const hasSession = async (): Promise<boolean> => {
    const { values } = (await registry.getSingleMetric('longshore_agent_session_held')?.get()) ?? { values: [] };
    return values[0]?.value === 1;
  };
  return { counts: model.counts, registry, hasSession };
}

async function sessionsHeld(): Promise<number> {
  const held = await Promise.all(hosts.map(({ hasSession }) => hasSession()));
  return held.filter((isHeld) => isHeld).length;
}

const total = (name: keyof EngineCounts): number => hosts.reduce((sum, { counts: of }) => sum + of[name], 0);

const counts = (): EngineCounts => ({
  running: total('running'),
  created: total('created'),
  started: total('started'),
  stopped: total('stopped'),
  removed: total('removed'),
});

/** CPU time of this process, and what of it the engines took. */
export interface AgentsUse {
  readonly cpuSeconds: number;
  readonly engineSeconds: number;
}

const cpuSeconds = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000_000;
};

let engineSeconds = 0;
let last = { cpuSeconds: 0, callsMs: 0, activeMs: 0 };

/**
 * The engines' part of the CPU time is their part of the time in which the event loop was active:
 * to ask for the CPU time before and after each call would take longer than the call, and its
 * duration alone has what other processes took.
 */
const use = (): AgentsUse => {
  const now = { cpuSeconds: cpuSeconds(), callsMs, activeMs: performance.eventLoopUtilization().active };
  const share = (now.callsMs - last.callsMs) / Math.max(1, now.activeMs - last.activeMs);
  engineSeconds += share * (now.cpuSeconds - last.cpuSeconds);
  last = now;
  return { cpuSeconds: now.cpuSeconds, engineSeconds };
};

const metrics = async (): Promise<string> => {
  const all = await Promise.all(hosts.flatMap(({ registry }) => registry?.getMetricsAsJSON() ?? []));
  return AggregatorRegistry.aggregate(all).metrics();
};

const answers: Readonly<Record<string, () => Promise<{ readonly status: number; readonly body: string }>>> = {
  '/readyz': async () => ({ status: (await sessionsHeld()) === task.joinTokens.length ? 200 : 503, body: '' }),
  '/counts': () => Promise.resolve({ status: 200, body: JSON.stringify(counts()) }),
  '/use': () => Promise.resolve({ status: 200, body: JSON.stringify(use()) }),
  '/metrics': async () => ({ status: 200, body: await metrics() }),
};

const server = createServer((request, response) => {
  void answers[request.url ?? '']?.().then(({ status, body }) => response.writeHead(status).end(body));
});
// Connections of pollers stay open, even when busy agents delay the answers.
server.keepAliveTimeout = 0;
server.listen(task.port, '127.0.0.1');

const waiting = task.joinTokens.map((token, number) => ({ token, number }));
await Promise.all(
  Array.from({ length: enrolmentsAtATime }, async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      await startHost(next.token, next.number);
    }
  }),
);
