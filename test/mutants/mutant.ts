/** A guard that keeps an invariant, and the test that notices when it is gone. */
import type { Change } from './syntax.ts';

/** The invariants of ARCHITECTURE.md, and what docs/security.md promises beyond them. */
export type Invariant = 'A1' | 'A2' | 'A3' | 'A4' | 'A5' | 'A6' | 'A7' | 'security';

/** One guard of an invariant, and the change that removes it. */
export interface Guard {
  /** The effect of removing the guard, in a few words. */
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

/** The name begins with the invariant that the mutant breaks: `A3: reply before its commit`. */
export interface Mutant extends Guard {
  readonly breaks: Invariant;
}

/** The simulation (test/sim), seed after seed, or one test file. */
export type Killer = 'simulation' | `test/${string}.test.ts`;
