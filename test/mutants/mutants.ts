/**
 * Mutants that stand for the invariants and for security. Each removes one guard from the source;
 * an invariant is tested only if a test kills its mutants.
 */
import { a1 } from './guards/a1.ts';
import { a2 } from './guards/a2.ts';
import { a3 } from './guards/a3.ts';
import { a4 } from './guards/a4.ts';
import { a5 } from './guards/a5.ts';
import { a6 } from './guards/a6.ts';
import { a7 } from './guards/a7.ts';
import { security } from './guards/security.ts';
import { partOfTurn } from '../support/runner/choice/rotation.ts';
import type { Guard, Invariant, Mutant } from './mutant.ts';

const guards: Record<Invariant, readonly Guard[]> = {
  A1: a1,
  A2: a2,
  A3: a3,
  A4: a4,
  A5: a5,
  A6: a6,
  A7: a7,
  security,
};

export const mutants: readonly Mutant[] = (Object.entries(guards) as [Invariant, readonly Guard[]][]).flatMap(
  ([breaks, each]) => each.map((guard) => ({ ...guard, breaks, name: `${breaks}: ${guard.name}` })),
);

/** The mutants whose turn it is; so many `turns` one after another have all. */
export function mutantsOfTurn(turns: number): Mutant[] {
  const turn = partOfTurn(turns);
  return mutants.filter((_, index) => index % turns === turn);
}

/** The table of docs/faults.md. */
export const mutantTable = (): string =>
  [
    '| Breaks, and how | The guard that it removes | In | Killed by |',
    '|---|---|---|---|',
    ...mutants.map(
      ({ name, guard, file, killedBy }) =>
        `| ${name} | ${guard} | \`${file}\` | ${killedBy === 'simulation' ? 'the simulation' : `\`${killedBy}\``} |`,
    ),
  ].join('\n');
