/**
 * Declare → running and stop → stopped: the engine alone, Longshore above it, Docker Swarm in it.
 */
import { randomBytes } from 'node:crypto';
import { cacheFolder } from '../../dev/paths.ts';
import { pushTestImage } from '../../dev/servers/registry.ts';
import { startStack, type Stack } from '../../dev/stack/stack.ts';
import type { Section, Table } from '../section.ts';
import { figure, median, quantile, ratio } from '../statistics.ts';
import { engineAlone, ownerOf, referenceOf } from './engine-alone.ts';
import { longshore } from './longshore.ts';
import { dockerEngine, type BenchImage, type DockerEngine, type Peer } from './peer.ts';
import { swarm } from './swarm.ts';
import type { Owner } from '../../host-agent/docker/ownership.ts';

const rounds = { full: 20, short: 3 } as const;
/** What a pull fetches and unpacks: bytes that do not compress. */
const layerBytes = 4 * 1024 ** 2;

/** Process 1 has no default action for SIGTERM; with the trap it ends at once. */
const command = ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done'];

interface Times {
  readonly runningMs: number[];
  /** By the engine's own word, on the same clock. */
  readonly startedMs: number[];
  readonly stoppedMs: number[];
}

type Measured = ReadonlyMap<Peer, Times>;

async function pushImage(stack: Stack, repository: string, bytes: number): Promise<BenchImage> {
  const { registry } = stack.image;
  const files = [{ kind: 'file', path: 'ballast', content: randomBytes(bytes) }] as const;
  const digest = await pushTestImage(registry, { repository, tag: '1', cmd: command, files });
  return { registry, repository, tag: '1', digest };
}

const wallMs = (): number => performance.timeOrigin + performance.now();

async function measureOne({ engine, image, isStopping }: Plan, peer: Peer, times: Times): Promise<void> {
  const startMs = wallMs();
  const run = await peer.run(image);
  times.runningMs.push(wallMs() - startMs);
  const inspected = await engine.inspect(await run.dockerId());
  times.startedMs.push(Date.parse(inspected?.State.StartedAt ?? '') - startMs);
  if (isStopping) {
    const stopMs = wallMs();
    await run.stop();
    times.stoppedMs.push(wallMs() - stopMs);
  }
  await run.remove();
}

interface Plan {
  readonly engine: DockerEngine;
  readonly peers: readonly Peer[];
  readonly image: BenchImage;
  readonly isPulling: boolean;
  readonly isStopping: boolean;
  readonly rounds: number;
  readonly signal: AbortSignal;
}

/** Everybody comes first, last, and after everybody else, as often as the others do. */
function inTurn(peers: readonly Peer[], round: number): Peer[] {
  const first = (round >> 1) % peers.length;
  const order = [...peers.slice(first), ...peers.slice(0, first)];
  return round % 2 === 0 ? order : order.reverse();
}

/** The first round is nobody's. */
async function measure(plan: Plan): Promise<Measured> {
  const { engine, peers, image, isPulling, rounds, signal } = plan;
  const newTimes = (): Times => ({ runningMs: [], startedMs: [], stoppedMs: [] });
  const measured = new Map(peers.map((peer) => [peer, newTimes()]));
  if (!isPulling) await engine.pull(referenceOf(image));
  for (let round = 0; round <= rounds; round++) {
    for (const peer of inTurn(peers, round)) {
      signal.throwIfAborted();
      if (isPulling) await engine.removeImage(referenceOf(image));
      await measureOne(plan, peer, round === 0 ? newTimes() : (measured.get(peer) as Times));
    }
  }
  return measured;
}

const columns = ['p50 ms', 'p99 ms', 'beside the engine'] as const;

const cellsOf = (timesMs: readonly number[], baseMs: readonly number[]): string[] => [
  figure(median(timesMs)),
  figure(quantile([...timesMs], 0.99)),
  ratio(median(timesMs), median(baseMs)),
];

function runningTable(title: string, measured: Measured, remarks: readonly string[]): Table {
  const [base] = [...measured.values()] as [Times];
  return {
    title,
    columns: ['', ...columns, 'process began, p50 ms'],
    rows: [...measured].map(([{ name }, { runningMs, startedMs }]) => [
      name,
      ...cellsOf(runningMs, base.runningMs),
      figure(median(startedMs)),
    ]),
    remarks,
  };
}

function stoppedTable(measured: Measured): Table {
  const [base] = [...measured.values()] as [Times];
  return {
    title: 'Stop → stopped',
    columns: ['', ...columns],
    rows: [...measured].map(([{ name }, { stoppedMs }]) => [name, ...cellsOf(stoppedMs, base.stoppedMs)]),
    remarks: [
      'Until the engine has answered `stop` and an inspect; `wait?status=stopped` has answered; the container of a service that was scaled to 0 is seen down. The process ends at once on SIGTERM.',
      'Swarm waits two seconds before it stops a container, for its service discovery to hear of it.',
    ],
  };
}

async function measureStack(stack: Stack, owner: Owner, n: number, signal: AbortSignal): Promise<Table[]> {
  const engine = dockerEngine(stack.engine.host);
  const inSwarm = await swarm(engine);
  try {
    const ours = longshore(stack, engine);
    const image = await pushImage(stack, 'bench/present', 0);
    // With its first container the agent makes the network that the engine alone is measured on.
    await (await ours.run(image)).remove();
    const present = await measure({
      ...{ engine, signal, rounds: n, isPulling: false, isStopping: true },
      ...{ image, peers: [engineAlone(engine, owner, false), ours, inSwarm] },
    });
    const pulled = await measure({
      ...{ engine, signal, rounds: n, isPulling: true, isStopping: false },
      peers: [engineAlone(engine, owner, true), ours, inSwarm],
      image: await pushImage(stack, 'bench/pulled', layerBytes),
    });
    const { Driver: storage } = await engine.get<{ Driver: string }>('/info');
    const setting = `Docker ${stack.engine.version}, ${storage}; ${n} rounds, in changing order; image, limits, log driver and kind of network are the same.`;
    return [
      runningTable('Declare → running, image present', present, [
        setting,
        'Until the engine has answered `create`, `start` and an inspect; `GET /:id/wait` has answered; Swarm’s task is seen running (asked every 5 ms; its image is named by digest, so that it asks no registry).',
      ]),
      stoppedTable(present),
      runningTable(
        `Declare → running, with a pull of ${layerBytes / 1024 ** 2} MiB from a registry on loopback`,
        pulled,
        ['The image is removed before each.'],
      ),
    ];
  } finally {
    await inSwarm.leave();
  }
}

export const docker: Section = {
  name: 'docker',
  run: async ({ env, folder, signal, isShort }) => {
    const stack = await startStack({ env, stateFolder: folder, cacheFolder: cacheFolder(env), signal });
    try {
      const tables = await measureStack(stack, ownerOf(folder), isShort ? rounds.short : rounds.full, signal);
      return { tables };
    } finally {
      await stack.stop();
    }
  },
};
