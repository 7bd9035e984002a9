/** A4: an agent removes only its own containers, and only if the owner says so. */
import type { Guard } from '../mutant.ts';

export const a4: readonly Guard[] = [
  {
    name: 'verdict does not check the incarnation',
    guard: 'After a restore, copies of containers that were moved or deleted before it stay',
    file: 'actors/domain/host/strangers.ts',
    changes: [{ in: 'goneFrom.isSinceRestore', always: 'incarnation === 0 || (atMs ?? 0) > incarnation' }],
    killedBy: 'test/actors/domain/host/strangers.test.ts',
  },
  {
    name: 'orphans judged by an incomplete set',
    guard: 'An operator’s approval removes orphans only when every partition has answered',
    file: 'host-agent/desired/workload.ts',
    changes: [
      { in: 'createWorkload.evaluate', omit: 'isConfirmed(desired)' },
      { in: 'createWorkload.evaluate', always: 'isSettled' },
    ],
    killedBy: 'test/host-agent/desired/workload.test.ts',
  },
  {
    name: 'every unknown container removed',
    guard: 'A container that the control plane does not know stays',
    file: 'host-agent/desired/workload.ts',
    changes: [
      { in: 'createWorkload.applyVerdicts', replace: "given.get(id) === placement ? 'gone' : 'unknown'", by: "'gone'" },
    ],
    killedBy: 'test/host-agent/desired/workload.test.ts',
  },
  {
    name: 'verdict for an earlier placement accepted',
    guard: 'An owner’s verdict counts only for the placement that it names',
    file: 'host-agent/desired/workload.ts',
    changes: [{ in: 'createWorkload.verdictOf', always: 'placement <= verdict.placement' }],
    killedBy: 'test/host-agent/desired/workload.test.ts',
  },
  {
    name: 'older desired set accepted',
    guard: 'A set is never replaced by an older one (ADR 3)',
    file: 'host-agent/desired/desired-set.ts',
    changes: [{ in: 'nextSet', always: 'held === undefined || isOlder(held, answer.set)' }],
    killedBy: 'test/host-agent/desired/desired-set.test.ts',
  },
  {
    name: 'agent sees every container',
    guard: 'An agent sees only containers with the labels of its cluster and its host',
    file: 'host-agent/docker/ownership.ts',
    changes: [{ in: 'ownerLabels', replace: '{ [labels.cluster]: cluster, [labels.host]: host }', by: '{}' }],
    killedBy: 'test/integration/host-agent/desired/ours.test.ts',
  },
  {
    name: 'agent sees other hosts of its cluster',
    guard: 'Two agents on one engine see their own containers',
    file: 'host-agent/docker/ownership.ts',
    changes: [
      {
        in: 'ownerLabels',
        replace: '{ [labels.cluster]: cluster, [labels.host]: host }',
        by: '{ [labels.cluster]: cluster }',
      },
    ],
    killedBy: 'test/integration/host-agent/desired/ours.test.ts',
  },
  {
    name: 'container of a damaged record removed',
    guard: 'A container whose record may be damaged stays as it is',
    file: 'host-agent/desired/workload.ts',
    changes: [
      { in: 'createWorkload.isKnown', omit: 'damaged.has(id)' },
      { in: 'createWorkload.wanted', never: 'damaged.has(id)' },
    ],
    killedBy: 'test/host-agent/desired/workload.test.ts',
  },
  {
    name: 'epochs announced without the restore offset',
    guard: 'After a restore no agent mistakes a new desired set for an older one',
    file: 'schemas/records/cluster.ts',
    changes: [{ in: 'announcedEpoch', replace: '(epochBases?.[partition] ?? 0) + revision', by: 'revision' }],
    killedBy: 'simulation',
    firstSeed: 26,
  },
];
