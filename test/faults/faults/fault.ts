/** The form of a fault. Its plan depends on the seed only, so a seed can be repeated. */
import type { Random } from '../../actors/support/random.ts';
import type { World } from '../world/world.ts';

export interface Planned {
  /** Description of the fault and of the part that it strikes. */
  readonly text: string;
  /** Between injection and repair. */
  readonly holdMs: number;
  /** Injects the fault. */
  inject(world: World): Promise<Injected>;
}

export interface Injected {
  /** Fact found out on the way, such as the server that led. */
  readonly note?: string;
  /** Descriptions of what was wrong while the fault lasted. */
  readonly faults?: readonly string[];
  heal(): Promise<void>;
}

export interface FaultKind {
  readonly name: string;
  /** It needs network namespaces. */
  readonly needsWire: boolean;
  /** An everyday operation: no request may fail during it. */
  readonly isGraceful?: true;
  plan(random: Random, actors: readonly ['a1', ...'a2'[]]): Planned;
}

export const healed: Injected = { heal: async () => Promise.resolve() };

/** From `min` to below `max`. */
export const between = (random: Random, min: number, max: number): number => min + random.below(max - min);
