/** The desired state of a host, in one partition: a projection of the container records, stored nowhere else. Pure. */
import type { ContainerRecord } from '../schemas/container.ts';
import type { HostKey } from '../schemas/ids.ts';
import type { DesiredContainer } from '../schemas/messages.ts';
import { amountsOf, type PartitionView } from './state.ts';

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
    secret_refs: [...record.secretRefs],
    config_files: [...record.configFiles],
  };
  projections.set(record, desired);
  return desired;
}

export function desiredOf(state: PartitionView, host: HostKey): DesiredContainer[] {
  const all: DesiredContainer[] = [];
  for (const record of state.placedOn(host).values()) {
    const desired = project(record);
    if (desired !== undefined) all.push(desired);
  }
  return all;
}
