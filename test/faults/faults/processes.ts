/**
 * Processes that are killed, paused for longer than every lease, or replaced as an operator
 * replaces them.
 */
import { sleep } from '../../../lib/time/backoff.ts';
import type { Place } from '../world/wire.ts';
import type { Controlled } from '../world/supervise.ts';
import type { World } from '../world/world.ts';
import { targetOf } from './streams.ts';
import { between, healed, type FaultKind } from './fault.ts';

const processOf = (world: World, place: Place): Controlled => {
  const found = world.processes.get(place);
  if (found === undefined) throw new Error(`${place} was not started`);
  return found;
};

const killed = (name: string, places: readonly [Place, ...Place[]] | 'actors'): FaultKind => ({
  name,
  needsWire: false,
  plan: (random, actors) => {
    const place = random.pick(places === 'actors' ? actors : places);
    const holdMs = between(random, 500, 4_000);
    return {
      text: `SIGKILL to ${place}, which is started again after ${holdMs} ms`,
      holdMs,
      inject: async (world) => {
        await processOf(world, place).kill9();
        return { heal: () => processOf(world, place).start() };
      },
    };
  },
});

/** Longer than a lease (1 s), its expiry for others (1.5 s), and NATS's wait for a leader. */
const pauseMs = { min: 4_000, max: 8_000 };

const paused = (name: string, places: readonly [Place, ...Place[]] | 'actors'): FaultKind => ({
  name,
  needsWire: false,
  plan: (random, actors) => {
    const place = random.pick(places === 'actors' ? actors : places);
    const holdMs = between(random, pauseMs.min, pauseMs.max);
    return {
      text: `SIGSTOP to ${place}, SIGCONT after ${holdMs} ms`,
      holdMs,
      inject: async (world) => {
        const process = processOf(world, place);
        process.pause();
        return Promise.resolve({
          heal: async () => {
            process.resume();
            return Promise.resolve();
          },
        });
      },
    };
  },
});

const leaderKilled: FaultKind = {
  name: 'NATS leader killed',
  needsWire: false,
  plan: (random) => {
    const target = targetOf(random);
    const holdMs = between(random, 3_000, 7_000);
    return {
      text: `SIGKILL to the server that leads ${target.text}, which is started again after ${holdMs} ms`,
      holdMs,
      inject: async (world) => {
        const leader = (await world.leaderOf(await target.find(world))) ?? 'n1';
        await processOf(world, leader).kill9();
        return { note: `it was ${leader}`, heal: () => processOf(world, leader).start() };
      },
    };
  },
};

const actorsOf = (world: World): Controlled[] =>
  (['a1', 'a2'] as const).flatMap((place) => world.processes.get(place) ?? []);

/** Loses what was answered before it was stored: nothing can be stored, then memory goes too. */
const leaderAndActorsKilled: FaultKind = {
  name: 'NATS leader and actors killed',
  needsWire: false,
  plan: (random) => {
    const target = targetOf(random);
    const apartMs = between(random, 300, 1_500);
    const holdMs = between(random, 500, 2_000);
    return {
      text: `SIGKILL to the server that leads ${target.text}, after ${apartMs} ms to all actors; all are started again after ${holdMs} ms`,
      holdMs,
      inject: async (world) => {
        const leader = (await world.leaderOf(await target.find(world))) ?? 'n1';
        await processOf(world, leader).kill9();
        await sleep(apartMs);
        const actors = actorsOf(world);
        await Promise.all(actors.map((each) => each.kill9()));
        return {
          note: `it was ${leader}`,
          heal: async () => void (await Promise.all([processOf(world, leader), ...actors].map((each) => each.start()))),
        };
      },
    };
  },
};

/** Partitions move to a process about a second after it has started again. */
const handOverDisturbed: FaultKind = {
  name: 'hand-over disturbed',
  needsWire: false,
  plan: (random, actors) => {
    const place = random.pick(actors);
    const target = targetOf(random);
    const afterMs = between(random, 500, 2_000);
    const holdMs = between(random, 3_000, 6_000);
    return {
      text: `${place} is replaced; ${afterMs} ms later SIGKILL to the server that leads ${target.text}, which is started again after ${holdMs} ms`,
      holdMs,
      inject: async (world) => {
        await processOf(world, place).stop();
        await processOf(world, place).start();
        await sleep(afterMs);
        const leader = (await world.leaderOf(await target.find(world))) ?? 'n1';
        await processOf(world, leader).kill9();
        return { note: `it was ${leader}`, heal: () => processOf(world, leader).start() };
      },
    };
  },
};

/** The pause of a rolling restart after a program is ready, for the others to notice it. */
const settleMs = 1_500;

const rollingRestart: FaultKind = {
  name: 'rolling restart',
  needsWire: false,
  isGraceful: true,
  plan: (_random, actors) => {
    const places: Place[] = [...actors, 'g1', 'g2'];
    return {
      text: `${places.join(', ')} are stopped by SIGTERM and started, one after another`,
      holdMs: 0,
      inject: async (world) => {
        for (const place of places) {
          const process = processOf(world, place);
          await process.stop();
          await process.start();
          await sleep(settleMs);
        }
        return healed;
      },
    };
  },
};

export const processFaults: readonly FaultKind[] = [
  killed('actors killed', 'actors'),
  killed('gateway killed', ['g1', 'g2']),
  killed('agent killed', ['h1']),
  leaderKilled,
  leaderAndActorsKilled,
  handOverDisturbed,
  paused('actors paused', 'actors'),
  paused('NATS server paused', ['n1', 'n2', 'n3']),
  paused('gateway paused', ['g1', 'g2']),
  paused('agent paused', ['h1']),
  rollingRestart,
];
