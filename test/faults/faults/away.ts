/**
 * One of the streams that hold what was (events, the audit, log lines, usage) is away alone, longer
 * than a fail-over takes: it listens to nothing, or its only replica is on a server that is killed
 * or paused. Owners and agents keep what it does not take, and all tenants are served meanwhile,
 * also when another tenant of their partition asks without end.
 */
import { streams } from '../../../schemas/records/buckets.ts';
import { until } from '../../support/until.ts';
import { startRush } from '../load/rush.ts';
import { tenants } from '../load/tenants.ts';
import { allStreams, changeStream, leaderIn, managerOf, untilReplicated } from '../world/streams.ts';
import type { Controlled } from '../world/supervise.ts';
import type { NatsPlaceName } from '../world/wire.ts';
import type { World } from '../world/world.ts';
import { between, type FaultKind, type Injected } from './fault.ts';

type Stream = (typeof streams)[keyof typeof streams];

const servers = ['n1', 'n2', 'n3'] as const satisfies readonly NatsPlaceName[];
const ways = {
  deaf: 'listens to nothing',
  rushed: 'listens to nothing, and a tenant asks without end',
  killed: 'has one replica, and its server is killed',
  paused: 'has one replica, and its server is paused',
} as const;

/** As a stream without subjects, which JetStream does not allow. */
async function deafen({ nc }: World, { name, subjects }: Stream): Promise<Injected> {
  await changeStream(nc, name, { subjects: [`away.${name}.>`] });
  return { heal: async () => void (await changeStream(nc, name, { subjects: Array.from<string>(subjects) })) };
}

/** A tenant fills what waits for the stream, beside this one. */
async function rush(world: World, stream: Stream, beside: string): Promise<Injected> {
  const { heal } = await deafen(world, stream);
  const running = await startRush(world, beside);
  return {
    get note() {
      return `${running.refused()} of ${running.operations.length} found no room`;
    },
    operations: running.operations,
    heal: async () => {
      const faults = await running.stop();
      await heal();
      return faults;
    },
  };
}

/** The server that has the stream alone. */
async function aloneOn({ nc }: World, { name }: Stream): Promise<NatsPlaceName> {
  await changeStream(nc, name, { num_replicas: 1 });
  return until(`one server has ${name} alone`, async () => {
    const info = await (await managerOf(nc)).streams.info(name);
    return (info.cluster?.replicas ?? []).length === 0 ? leaderIn(info) : undefined;
  });
}

/** Other streams have their leaders elsewhere, so that the one is away alone. */
async function giveLeads(world: World, server: NatsPlaceName, except: string): Promise<void> {
  const [other] = servers.filter((each) => each !== server);
  const others = allStreams.filter((name) => name !== except);
  await until(`${server} leads nothing else`, async () => {
    const leaders = await Promise.all(others.map((name) => world.leaderOf(name)));
    const led = others.filter((_, index) => leaders[index] === server);
    await Promise.all(led.map((name) => world.giveLead(name, other!)));
    return led.length === 0;
  });
}

async function takeAway(world: World, stream: Stream, how: 'killed' | 'paused'): Promise<Injected> {
  const server = await aloneOn(world, stream);
  await giveLeads(world, server, stream.name);
  const node = world.processes.get(server) as Controlled;
  if (how === 'killed') await node.kill9();
  else node.pause();
  return {
    note: `it was ${server}`,
    heal: async () => {
      if (how === 'killed') await node.start();
      else node.resume();
      await changeStream(world.nc, stream.name, { num_replicas: servers.length });
      // Faults that follow are those of a stream that has all of its replicas.
      await untilReplicated(world.nc, servers, [stream.name]);
    },
  };
}

type How = keyof typeof ways;

const away = (chosen: readonly [Stream, ...Stream[]], hows: readonly [How, ...How[]]): FaultKind => ({
  name: `${chosen.map(({ name }) => name).join(' or ')} away`,
  needsWire: false,
  isServed: true,
  promise: 'all tenants are served while a stream is away, and one that asks without end is refused',
  plan: (random) => {
    const stream = random.pick(chosen);
    const how = random.pick(hows);
    const beside = random.pick(tenants);
    const holdMs = between(random, 7_000, 12_000);
    return {
      text: `${stream.name} ${ways[how]}, for ${holdMs} ms`,
      holdMs,
      inject: (world) => {
        if (how === 'deaf') return deafen(world, stream);
        return how === 'rushed' ? rush(world, stream, beside) : takeAway(world, stream, how);
      },
    };
  },
});

export const awayFaults: readonly FaultKind[] = [
  away([streams.events], ['deaf', 'killed', 'paused']),
  away([streams.audit], ['deaf', 'rushed', 'killed', 'paused']),
  away([streams.logs, streams.usage], ['deaf', 'killed', 'paused']),
];
