/**
 * Every mutant. Each removes one guard from the source; a guard is tested only if a test kills its
 * mutant.
 */
import { agentMutants } from './guards/agent.ts';
import { attackMutants } from './guards/attacks.ts';
import { domainMutants } from './guards/domain.ts';
import { gatewayMutants } from './guards/gateway.ts';
import { hostSecretMutants } from './guards/host-secrets.ts';
import { runtimeMutants } from './guards/runtime.ts';
import { sessionMutants } from './guards/sessions.ts';
import { sharedMutants } from './guards/shared.ts';
import { partOfCommit } from '../support/runner/choice/rotation.ts';
import type { Mutant } from './mutant.ts';

export const mutants: readonly Mutant[] = [
  ...domainMutants,
  ...runtimeMutants,
  ...gatewayMutants,
  ...agentMutants,
  ...hostSecretMutants,
  ...sharedMutants,
  ...sessionMutants,
  ...attackMutants,
];

/** A tenth of them: ten commits in a row have all. */
export function tenth(all: readonly Mutant[]): Mutant[] {
  const part = partOfCommit(10);
  return all.filter((_, index) => index % 10 === part);
}

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
