/** State of the fake control plane, and its answers to syncs. */
import type { DesiredContainer, DesiredVersion, SyncAnswer } from '../../../schemas/wire/host.ts';
import type { ContainerId, HostKey } from '../../../schemas/ids.ts';
import { container } from './decisions.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';

export const host = 'h1' as HostKey;
export const partitions = 4;

export interface Desire extends Partial<Omit<DesiredContainer, 'tenant' | 'id'>> {
  readonly tenant?: string;
  readonly id?: ContainerId;
}

export interface State {
  readonly containers: Map<ContainerId, DesiredContainer>;
  /** Damaged records, and the partition of each. */
  readonly held: Map<ContainerId, number>;
  /** Containers that were placed elsewhere. */
  readonly gone: Set<ContainerId>;
  /** The removed containers that were deleted there. */
  readonly erased: Set<ContainerId>;
  readonly revisions: number[];
  session: number;
  orphanApprovals: number;
  answeringCluster: string;
  incarnation: number;
}

export function answersFor(state: State, partition: number, held: readonly number[] | undefined): SyncAnswer[] {
  const { incarnation } = state;
  const epoch = 1 + incarnation;
  const revision = state.revisions[partition] ?? 0;
  const base = { v: 1, cluster: state.answeringCluster, partitions, partition, incarnation, epoch, revision } as const;
  const isHome = partition === partitionOf(host, partitions);
  const orphan_word = isHome ? state.orphanApprovals : null;
  const isSame = held?.[0] === epoch && held[1] === revision;
  if (isSame) return [{ ...base, part: 0, parts: 1, same: true, containers: [], hold: [], orphan_word }];
  const containers = [...state.containers.values()].filter(
    ({ tenant }) => partitionOf(tenant, partitions) === partition,
  );
  const hold = [...state.held].filter(([, each]) => each === partition).map(([id]) => id);
  // In two parts if there are two containers or more.
  const half = Math.ceil(containers.length / 2);
  const parts = containers.length > 1 ? [containers.slice(0, half), containers.slice(half)] : [containers];
  return parts.map((each, part) => ({
    ...base,
    part,
    parts: parts.length,
    same: false,
    containers: each,
    hold: part === 0 ? hold : [],
    orphan_word,
  }));
}

export const defaults = (id: ContainerId): DesiredContainer =>
  container({ id, generation: 1, repository: null, tag: 'latest' });

/** The version in a desired container. */
export const versionOf = (container: DesiredContainer): DesiredVersion => {
  const { registry, repository, tag, digest, pull_policy, ports, env, cpu_millis, mem_bytes } = container;
  const { secret_refs, config_files, policy, secrets } = container;
  const image = { registry, repository, tag, digest, pull_policy };
  const version = { ...image, ports, env, cpu_millis, mem_bytes, secret_refs, config_files };
  return { ...version, ...(policy === undefined ? {} : { policy }), ...(secrets === undefined ? {} : { secrets }) };
};
