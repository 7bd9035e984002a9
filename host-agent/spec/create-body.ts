/** From a desired container to what the engine is asked to make. Pure. */
import { createHash } from 'node:crypto';
import {
  digestPattern,
  registryPattern,
  repositoryPattern,
  tagPattern,
  type Port,
} from '../../schemas/api/container.ts';
import type { ContainerId, HostKey } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import { confinement, type Capability } from './confinement.ts';
import { labels } from '../reconcile/observed.ts';

/** Whose containers these are: what is made, adopted and removed bears both (invariant A4). */
export interface Owner {
  readonly cluster: string;
  readonly host: HostKey;
}

export const ownerLabels = ({ cluster, host }: Owner) => ({ [labels.cluster]: cluster, [labels.host]: host });

/**
 * One name for one container on one host: the engine itself refuses a second, so a create that was
 * thought lost and one that was sent again never both run (invariant A5).
 */
export const containerName = (owner: Owner, id: ContainerId): string => `longshore-${owner.host}-${id}`;

export const networkName = ({ cluster, host }: Owner): string => `longshore-${hash({ cluster, host }).slice(0, 12)}`;

/**
 * All tenants' containers of a host are on one bridge on which they cannot reach each other: the
 * engine drops what goes from one port of the bridge to another (icc off, by iptables and
 * br_netfilter; tried on Linux 6.18 with Docker 20.10). A bridge per tenant would end at some
 * thirty tenants, for want of address pools. An engine that was told to leave iptables alone
 * enforces neither. Names resolve on this network, but nothing answers at the address.
 */
export const networkBody = (owner: Owner) => ({
  Driver: 'bridge',
  Options: { 'com.docker.network.bridge.enable_icc': 'false' },
  Labels: ownerLabels(owner),
});

export type Reference =
  | { readonly kind: 'image'; readonly reference: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'invalid'; readonly message: string };

const grammar = {
  registry: new RegExp(registryPattern),
  repository: new RegExp(repositoryPattern),
  tag: new RegExp(tagPattern),
  digest: new RegExp(digestPattern),
};

/**
 * The image by name. A digest wins over a tag. Checked again here, since it goes into a URL path.
 */
export function referenceOf(container: DesiredContainer): Reference {
  const { registry, repository, tag, digest } = container;
  if (repository === null) return { kind: 'missing' };
  const faults = [
    grammar.registry.test(registry) ? [] : ['registry'],
    grammar.repository.test(repository) ? [] : ['repository'],
    digest === null || grammar.digest.test(digest) ? [] : ['digest'],
    tag === null || grammar.tag.test(tag) ? [] : ['tag'],
  ].flat();
  if (faults.length > 0) return { kind: 'invalid', message: `invalid ${faults.join(', ')}` };
  const name = `${registry}/${repository}`;
  return { kind: 'image', reference: digest === null ? `${name}:${tag ?? 'latest'}` : `${name}@${digest}` };
}

/**
 * What a running container cannot change: when this differs, it is made anew. Its first part is the
 * version of this function, so that a later agent can go on adopting what this one made.
 */
export function specHash(container: DesiredContainer): string {
  const { registry, repository, tag, digest, ports, env, cpu_millis, mem_bytes, secret_refs, config_files } = container;
  return `1-${hash([
    [registry, repository, tag, digest, cpu_millis, mem_bytes],
    ports.map(portKey),
    Object.entries(env).sort(([left], [right]) => (left < right ? -1 : 1)),
    secret_refs.map(({ env, secret }) => [env, secret]),
    config_files.map(({ path, content, mode }) => [path, content, mode ?? null]),
  ]).slice(0, 32)}`;
}

const hash = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('hex');

/** `80` and `"80"` → `"80/tcp"`. */
export const portKey = (port: Port): string => (String(port).includes('/') ? String(port) : `${port}/tcp`);

export interface Making {
  readonly owner: Owner;
  readonly container: DesiredContainer;
  readonly reference: string;
  readonly imageId: string;
  /** Of the labels that the image has. */
  readonly imageLabels: readonly string[];
  /** Values of `secret_refs`: they go into the environment and nowhere else. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly publishAddress: string;
  readonly hostCpuMillis: number;
  readonly capabilities: readonly Capability[];
  /** A quota of its writable layer, where the engine's storage keeps one. */
  readonly diskBytes: number | null;
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
  imageLabels,
  secrets,
  publishAddress,
  hostCpuMillis,
  capabilities,
  diskBytes,
}: Making): object {
  const ports = container.ports.map(portKey);
  const cpuMillis = Math.max(limits.engineCpuMillisMin, Math.min(container.cpu_millis, hostCpuMillis));
  return {
    // By its id: the image that was looked at, whatever its tag names by now.
    Image: imageId,
    Env: Object.entries({ ...container.env, ...secrets }).map(([name, value]) => `${name}=${value}`),
    Labels: {
      // The engine adds the labels of the image that are not given here, and lists them with the
      // container for ever.
      ...Object.fromEntries(imageLabels.map((name) => [name, ''])),
      ...ownerLabels(owner),
      [labels.tenant]: container.tenant,
      [labels.container]: container.id,
      [labels.placement]: String(container.placement),
      [labels.spec]: specHash(container),
      [labels.image]: imageId,
      [labels.reference]: reference,
    },
    ExposedPorts: Object.fromEntries(ports.map((port) => [port, {}])),
    HostConfig: {
      NetworkMode: networkName(owner),
      PortBindings: Object.fromEntries(ports.map((port) => [port, [{ HostIp: publishAddress, HostPort: '' }]])),
      RestartPolicy: { Name: 'no' },
      NanoCpus: cpuMillis * 1_000_000,
      Memory: container.mem_bytes,
      // Equal to Memory: no swap on top.
      MemorySwap: container.mem_bytes,
      ...confinement(capabilities),
      ...(diskBytes === null ? {} : { StorageOpt: { size: String(diskBytes) } }),
      LogConfig: {
        Type: 'json-file',
        Config: { 'max-size': limits.engineLogFileSize, 'max-file': String(limits.engineLogFiles) },
      },
    },
  };
}
