/** A guard that keeps a promise, and the test that notices when it is gone. */
import type { Change } from './syntax.ts';

export interface Mutant {
  readonly name: string;
  /** The promise of the guard, and the page that states it. */
  readonly guard: string;
  /** The path of the source file from the root. */
  readonly file: string;
  readonly changes: readonly Change[];
  readonly killedBy: Killer;
  /**
   * The seed that the simulation begins with, in place of 1: one that found the mutant, where many
   * before it do not. Another change of the simulation may move it; then it goes on from there.
   */
  readonly firstSeed?: number;
}

/** The simulation (test/sim), seed after seed, or one test file. */
export type Killer = 'simulation' | `test/${string}.test.ts`;
