/** From a desired container to the body of the engine's create call. Pure. */
import { createHash } from 'node:crypto';
import type { ImageSeen } from '../../schemas/api/container.ts';
import { containerFields, type Port } from '../../schemas/api/fields/container.ts';
import { limits } from '../../schemas/limits.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import type { ImageCheck } from '../docker/answers.ts';
import type { EngineLimits, KeptSettings } from '../docker/kept-settings.ts';
import type { BindMount, ContainerBody, VolumeMount } from '../docker/calls/containers.ts';
import { usualCpuShares } from '../docker/observed.ts';
import { noSecrets, orderedUses, usesIn } from '../../schemas/api/secret.ts';
import { confinement, type Capability } from './confinement.ts';
import { processOf } from './process-part.ts';
import { policyCheckOf, sentCheck } from './health-check.ts';
import { labels, networkName, ownerLabels, type Owner } from '../docker/ownership.ts';

/** The engine refuses less than a hundredth of a CPU. */
const engineCpuMillisMin = 10;
const { process: processField, files: filesField, network: networkField } = containerFields;

/**
 * A hash of the parts of a container that cannot change while it runs: when it differs, the agent
 * makes the container again. It begins with the version of this function, so that a later agent can
 * adopt the containers of this one.
 */
export function specHash(container: DesiredContainer): string {
  const { registry, repository, tag, digest, ports, env, cpu_millis, mem_bytes, secret_refs, config_files } = container;
  const { secrets = noSecrets, process: part, files, network, repull } = container;
  const healthcheck = policyCheckOf(container);
  return `1-${hash([
    [registry, repository, tag, digest, cpu_millis, mem_bytes],
    ports.map(portKey),
    Object.entries(env).sort(([left], [right]) => (left < right ? -1 : 1)),
    secret_refs.map(({ env, secret }) => [env, secret]),
    config_files.map(({ path, content, mode }) => [path, content, mode ?? null]),
    // Included only if there is one, so that other containers keep their hash.
    ...(healthcheck === undefined ? [] : [healthcheck]),
    // Names and versions: another value has another version.
    ...(usesIn(secrets).length === 0 ? [] : [orderedUses(secrets)]),
    ...(part === undefined ? [] : [processField.canonical(part)]),
    ...(files === undefined ? [] : [['files', filesField.canonical(files)]]),
    ...(network === undefined ? [] : [['network', networkField.canonical(network)]]),
    ...(repull === undefined ? [] : [['repull', repull]]),
  ]).slice(0, 32)}`;
}

const hash = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('hex');

/** `80` and `"80"` → `"80/tcp"`. */
export const portKey = (port: Port): string => (String(port).includes('/') ? String(port) : `${port}/tcp`);

/**
 * MemorySwap equals Memory, so that there is no swap on top.
 * @param hostCpuMillis the CPU of the engine's host: the engine refuses more
 */
export function limitsOf({ cpu_millis, mem_bytes }: DesiredContainer, hostCpuMillis: number): EngineLimits {
  const cpuMillis = Math.max(engineCpuMillisMin, Math.min(cpu_millis, hostCpuMillis));
  return { Memory: mem_bytes, MemorySwap: mem_bytes, NanoCpus: cpuMillis * 1_000_000 };
}

/** The engine's host, as far as limits depend on it. */
export interface LimitingHost {
  readonly cpuMillis: number;
  /** The settings that its kernel cannot enforce. */
  readonly unkept: readonly (keyof KeptSettings)[];
}

/** The settings that a container keeps, whatever somebody changes by hand. */
export function settingsOf(container: DesiredContainer, { cpuMillis, unkept }: LimitingHost): Partial<KeptSettings> {
  const all: KeptSettings = {
    ...limitsOf(container, cpuMillis),
    PidsLimit: limits.containerPids,
    CpuShares: usualCpuShares,
    CpusetCpus: cpuMillis <= 1000 ? '0' : `0-${cpuMillis / 1000 - 1}`,
    RestartPolicy: noRestart,
  };
  return Object.fromEntries(Object.entries(all).filter(([name]) => !unkept.includes(name as keyof KeptSettings)));
}

/** The agent alone restarts it. */
const noRestart = { Name: 'no' };

export interface CreateInput {
  readonly owner: Owner;
  readonly container: DesiredContainer;
  readonly reference: string;
  readonly imageId: string;
  /** The image that its registry gave for the reference; `undefined` if it came from none. */
  readonly resolved?: ImageSeen | undefined;
  /** Names of the image's labels. */
  readonly imageLabels: readonly string[];
  /** The health check that the image declares. */
  readonly imageCheck?: ImageCheck | null | undefined;
  /** Values of `secret_refs` and of the tenant's secrets; they appear in the environment only. */
  readonly secrets: Readonly<Record<string, string>>;
  /** The tenant's secrets as files, and the volumes that its image declares. */
  readonly mounts?: readonly (BindMount | VolumeMount)[];
  readonly publishAddress: string;
  readonly hostCpuMillis: number;
  readonly capabilities: readonly Capability[];
  /** A quota of its writable layer, in bytes; `null` if the engine's storage keeps none. */
  readonly diskBytes: number | null;
  /** The engine's id of the sandbox that it runs in; `null` if it has a network of its own. */
  readonly sandbox: string | null;
}

/**
 * Body of `POST /containers/create`. The engine never restarts it (RestartPolicy no): the agent
 * alone does.
 */
export function createBody({
  owner,
  container,
  reference,
  imageId,
  resolved,
  imageLabels,
  imageCheck,
  secrets,
  mounts = [],
  publishAddress,
  hostCpuMillis,
  capabilities,
  diskBytes,
  sandbox,
}: CreateInput): ContainerBody {
  // A container in a sandbox publishes nothing itself.
  const ports = sandbox === null ? container.ports.map(portKey) : [];
  const { program, hostConfig } = processOf(container);
  return {
    ...program,
    // By id, so that it is the image that was checked, whatever its tag names now.
    Image: imageId,
    Env: Object.entries({ ...container.env, ...secrets }).map(([name, value]) => `${name}=${value}`),
    Labels: {
      // The engine copies every image label that is not set here, and lists it with the container
      // from then on.
      ...Object.fromEntries(imageLabels.map((name) => [name, ''])),
      ...ownerLabels(owner),
      [labels.tenant]: container.tenant,
      [labels.container]: container.id,
      [labels.placement]: String(container.placement),
      [labels.spec]: specHash(container),
      [labels.image]: imageId,
      [labels.reference]: reference,
      ...(resolved === undefined
        ? {}
        : { [labels.digest]: resolved.digest, [labels.resolvedAt]: resolved.resolved_at }),
    },
    Healthcheck: sentCheck(container, imageCheck),
    ExposedPorts: Object.fromEntries(ports.map((port) => [port, {}])),
    HostConfig: {
      NetworkMode: sandbox === null ? networkName(owner) : `container:${sandbox}`,
      PortBindings: Object.fromEntries(ports.map((port) => [port, [{ HostIp: publishAddress, HostPort: '' }]])),
      RestartPolicy: noRestart,
      ...limitsOf(container, hostCpuMillis),
      ...(mounts.length === 0 ? {} : { Mounts: mounts }),
      ...confinement(capabilities),
      ...hostConfig,
      ...(diskBytes === null ? {} : { StorageOpt: { size: String(diskBytes) } }),
      LogConfig: {
        Type: 'json-file',
        Config: { 'max-size': limits.engineLogFileSize, 'max-file': String(limits.engineLogFiles) },
      },
    },
  };
}
