/** The wall clock of one program steps by minutes to hours, forward or back, and later returns. */
import type { ProgramPlace } from '../world/world.ts';
import { between, type FaultKind } from './fault.ts';

const minuteMs = 60_000;

const stepped = (name: string, places: readonly [ProgramPlace, ...ProgramPlace[]] | 'actors'): FaultKind => ({
  name,
  needsWire: false,
  ...(places !== 'actors' && places.includes('h1') ? { movesHostClock: true as const } : {}),
  plan: (random, actors) => {
    const place = random.pick(places === 'actors' ? actors : places);
    const minutes = between(random, 2, 180) * (random.once(2) ? 1 : -1);
    const holdMs = between(random, 2_000, 5_000);
    const way = minutes > 0 ? 'ahead' : 'back';
    return {
      text: `the wall clock of ${place} is set ${way} by ${Math.abs(minutes)} min, and right after ${holdMs} ms`,
      holdMs,
      inject: async (world) => {
        world.setClock(place, minutes * minuteMs);
        return Promise.resolve({
          heal: async () => {
            world.setClock(place, 0);
            return Promise.resolve();
          },
        });
      },
    };
  },
});

export const clockFaults: readonly FaultKind[] = [
  stepped('clock of actors steps', 'actors'),
  stepped('clock of a gateway steps', ['g1', 'g2']),
  stepped('clock of the agent steps', ['h1']),
];
