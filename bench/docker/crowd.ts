/**
 * The cost of containers to one host that has many: CPU of the engine and of the agent for each
 * further start, their idle CPU, and the memory that the engine keeps for each; with sandboxes and
 * without.
 */
import { join } from 'node:path';
import { cacheFolder } from '../../dev/paths.ts';
import { say } from '../../dev/steps.ts';
import { startStack, type Stack } from '../../dev/stack/stack.ts';
import { sleep } from '../../lib/time/backoff.ts';
import type { Bench, Table } from '../section.ts';
import { figure } from '../statistics.ts';
import { childRunning, useOf } from '../usage.ts';
import { engineProcesses, engineUse, type EngineUse } from './engine-use.ts';
import { pushImage } from './image.ts';
import { sandboxesSettled } from './longshore.ts';
import { dockerEngine, load, type BenchImage, type DockerEngine } from './peer.ts';

const plans = {
  short: { sizes: [0, 10], withoutSandboxes: [0, 10], further: 3, idleMs: 2_000 },
  full: { sizes: [0, 10, 100, 1_000], withoutSandboxes: [0, 10, 100], further: 20, idleMs: 20_000 },
} as const;
type Plan = (typeof plans)[keyof typeof plans];

/** A size that is not reached by then is left out. */
const fillDeadlineMs = 600_000;
/** So many are being declared at a time while a host fills. */
const fillers = 4;
/** Agents write and report what they did last. */
const settleMs = 2_000;
const waitSeconds = 60;
const body = { cpu_limit: String(load.cpuMillis / 1000), mem_limit: `${load.memBytes / 1024 ** 2}m` };
/** More than the sizes: nothing is refused. */
const agentSettings = {
  CAPACITY_CONTAINERS: '1023',
  CAPACITY_CPU_MILLIS: '1000000',
  CAPACITY_MEM_BYTES: String(2 ** 40),
};

interface Row {
  readonly containers: number;
  readonly engineMs: number;
  readonly agentMs: number;
  readonly engineIdle: number;
  readonly agentIdle: number;
  readonly memBytes: number;
}

/** A stack with containers that are declared through its API. */
class Crowd {
  readonly engine: DockerEngine;
  readonly #stack: Stack;
  readonly #image: BenchImage;
  readonly #runFolder: string;
  readonly #signal: AbortSignal;
  #count = 0;

  constructor(stack: Stack, image: BenchImage, runFolder: string, signal: AbortSignal) {
    this.#stack = stack;
    this.#image = image;
    this.#runFolder = runFolder;
    this.#signal = signal;
    this.engine = dockerEngine(stack.engine.host);
  }

  async #call(token: string, method: string, path: string, json?: object): Promise<void> {
    const answer = await fetch(`${this.#stack.api.baseUrl}/api/v2/${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      },
      signal: AbortSignal.timeout(2 * waitSeconds * 1000),
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    await answer.arrayBuffer();
  }

  #ask(method: string, path: string): Promise<void> {
    return this.#call(this.#stack.tokens.tenants.other.token, method, `compute/${path}`);
  }

  /** The tenant may have as many containers as the host takes. */
  async uncap(): Promise<void> {
    const caps = { containers: null, cpu_millis: null, mem_bytes: null, deletes_per_hour: null };
    await this.#call(this.#stack.tokens.operator.token, 'PUT', 'operator/tenants/other', { caps });
  }

  /** Declares a container and waits until it runs. @returns its id */
  async add(): Promise<string> {
    this.#signal.throwIfAborted();
    const { api, tokens } = this.#stack;
    const { registry, repository, tag } = this.#image;
    const name = `crowd-${(this.#count += 1)}`;
    const { id } = await api.create(tokens.tenants.other.token, { ...body, registry, repository, tag, name });
    await this.#ask('GET', `${id}/wait?status=running&timeout=${waitSeconds}`);
    return id;
  }

  /** @returns false: they do not all run at the deadline */
  async fill(containers: number): Promise<boolean> {
    const endMs = performance.now() + fillDeadlineMs;
    let missing = containers;
    const filler = async (): Promise<void> => {
      while (missing > 0 && performance.now() < endMs) {
        missing -= 1;
        await this.add();
      }
    };
    await Promise.all(Array.from({ length: fillers }, filler));
    return missing === 0;
  }

  async remove(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      await this.#ask('DELETE', id);
      await this.#ask('GET', `${id}/wait?status=removed&timeout=${waitSeconds}`);
    }
  }

  async settled(): Promise<void> {
    await sandboxesSettled(this.#stack, this.engine);
    await sleep(settleMs, this.#signal);
    this.#signal.throwIfAborted();
  }

  use(): { readonly engine: EngineUse; readonly agentSeconds: number } {
    const agent = useOf(childRunning('programs/host-agent.js'));
    return { engine: engineUse(engineProcesses(this.#runFolder)), agentSeconds: agent.cpuSeconds };
  }
}

async function measureSizes(crowd: Crowd, sizes: readonly number[], plan: Plan, signal: AbortSignal): Promise<Row[]> {
  const rows: Row[] = [];
  let present = 0;
  let emptyBytes = 0;
  for (const size of sizes) {
    if (!(await crowd.fill(size - present))) {
      say(`· ${size} containers: not within ${fillDeadlineMs / 1000} s`);
      return rows;
    }
    present = size;
    await crowd.settled();
    const idle = crowd.use();
    const idleStartMs = performance.now();
    await sleep(plan.idleMs, signal);
    const before = crowd.use();
    const idleSeconds = (performance.now() - idleStartMs) / 1000;
    const further: string[] = [];
    for (let count = 0; count < plan.further; count++) further.push(await crowd.add());
    await crowd.settled();
    const after = crowd.use();
    await crowd.remove(further);
    await crowd.settled();
    if (size === 0) emptyBytes = before.engine.memBytes;
    rows.push({
      containers: size,
      engineMs: ((after.engine.cpuSeconds - before.engine.cpuSeconds) * 1000) / plan.further,
      agentMs: ((after.agentSeconds - before.agentSeconds) * 1000) / plan.further,
      engineIdle: (before.engine.cpuSeconds - idle.engine.cpuSeconds) / idleSeconds,
      agentIdle: (before.agentSeconds - idle.agentSeconds) / idleSeconds,
      memBytes: (before.engine.memBytes - emptyBytes) / size,
    });
    say(`· ${size} containers measured`);
  }
  return rows;
}

async function measureHost(bench: Bench, sandbox: 'on' | 'off', sizes: readonly number[], plan: Plan): Promise<Row[]> {
  const { env, folder, signal } = bench;
  const stack = await startStack({
    ...{ env, signal, stateFolder: join(folder, `crowd-${sandbox}`), cacheFolder: cacheFolder(env) },
    agentSettings: { ...agentSettings, LONGSHORE_SANDBOX: sandbox },
  });
  try {
    const { engine } = stack;
    if (engine.origin !== 'private') return [];
    const crowd = new Crowd(stack, await pushImage(stack, 'bench/crowd', 0), engine.runFolder, signal);
    await crowd.uncap();
    // The image is pulled, and the agent and the engine are warm.
    await crowd.remove([await crowd.add(), await crowd.add()]);
    return await measureSizes(crowd, sizes, plan, signal);
  } finally {
    await stack.stop();
  }
}

const KiB = 1024;

/** None where the engine is not the benchmark's own: its processes serve others too. */
export async function crowdTable(bench: Bench): Promise<Table[]> {
  const plan = bench.isShort ? plans.short : plans.full;
  const withSandboxes = await measureHost(bench, 'on', plan.sizes, plan);
  if (withSandboxes.length === 0) return [];
  const without = await measureHost(bench, 'off', plan.withoutSandboxes, plan);
  const cells = (name: string, row: Row): string[] => [
    `${row.containers} ${name}`.trim(),
    figure(row.engineMs),
    figure(row.agentMs),
    figure(row.engineIdle),
    figure(row.agentIdle),
    row.containers === 0 ? '–' : figure(row.memBytes / KiB),
  ];
  return [
    {
      title: 'Containers on one host',
      columns: [
        'idle containers',
        'engine CPU ms/start',
        'agent CPU ms/start',
        'engine, idle cores',
        'agent, idle cores',
        'engine KiB/container',
      ],
      rows: [
        ...withSandboxes.map((row) => cells('', row)),
        ...without.map((row) => cells('with LONGSHORE_SANDBOX=off', row)),
      ],
      remarks: [
        `Engine: dockerd, containerd, the shim of each container and what they start (runc, iptables), with the sandbox that replaces the one taken from the pool. Each start is declared when the last one runs; ${plan.further} of them. Idle: ${plan.idleMs / 1000} s.`,
        'Memory: proportional set size of the same processes and of the sandboxes, without the containers’ own processes and without kernel memory, less that of the empty host, for each container.',
      ],
    },
  ];
}
