/** The faults of a run and their order, from its seed alone. */
import { createRandom, type Random } from '../../actors/support/random.ts';
import { awayFaults } from './away.ts';
import { clockFaults } from './clock.ts';
import { diskFaults } from './disk.ts';
import type { FaultKind, Planned } from './fault.ts';
import { hostFaults } from './hosts.ts';
import { networkFaults } from './network.ts';
import { processFaults } from './processes.ts';
import { wentBackFaults } from './went-back.ts';

export const faultKinds: readonly FaultKind[] = [
  ...processFaults,
  ...networkFaults,
  ...diskFaults,
  ...clockFaults,
  ...hostFaults,
  ...awayFaults,
  ...wentBackFaults,
];

export interface Scheduled {
  readonly kind: FaultKind;
  readonly planned: Planned;
  /** After the recovery from the one before. */
  readonly calmMs: number;
}

export interface ScheduleOptions {
  readonly seed: number;
  readonly count: number;
  readonly hasWire: boolean;
  readonly actors: readonly ['a1', ...'a2'[]];
  /** Only kinds with these names; all if empty. */
  readonly only: readonly string[];
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  const rest = [...items];
  return items.map(() => rest.splice(random.below(rest.length), 1)[0]!);
}

/**
 * Consecutive seeds take consecutive kinds, so that a few seeds cover all; within a run the order
 * is random.
 */
export function scheduleOf({ seed, count, hasWire, actors, only }: ScheduleOptions): Scheduled[] {
  const random = createRandom(seed);
  const kinds = faultKinds
    .filter(({ needsWire }) => hasWire || !needsWire)
    .filter(({ name }) => only.length === 0 || only.includes(name));
  const first = (seed * count) % Math.max(1, kinds.length);
  const chosen = Array.from({ length: count }, (_, index) => kinds[(first + index) % kinds.length]!);
  return shuffled(chosen, random).map((kind) => ({
    kind,
    planned: kind.plan(random, actors),
    calmMs: 500 + random.below(1_500),
  }));
}
