/**
 * Servers whose store goes back in time: a copy of their folders, as of one moment, takes their
 * place. One of three loses nothing, because the others have it. All three lose what was stored
 * since; owners have it in memory, notice it, and store all of it again (ADR 48).
 */
import { readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { NatsNode } from '../../../dev/servers/nats-cluster.ts';
import { run } from '../../../dev/process/run.ts';
import { readLast } from '../../../lib/nats/kv-keys.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { bucketPrefix, buckets, bucketStream, keys } from '../../../schemas/records/buckets.ts';
import { limits } from '../../../schemas/limits.ts';
import { until } from '../../support/until.ts';
import { askMs, untilReplicated } from '../world/streams.ts';
import type { NatsPlaceName } from '../world/wire.ts';
import type { World } from '../world/world.ts';
import { loadFrom } from './disk.ts';
import { between, type FaultKind } from './fault.ts';
import { targetOf } from './streams.ts';

const servers = ['n1', 'n2', 'n3'] as const satisfies readonly NatsPlaceName[];
const copyMs = 10_000;
/** Until a signal to stop has stopped a server. */
const stoppedMs = 20;

const copyOf = ({ storeDir }: NatsNode): string => `${storeDir}.earlier`;

/** The folders of these servers as they are at one moment. */
async function takeCopies(nodes: readonly NatsNode[]): Promise<void> {
  for (const node of nodes) rmSync(copyOf(node), { recursive: true, force: true });
  for (const node of nodes) node.pause();
  try {
    await sleep(stoppedMs);
    const copies = nodes.map((node) => run('cp', ['-a', node.storeDir, copyOf(node)], { deadlineMs: copyMs }));
    for (const { code, stderr } of await Promise.all(copies)) if (code !== 0) throw new Error(stderr);
  } finally {
    for (const node of nodes) node.resume();
  }
}

/** While the server is down. */
function putBack(node: NatsNode): void {
  rmSync(node.storeDir, { recursive: true });
  renameSync(copyOf(node), node.storeDir);
}

const oneBack: FaultKind = {
  name: 'NATS server went back',
  needsWire: false,
  plan: (random) => {
    const server = random.pick(servers);
    const target = targetOf(random);
    const apartMs = between(random, 3_000, 8_000);
    const holdMs = between(random, 500, 2_000);
    const isCrash = random.once(2);
    const isLed = random.once(2);
    const then = isLed ? `; it becomes the leader of ${target.text}, and all actors are killed` : '';
    return {
      text: `${server} is ${isCrash ? 'killed' : 'stopped'}, and started after ${holdMs} ms with its store of ${apartMs} ms before${then}`,
      holdMs,
      inject: async (world) => {
        const { nats, nc } = world;
        const node = nats.nodes.find(({ name }) => name === server)!;
        const stream = await target.find(world);
        await takeCopies([node]);
        await sleep(apartMs);
        await (isCrash ? node.kill9() : node.stop());
        return {
          note: stream,
          heal: async () => {
            // What it had acknowledged with one other must be with both: two of three have it then.
            const others = servers.filter((each) => each !== server);
            await untilReplicated(nc, others);
            putBack(node);
            await node.start();
            await untilReplicated(nc, servers);
            if (isLed) await loadFrom(world, stream, server);
          },
        };
      },
    };
  },
};

/** The facts that must be the same at the copy and at its return: members, and their takeovers. */
async function ownersOf({ nc, members }: World): Promise<string> {
  const revisionOf = async (bucket: string, key: string): Promise<number> =>
    (await readLast(nc, bucketStream(bucket), bucketPrefix(bucket) + key, askMs)).revision;
  const epochs = Array.from({ length: limits.partitions }, async (_, partition) =>
    revisionOf(buckets.state.bucket(partition), keys.epoch),
  );
  const journals = (await members()).map(async ({ id, journal, partitions }) => {
    return [id, await revisionOf(journal, `${id}.${keys.epoch}`), partitions.toSorted((one, other) => one - other)];
  });
  return JSON.stringify([await Promise.all(epochs), (await Promise.all(journals)).toSorted()]);
}

const actorsOf = ({ processes }: World) => (['a1', 'a2'] as const).filter((place) => processes.has(place));

/**
 * `true` if no event and no line waits for a stream that was away: it would come late, and so be
 * lost with the store.
 */
async function isTold(world: World): Promise<boolean> {
  const all = await Promise.all(actorsOf(world).map((place) => world.metricsOf(place)));
  const parked = all.flatMap((text) => [...text.matchAll(/^longshore_actors_events_parked\b\S* (\S+)$/gm)]);
  return parked.length > 0 && parked.every(([, value]) => Number(value) === 0);
}

/** The log of the actors processes from now on. */
function listenTo(world: World) {
  const { folder } = world;
  const logs = actorsOf(world)
    .map((place) => ({ place, file: join(folder, 'logs', `${place}.log`) }))
    .map((log) => ({ ...log, from: statSync(log.file).size }));
  return logs.map(({ place, file, from }) => ({
    place,
    said: (event: string): string[] => {
      const lines = readFileSync(file).subarray(from).toString().split('\n');
      return lines.filter((line) => line.includes(`"event":"${event}"`));
    },
  }));
}

/** Each process notices it once, and every partition is stored again. */
async function noticedBy(logs: ReturnType<typeof listenTo>): Promise<string[]> {
  const faults = (): string[] => {
    const stored = new Set(
      logs.flatMap(({ said }) =>
        said('partition_stored_again').map((line) => (JSON.parse(line) as { partition: number }).partition),
      ),
    );
    return [
      ...logs
        .map(({ place, said }) => ({ place, times: said('store_went_back').length }))
        .filter(({ times }) => times !== 1)
        .map(({ place, times }) => `${place} noticed ${times} times that the store went back`),
      ...(stored.size === limits.partitions
        ? []
        : [`${stored.size} of ${limits.partitions} partitions were stored again`]),
    ];
  };
  await until('the store is whole again', faults, (left) => left.length === 0).catch(() => undefined);
  return faults();
}

/**
 * Writes that were answered up to this long before a copy may be in no stream at that time: a
 * checkpoint brings events and lines, and an agent reads logs a little later than they are written.
 */
const untoldMs = 10_000;

const allBack: FaultKind = {
  name: 'all NATS servers went back',
  needsWire: false,
  promise: 'owners store all again when the store went back',
  plan: (random) => {
    const apartMs = between(random, 3_000, 6_000);
    const holdMs = between(random, 300, 1_500);
    return {
      text: `all servers are killed, and started after ${holdMs} ms with their stores of ${apartMs} ms before`,
      holdMs,
      inject: async (world) => {
        const { nodes } = world.nats;
        // Where an owner took a partition after the copy, what is stored since is lost (ADR 48).
        const copiedMs = await until('owners that stay', async () => {
          if (!(await isTold(world))) return undefined;
          const before = await ownersOf(world);
          const takenMs = performance.now();
          await takeCopies(nodes);
          await sleep(apartMs);
          return before === (await ownersOf(world)) && takenMs;
        });
        const logs = listenTo(world);
        await Promise.all(nodes.map((node) => node.kill9()));
        const killedMs = performance.now();
        for (const node of nodes) putBack(node);
        return {
          forgets: { fromMs: copiedMs - untoldMs, toMs: killedMs },
          heal: async () => {
            await Promise.all(nodes.map((node) => node.start()));
            return noticedBy(logs);
          },
        };
      },
    };
  },
};

export const wentBackFaults: readonly FaultKind[] = [oneBack, allBack];
