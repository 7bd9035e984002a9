/**
 * The desired state of a host, in one partition: a projection of the container records, stored
 * nowhere else. Pure.
 */
import type { ContainerRecord } from '../../schemas/api/container.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import { basisOf, digestOf, type Versioned } from '../../schemas/wire/set-digest.ts';
import { amountsOf } from './tenant/state.ts';

const projections = new WeakMap<ContainerRecord, DesiredContainer>();

function project(record: ContainerRecord): DesiredContainer | undefined {
  if (record.placement.phase !== 'placed') return undefined;
  const known = projections.get(record);
  if (known !== undefined) return known;
  const { spec } = record;
  const { cpuMillis, memBytes } = amountsOf(record);
  const desired: DesiredContainer = {
    tenant: record.tenant,
    id: record.id,
    generation: record.generation,
    placement: record.placement.since,
    desired: record.desired,
    name: spec.name,
    registry: spec.registry,
    repository: spec.repository,
    tag: spec.tag,
    digest: spec.digest,
    pull_policy: spec.pull_policy,
    ports: [...spec.ports],
    env: spec.env,
    cpu_millis: cpuMillis,
    mem_bytes: memBytes,
    ...(record.diskBytes === undefined ? {} : { disk_bytes: record.diskBytes }),
    secret_refs: [...record.secretRefs],
    config_files: [...record.configFiles],
  };
  projections.set(record, desired);
  return desired;
}

/** Of the records that are placed on a host. */
export function* desiredOf(placed: Iterable<ContainerRecord>): Generator<DesiredContainer, void, void> {
  for (const record of placed) {
    const desired = project(record);
    if (desired !== undefined) yield desired;
  }
}

function* versionsOf(placed: Iterable<ContainerRecord>): Generator<Versioned, void, void> {
  for (const { id, generation, placement } of placed) {
    if (placement.phase === 'placed') yield { id, generation, placement: placement.since };
  }
}

/** The digest of a host's whole set in one partition. */
export const desiredDigest = (
  incarnation: number,
  placed: Iterable<ContainerRecord>,
  hold: Iterable<ContainerId>,
): string => digestOf(basisOf(incarnation), versionsOf(placed), hold);
