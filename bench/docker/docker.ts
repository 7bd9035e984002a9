/**
 * Time from declare to running, from stop to stopped and from a crash to running again: the engine
 * alone, Longshore on top of it, and Docker Swarm in it. And what many containers cost one host.
 */
import { join } from 'node:path';
import { cacheFolder } from '../../dev/paths.ts';
import { startStack, type Stack } from '../../dev/stack/stack.ts';
import { durationText } from '../../lib/time/duration.ts';
import { limits } from '../../schemas/limits.ts';
import type { Bench, Section, Table } from '../section.ts';
import { figure, median, quantile, ratio } from '../statistics.ts';
import { crowdTable } from './crowd.ts';
import { engineAlone, ownerOf, referenceOf } from './engine-alone.ts';
import { pushImage } from './image.ts';
import { longshore } from './longshore.ts';
import { dockerEngine, type BenchImage, type DockerEngine, type Peer } from './peer.ts';
import { swarm } from './swarm.ts';
import { updateTable } from './update.ts';
import type { Owner } from '../../host-agent/docker/ownership.ts';

const rounds = { full: 20, short: 3 } as const;
/** Size of the layer that a pull fetches and unpacks; its bytes do not compress. */
const layerBytes = 4 * 1024 ** 2;

interface Times {
  readonly runningMs: number[];
  /** Time until the process started, from the engine's `StartedAt`. */
  readonly startedMs: number[];
  readonly stoppedMs: number[];
  /** From the end of the process until the peer knew that it runs again. */
  readonly restartedMs: number[];
  /** From the end of the process until the next one started, by the engine's times. */
  readonly startedAgainMs: number[];
}

type Measured = ReadonlyMap<Peer, Times>;

const wallMs = (): number => performance.timeOrigin + performance.now();

async function measureOne({ engine, image, then }: Plan, peer: Peer, times: Times): Promise<void> {
  const startMs = wallMs();
  const run = await peer.run(image);
  times.runningMs.push(wallMs() - startMs);
  const dockerId = await run.dockerId();
  const started = await engine.inspect(dockerId);
  times.startedMs.push(Date.parse(started?.State.StartedAt ?? '') - startMs);
  await peer.settle?.();
  if (then === 'stop') {
    const stopMs = wallMs();
    await run.stop();
    times.stoppedMs.push(wallMs() - stopMs);
  }
  if (then === 'crash') {
    await run.crash?.();
    const endMs = wallMs();
    const again = await engine.inspect(dockerId);
    const downMs = Date.parse(again?.State.FinishedAt ?? '');
    times.restartedMs.push(endMs - downMs);
    times.startedAgainMs.push(Date.parse(again?.State.StartedAt ?? '') - downMs);
  }
  await run.remove();
  await peer.settle?.();
}

interface Plan {
  readonly engine: DockerEngine;
  readonly peers: readonly Peer[];
  readonly image: BenchImage;
  readonly isPulling?: boolean;
  /** The end of the container, once it runs. */
  readonly then?: 'stop' | 'crash';
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
  const { engine, peers, image, isPulling = false, rounds, signal } = plan;
  const newTimes = (): Times => ({
    ...{ runningMs: [], startedMs: [], stoppedMs: [] },
    ...{ restartedMs: [], startedAgainMs: [] },
  });
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

function restartedTable(measured: Measured): Table {
  const [base] = [...measured.values()] as [Times];
  return {
    title: 'Crash → running again',
    columns: ['', ...columns, 'process started, p50 ms'],
    rows: [...measured].map(([{ name }, { restartedMs, startedAgainMs }]) => [
      name,
      ...cellsOf(restartedMs, base.restartedMs),
      figure(median(startedAgainMs)),
    ]),
    remarks: [
      'The process is killed; the time begins when it has ended (`FinishedAt`). For the engine alone, a supervisor hears the event `die` and calls `start` and an inspect; for Longshore, the tenant reads the status `running` with a restart (polled every 5 ms).',
      `Longshore without its first pause before a restart: RESTART_BACKOFF_MIN=${agentSettings.RESTART_BACKOFF_MIN} (by default ${durationText(limits.restartBackoffMinMs)}).`,
    ],
  };
}

/** The least pause: the time that is measured is the agent's and the engine's. */
const agentSettings = { RESTART_BACKOFF_MIN: '1ms' } as const;
const ownPort = 8080;
const firstNewPort = 10_000;

async function measureStack(stack: Stack, owner: Owner, n: number, signal: AbortSignal): Promise<Table[]> {
  const engine = dockerEngine(stack.engine.host);
  const inSwarm = await swarm(engine);
  let newPort = firstNewPort;
  try {
    const ours = longshore(stack, engine);
    const image = await pushImage(stack, 'bench/present', 0);
    // Makes the agent create its network, on which the engine alone is measured, too.
    await (await ours.run(image)).remove();
    const plan = { engine, image, signal, rounds: n };
    const alone = engineAlone(engine, owner);
    const present = await measure({ ...plan, then: 'stop', peers: [alone, ours, inSwarm] });
    const published = await measure({
      ...plan,
      peers: [
        engineAlone(engine, owner, { ports: [ownPort] }),
        longshore(stack, engine, { ports: () => [ownPort] }),
        longshore(stack, engine, { name: 'Longshore, a port that is new on this host', ports: () => [newPort++] }),
      ],
    });
    const crashed = await measure({ ...plan, then: 'crash', peers: [alone, ours] });
    const updated = await updateTable({ stack, engine, owner, inSwarm, rounds: n, signal });
    const pulled = await measure({
      ...{ engine, signal, rounds: n, isPulling: true },
      peers: [engineAlone(engine, owner, { isPulling: true }), ours, inSwarm],
      image: await pushImage(stack, 'bench/pulled', layerBytes),
    });
    const { Driver: storage } = await engine.get<{ Driver: string }>('/info');
    const setting = `Docker ${stack.engine.version}, ${storage}; ${n} rounds in changing order; all use the same image, limits, log driver and kind of network. Longshore has LONGSHORE_SANDBOX_POOL=${limits.sandboxPool} ready sandboxes; each measurement waits until the last ones are replaced.`;
    return [
      runningTable('Declare → running, image present', present, [
        setting,
        'The time ends for the engine when it has answered `create`, `start` and an inspect, for Longshore when `GET /:id/wait` has answered, and for Swarm when its task is seen running (polled every 5 ms; the image is named by digest, so that Swarm asks no registry).',
      ]),
      runningTable('Declare → running, with a published port', published, [
        'Ready sandboxes have the ports that containers of this host asked for last. The first container with another port waits for a sandbox with that port.',
      ]),
      stoppedTable(present),
      restartedTable(crashed),
      updated,
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

async function measureTimes({ env, folder, signal, isShort }: Bench): Promise<Table[]> {
  const stateFolder = join(folder, 'times');
  const stack = await startStack({ env, stateFolder, cacheFolder: cacheFolder(env), signal, agentSettings });
  try {
    return await measureStack(stack, ownerOf(stateFolder), isShort ? rounds.short : rounds.full, signal);
  } finally {
    await stack.stop();
  }
}

export const docker: Section = {
  name: 'docker',
  run: async (bench) => ({ tables: [...(await measureTimes(bench)), ...(await crowdTable(bench))] }),
};
