/**
 * Every mutant. Each takes one guard out of the source; a guard without a mutant that a test kills
 * is not tested.
 */
import { agentMutants } from './guards/agent.ts';
import { domainMutants } from './guards/domain.ts';
import { gatewayMutants } from './guards/gateway.ts';
import { runtimeMutants } from './guards/runtime.ts';
import { sharedMutants } from './guards/shared.ts';
import type { Mutant } from './mutant.ts';

export const mutants: readonly Mutant[] = [
  ...domainMutants,
  ...runtimeMutants,
  ...gatewayMutants,
  ...agentMutants,
  ...sharedMutants,
];

/** The table of docs/faults.md. */
export const mutantTable = (): string =>
  [
    '| Left out or changed | The guard | In | Killed by |',
    '|---|---|---|---|',
    ...mutants.map(
      ({ name, guard, file, killedBy }) =>
        `| ${name} | ${guard} | \`${file}\` | ${killedBy === 'simulation' ? 'the simulation' : `\`${killedBy}\``} |`,
    ),
  ].join('\n');
