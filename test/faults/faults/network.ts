/** Cuts in one or both directions, and resets of connections. */
import { sleep } from '../../../lib/time/backoff.ts';
import { bothWays, type Place, type Way } from '../world/wire.ts';
import type { World } from '../world/world.ts';
import { between, healed, type FaultKind, type Injected, type Planned } from './fault.ts';

const servers = ['n1', 'n2', 'n3'] as const;
/** All that speak to a server; once an agent is enrolled, programs speak through servers only. */
const others = ['n1', 'n2', 'n3', 'a1', 'a2', 'g1', 'g2', 'h1'] as const satisfies readonly Place[];
const holds = { min: 4_000, max: 9_000 };

const wireOf = (world: World) => {
  if (world.wire === undefined) throw new Error('there is no wire');
  return world.wire;
};

async function cut(world: World, ways: readonly Way[]): Promise<Injected> {
  await wireOf(world).cut(ways);
  return { heal: () => wireOf(world).mend() };
}

/** Two different places, at least one of them a server. */
function pairOf(random: Parameters<FaultKind['plan']>[0], actors: readonly Place[]): readonly [Place, Place] {
  const server = random.pick(servers);
  const there = others.filter((place) => place !== server && (place !== 'a2' || actors.includes('a2')));
  return [server, there[random.below(there.length)] ?? 'a1'];
}

const partition: FaultKind = {
  name: 'partition of a pair',
  needsWire: true,
  plan: (random, actors): Planned => {
    const [one, other] = pairOf(random, actors);
    const holdMs = between(random, holds.min, holds.max);
    return {
      text: `nothing passes between ${one} and ${other} for ${holdMs} ms`,
      holdMs,
      inject: (world) => cut(world, bothWays([one], [other])),
    };
  },
};

const oneWay: FaultKind = {
  name: 'partition one way',
  needsWire: true,
  plan: (random, actors): Planned => {
    const [one, other] = pairOf(random, actors);
    const way: Way = random.once(2) ? [one, other] : [other, one];
    const holdMs = between(random, holds.min, holds.max);
    return {
      text: `nothing passes from ${way[0]} to ${way[1]} for ${holdMs} ms`,
      holdMs,
      inject: (world) => cut(world, [way]),
    };
  },
};

/**
 * Cuts a program off from all servers, in one or both directions: what it sends may arrive after
 * the others have continued without it.
 */
const cutOff = (name: string, places: readonly [Place, ...Place[]] | 'actors'): FaultKind => ({
  name,
  needsWire: true,
  plan: (random, actors): Planned => {
    const place = random.pick(places === 'actors' ? actors : places);
    const way = random.pick(['out', 'out', 'in', 'both'] as const);
    const words = {
      out: 'reaches no server, and hears them all',
      in: 'hears no server, and reaches them all',
      both: 'neither reaches nor hears a server',
    }[way];
    const ways = bothWays([place], servers).filter(([from]) => way === 'both' || (from === place) === (way === 'out'));
    const holdMs = between(random, holds.min, holds.max);
    return { text: `${place} ${words} for ${holdMs} ms`, holdMs, inject: (world) => cut(world, ways) };
  },
});

/**
 * Longer than NATS takes to elect a leader and another owner to take over, so that reads could be
 * stale.
 */
const minorityHold = { min: 9_000, max: 14_000 };
/** Time in which programs with reset connections find a server on their side. */
const gatherMs = 2_000;

/**
 * First makes all programs connect to a server on their own side; else they would spend the time on
 * a dead connection. Clients keep sending requests to the gateway that is cut off.
 */
const minority: FaultKind = {
  name: 'minority cut off with clients',
  needsWire: true,
  plan: (random, actors): Planned => {
    const server = random.pick(servers);
    const programs: Place[] = [random.pick(['g1', 'g2']), random.pick(actors)];
    const inside = [server, ...programs];
    const outside = others.filter((place) => !inside.includes(place));
    const holdMs = between(random, minorityHold.min, minorityHold.max);
    return {
      text: `${inside.join(', ')} are cut off from all others for ${holdMs} ms, and reached by their clients`,
      holdMs,
      inject: async (world) => {
        const otherServers = servers.filter((each) => each !== server);
        const otherPrograms = outside.filter((place) => !place.startsWith('n'));
        const astray = [...bothWays(programs, otherServers), ...bothWays(otherPrograms, [server])];
        await wireOf(world).reset(astray);
        await sleep(gatherMs);
        return cut(world, bothWays(inside, outside));
      },
    };
  },
};

const resets = 5;
const resetMs = 150;

/** A client finds another server within this. */
const resetEveryMs = 800;

const natsResets: FaultKind = {
  name: 'NATS connections reset',
  needsWire: true,
  plan: (random, actors): Planned => {
    const victims = Array.from({ length: resets }, () => random.pick(servers));
    const all = others.filter((place) => place !== 'a2' || actors.includes('a2'));
    return {
      text: `every connection of a server is reset, of ${victims.join(', ')} one after another`,
      holdMs: 0,
      inject: async (world) => {
        for (const server of victims) {
          const rest = all.filter((place) => place !== server);
          await wireOf(world).reset(bothWays([server], rest));
          await sleep(resetMs);
          await wireOf(world).mend();
          await sleep(resetEveryMs);
        }
        return healed;
      },
    };
  },
};

const clientResets: FaultKind = {
  name: 'client connections reset',
  needsWire: true,
  plan: (random): Planned => {
    const gateway = random.pick(['g1', 'g2'] as const);
    const holdMs = between(random, 200, 1_500);
    return {
      text: `every connection of clients to ${gateway} is reset, for ${holdMs} ms`,
      holdMs,
      inject: async (world) => {
        await wireOf(world).reset(bothWays(['clients'], [gateway]));
        return { heal: () => wireOf(world).mend() };
      },
    };
  },
};

export const networkFaults: readonly FaultKind[] = [
  partition,
  oneWay,
  cutOff('actors cut off', 'actors'),
  cutOff('gateway cut off', ['g1', 'g2']),
  cutOff('agent cut off', ['h1']),
  minority,
  natsResets,
  clientResets,
];
