/**
 * Time from declare to running and from stop to stopped: the engine alone, Longshore on top of it,
 * and Docker Swarm in it.
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
/** Size of the layer that a pull fetches and unpacks; its bytes do not compress. */
const layerBytes = 4 * 1024 ** 2;

/** Process 1 ignores SIGTERM by default; the trap makes it exit at once. */
const command = ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done'];

interface Times {
  readonly runningMs: number[];
  /** Time until the process started, from the engine's `StartedAt`. */
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

/** Rotates and reverses the order, so that each peer is measured in every position. */
function inTurn(peers: readonly Peer[], round: number): Peer[] {
  const first = (round >> 1) % peers.length;
  const order = [...peers.slice(first), ...peers.slice(0, first)];
  return round % 2 === 0 ? order : order.reverse();
}

/** Measures all rounds and discards the first as warm-up. */
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

const columns = ['p50 ms', 'p99 ms', 'vs engine alone'] as const;

const cellsOf = (timesMs: readonly number[], baseMs: readonly number[]): string[] => [
  figure(median(timesMs)),
  figure(quantile([...timesMs], 0.99)),
  ratio(median(timesMs), median(baseMs)),
];

function runningTable(title: string, measured: Measured, remarks: readonly string[]): Table {
  const [base] = [...measured.values()] as [Times];
  return {
    title,
    columns: ['', ...columns, 'process started, p50 ms'],
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
      'The time ends for the engine when it has answered `stop` and an inspect, for Longshore when `wait?status=stopped` has answered, and for Swarm when an inspect shows that the container of the service, scaled to 0, is down. The process exits at once on SIGTERM.',
      'Swarm waits two seconds before it stops a container, so that its service discovery learns of it.',
    ],
  };
}

async function measureStack(stack: Stack, owner: Owner, n: number, signal: AbortSignal): Promise<Table[]> {
  const engine = dockerEngine(stack.engine.host);
  const inSwarm = await swarm(engine);
  try {
    const ours = longshore(stack, engine);
    const image = await pushImage(stack, 'bench/present', 0);
    // Makes the agent create its network, on which the engine alone is measured, too.
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
    const setting = `Docker ${stack.engine.version}, ${storage}; ${n} rounds in changing order; all use the same image, limits, log driver and kind of network.`;
    return [
      runningTable('Declare → running, image present', present, [
        setting,
        'The time ends for the engine when it has answered `create`, `start` and an inspect, for Longshore when `GET /:id/wait` has answered, and for Swarm when its task is seen running (polled every 5 ms; the image is named by digest, so that Swarm asks no registry).',
      ]),
      stoppedTable(present),
      runningTable(
        `Declare → running, with a pull of ${layerBytes / 1024 ** 2} MiB from a registry on loopback`,
        pulled,
        ['The image is removed before each start.'],
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
