/**
 * The desired state of a host, in one partition: a projection of the container records, stored
 * nowhere else. Pure.
 */
import type { ContainerRecord, Version } from '../../schemas/api/container.ts';
import { partNames, type ContainerSpec } from '../../schemas/api/fields/container.ts';
import type { ContainerId, HostKey } from '../../schemas/ids.ts';
import { asVersion, type DesiredContainer, type DesiredVersion } from '../../schemas/wire/host.ts';
import { basisOf, digestOf, type Versioned } from '../../schemas/wire/set-digest.ts';
import { isDefaultPolicy } from '../../schemas/api/policy.ts';
import { usesIn } from '../../schemas/api/secret.ts';
import { leavingOf, preparationOf } from './container/moving.ts';
import { versionOf } from './container/updates.ts';
import { limitsOf } from './tenant/state.ts';

const projections = new WeakMap<ContainerRecord, DesiredContainer>();

function project(record: ContainerRecord): DesiredContainer {
  const known = projections.get(record);
  if (known !== undefined) return known;
  const { spec, placement } = record;
  const desired: DesiredContainer = {
    tenant: record.tenant,
    id: record.id,
    generation: record.generation,
    placement: placement.since ?? record.generation,
    desired: record.desired,
    ...(record.startSince === undefined ? {} : { start: record.startSince }),
    name: spec.name,
    ...desiredVersion(versionOf(record)),
    ...(record.diskBytes === undefined ? {} : { disk_bytes: record.diskBytes }),
    ...causeOf(record),
  };
  projections.set(record, desired);
  return desired;
}

function causeOf({ cause, generation }: ContainerRecord): Pick<DesiredContainer, 'cause'> {
  if (cause?.generation !== generation) return {};
  const { requestId, trace } = cause;
  return { cause: { request_id: requestId, ...(trace === undefined ? {} : { trace }) } };
}

function desiredVersion(version: Version): DesiredVersion {
  const { spec, policy, secrets } = version;
  const { cpuMillis, memBytes } = limitsOf(version);
  return {
    registry: spec.registry,
    repository: spec.repository,
    tag: spec.tag,
    digest: spec.digest,
    pull_policy: spec.pull_policy,
    ...(spec.repull === undefined ? {} : { repull: spec.repull }),
    ports: [...spec.ports],
    env: spec.env,
    cpu_millis: cpuMillis,
    mem_bytes: memBytes,
    secret_refs: [...version.secretRefs],
    config_files: [...version.configFiles],
    ...(isDefaultPolicy(policy) ? {} : { policy }),
    ...(usesIn(secrets).length === 0 ? {} : { secrets }),
    ...Object.fromEntries(partNames.flatMap((name) => (spec[name] === undefined ? [] : [[name, spec[name]]]))),
    ...(spec.leftOut === undefined ? {} : { network: { mode: 'none' } }),
  };
}

/**
 * Parts of a container that agents of the last release do not know, and the version of the protocol
 * that has them.
 */
export type NewParts = Partial<Readonly<Record<keyof ContainerSpec, number>>>;
const newParts: NewParts = {};

/**
 * The version of the protocol from which on agents know every part of the container. An older agent
 * leaves the container as it is (docs/upgrades.md).
 */
export const protocolOfContainer = ({ spec, update }: ContainerRecord, known: NewParts = newParts): number => {
  const previous = update?.previous?.spec;
  const has = (name: string): boolean =>
    Object.hasOwn(spec, name) || (previous !== undefined && Object.hasOwn(previous, name));
  return Math.max(0, ...Object.entries(known).flatMap(([name, version]) => (has(name) ? [version] : [])));
};

type Role = Pick<DesiredContainer, 'desired' | 'placement' | 'prepare'>;

/**
 * The role of a host for the container: one that it leaves stops it; one that it comes to keeps a
 * copy ready (ADR 32). `undefined` if it has none.
 */
function roleOn(record: ContainerRecord, host: HostKey): Role | undefined {
  const { desired, placement } = record;
  const leaving = leavingOf(record);
  if (leaving?.host === host) return { desired: 'stopped', placement: leaving.since };
  const preparing = preparationOf(record);
  if (preparing?.host === host) return { desired: 'stopped', placement: preparing.since, prepare: true };
  if (placement.phase !== 'placed' || placement.host !== host) return undefined;
  const { since } = placement;
  if (leaving === undefined) return { desired, placement: since };
  return { desired: 'stopped', placement: since, ...(desired === 'running' ? { prepare: true } : {}) };
}

function projectOn(record: ContainerRecord, host: HostKey): DesiredContainer | undefined {
  const role = roleOn(record, host);
  if (role === undefined) return undefined;
  const desired = project(record);
  if (role.desired !== desired.desired || role.placement !== desired.placement) return { ...desired, ...role };
  const { previous } = record.update ?? {};
  return previous === undefined || record.desired !== 'running' ? desired : projectUpdate(record, desired, previous);
}

/**
 * The host of the placement brings the new version into the place of the old one; while another
 * host prepares the new version, the old one runs on (ADR 35).
 */
function projectUpdate(record: ContainerRecord, desired: DesiredContainer, previous: Version): DesiredContainer {
  const version = desiredVersion(previous);
  const update = updateOn(record);
  if (update !== undefined) return { ...desired, update: { ...update, previous: version } };
  return asVersion(desired, version);
}

/** The update that the host of the placement carries out; `undefined` if there is none. */
const updateOn = (record: ContainerRecord): { readonly since: number } | undefined =>
  record.update?.previous === undefined || preparationOf(record) !== undefined
    ? undefined
    : { since: record.update.since };

/** @param wanted the records that the host has in its desired set (`PartitionView.wantedOn`) */
export function* desiredOf(wanted: Iterable<ContainerRecord>, host: HostKey): Generator<DesiredContainer, void, void> {
  for (const record of wanted) {
    const desired = projectOn(record, host);
    if (desired !== undefined) yield desired;
  }
}

function* versionsOf(wanted: Iterable<ContainerRecord>, host: HostKey): Generator<Versioned, void, void> {
  for (const record of wanted) {
    const role = roleOn(record, host);
    if (role === undefined) continue;
    const update = role.desired === 'running' ? updateOn(record) : undefined;
    yield { id: record.id, generation: record.generation, ...role, ...(update === undefined ? {} : { update }) };
  }
}

/** The digest of a host's whole set in one partition. */
export const desiredDigest = (
  incarnation: number,
  host: HostKey,
  wanted: Iterable<ContainerRecord>,
  hold: Iterable<ContainerId>,
): string => digestOf(basisOf(incarnation), versionsOf(wanted, host), hold);
