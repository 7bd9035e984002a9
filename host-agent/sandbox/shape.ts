/**
 * The shape of a sandbox: the ports that it must publish. Sandboxes of one shape can stand in for
 * one another until they are used. Pure.
 */
import type { Port } from '../../schemas/api/fields/container.ts';
import { usualNetwork, type ContainerNetwork } from '../../schemas/api/fields/network-part.ts';
import { MiB } from '../../schemas/limits/units.ts';
import type { ContainerBody } from '../docker/calls/containers.ts';
import { apart, isApart, labels, networkName, ownerLabels, wayOut, type Owner } from '../docker/ownership.ts';
import { portKey } from '../spec/create-body.ts';
import { sandboxImage, sandboxProgram } from './image.ts';

/** Its program needs a few pages; the engine refuses less than 6 MiB. */
const sandboxMemoryBytes = 16 * MiB;

/**
 * The container's ports in the order of their names, such as `53/udp,80/tcp`; empty if there are
 * none. A container that is to be in no network has another shape, so that no sandbox that was in
 * one serves it.
 */
export type Shape = string;

export const shapeOf = (ports: readonly Port[], network: ContainerNetwork = usualNetwork): Shape =>
  `${network.mode === 'none' ? apart : ''}${[...new Set(ports.map(portKey))].sort().join(',')}`;

export function portsOf(shape: Shape): string[] {
  const ports = isApart(shape) ? shape.slice(apart.length) : shape;
  return ports === '' || ports === wayOut ? [] : ports.split(',');
}

/** Ports of the host that sandboxes publish at. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** `20000-31999` */
export function parsePortRange(text: string): PortRange | undefined {
  const [first, last, ...rest] = text.split('-').map((part) => (/^\d{1,5}$/.test(part.trim()) ? Number(part) : NaN));
  if (first === undefined || last === undefined || rest.length > 0) return undefined;
  return first >= 1 && first <= last && last <= 65_535 ? { first, last } : undefined;
}

/**
 * A free port for each of these, as far as this agent knows.
 * @param random at least 0, below 1
 * @returns `undefined` if the range has no more
 */
export function choosePorts(
  ports: readonly string[],
  { first, last }: PortRange,
  taken: ReadonlySet<number>,
  random: number,
): ReadonlyMap<string, number> | undefined {
  const size = last - first + 1;
  const chosen = new Map<string, number>();
  let at = Math.floor(random * size);
  for (let tried = 0; tried < size && chosen.size < ports.length; tried++, at = (at + 1) % size) {
    const port = ports[chosen.size];
    if (port !== undefined && !taken.has(first + at)) chosen.set(port, first + at);
  }
  return chosen.size === ports.length ? chosen : undefined;
}

/** The ports of the host that a label names. */
export const publishedFrom = (label: string | undefined): number[] =>
  (label ?? '').split(',').flatMap((port) => (/^\d{1,5}$/.test(port) ? [Number(port)] : []));

export const sandboxName = (owner: Owner, token: string): string => `${networkName(owner)}-sandbox-${token}`;

/** Body of `POST /containers/create`. The agent alone starts it again. */
export const sandboxBody = (
  owner: Owner,
  shape: Shape,
  publishAddress: string,
  published: ReadonlyMap<string, number>,
): ContainerBody => ({
  Image: `${sandboxImage.repository}:${sandboxImage.tag}`,
  Entrypoint: [sandboxProgram],
  User: '65534:65534',
  // It takes no other, as every process 1 without a handler: an engine that ends would wait for it.
  StopSignal: 'SIGKILL',
  Labels: {
    ...ownerLabels(owner),
    [labels.sandbox]: shape,
    [labels.published]: [...published.values()].join(','),
  },
  ExposedPorts: Object.fromEntries(Array.from(published.keys(), (port) => [port, {}])),
  HostConfig: {
    NetworkMode: networkName(owner),
    PortBindings: Object.fromEntries(
      Array.from(published, ([port, at]) => [port, [{ HostIp: publishAddress, HostPort: String(at) }]]),
    ),
    RestartPolicy: { Name: 'no' },
    Memory: sandboxMemoryBytes,
    MemorySwap: sandboxMemoryBytes,
    PidsLimit: 1,
    ReadonlyRootfs: true,
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges'],
    IpcMode: 'none',
    LogConfig: { Type: 'none' },
  },
});
