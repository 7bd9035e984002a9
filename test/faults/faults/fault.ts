/** The form of a fault. Its plan depends on the seed only, so a seed can be repeated. */
import type { Random } from '../../actors/support/random.ts';
import type { Operation } from '../check/history.ts';
import type { Span } from '../load/silence.ts';
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
  /** Fact found out on the way, such as the server that led; complete after `heal`. */
  readonly note?: string;
  /** Descriptions of what was wrong while the fault lasted. */
  readonly faults?: readonly string[];
  /** Messages of this time may be missing in streams for good (ADR 48). */
  readonly forgets?: Span;
  /** Requests of the fault itself, whose lines the audit must have. */
  readonly operations?: readonly Operation[];
  /** Resolves to what was not as it must be since, in words. */
  heal(): Promise<readonly string[] | void>;
}

export interface FaultKind {
  readonly name: string;
  /** It needs network namespaces. */
  readonly needsWire: boolean;
  /** An everyday operation: no request may fail during it. */
  readonly isGraceful?: true;
  /** Every tenant is served while it lasts. */
  readonly isServed?: true;
  /** The clock of the agent is not that of the engine meanwhile. */
  readonly movesHostClock?: true;
  /** The promise about this fault, as a judgement; its own faults contradict it. */
  readonly promise?: string;
  plan(random: Random, actors: readonly ['a1', ...'a2'[]]): Planned;
}

export const healed: Injected = { heal: async () => Promise.resolve() };

/** From `min` to below `max`. */
export const between = (random: Random, min: number, max: number): number => min + random.below(max - min);
