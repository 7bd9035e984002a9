/**
 * What a fault is: planned from the seed alone, so that the schedule of a run can be printed before
 * it starts.
 */
import type { Random } from '../../actors/support/random.ts';
import type { World } from '../world.ts';

export interface Planned {
  /** What is done to whom, in words. */
  readonly text: string;
  /** From the injection to the healing. */
  readonly holdMs: number;
  /** Undefined: nothing is left to heal. What it found out on the way (who led) it says. */
  inject(world: World): Promise<Injected>;
}

export interface Injected {
  readonly note?: string;
  heal(): Promise<void>;
}

export interface FaultKind {
  readonly name: string;
  /** Namespaces, that is. */
  readonly needsWire: boolean;
  /** No request may fail while it lasts: it is what an operator does every day. */
  readonly isGraceful?: true;
  plan(random: Random, actors: readonly ['a1', ...'a2'[]]): Planned;
}

export const healed: Injected = { heal: async () => Promise.resolve() };

/** From `min` to below `max`. */
export const between = (random: Random, min: number, max: number): number => min + random.below(max - min);
