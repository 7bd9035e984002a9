/**
 * Labels and names that mark containers and networks on the engine as this host's own (invariant
 * A4). Pure.
 */
import { createHash } from 'node:crypto';
import { isContainerId, type ContainerId, type HostKey } from '../../schemas/ids.ts';

/** Labels that say whose a container is (invariant A4), and what it was made for. */
export const labels = {
  cluster: 'longshore.cluster',
  host: 'longshore.host',
  tenant: 'longshore.tenant',
  container: 'longshore.container',
  placement: 'longshore.placement',
  spec: 'longshore.spec',
  image: 'longshore.image',
  /** Of a sandbox, and of no container of a tenant: what it publishes (sandbox/shape.ts). */
  sandbox: 'longshore.sandbox',
  /** Of a sandbox: the ports of the host that it publishes at, whether it runs or not. */
  published: 'longshore.published',
  /** The name of the image, for people. */
  reference: 'longshore.reference',
  /** The digest that the name had when the container was made, and when that was. */
  digest: 'longshore.digest',
  resolvedAt: 'longshore.resolved-at',
  /** Of a volume: where its container has it. */
  path: 'longshore.path',
} as const;

/** The labels that a container or an event of the engine bears. */
type Marks = Readonly<Record<string, string>> | null | undefined;

/** The tenant's container that it is; undefined: it is none. */
export function containerIn(marks: Marks): ContainerId | undefined {
  const id = marks?.[labels.container] ?? '';
  return isContainerId(id) ? id : undefined;
}

/** Its tenant, as its label says; empty: it says none. */
export const tenantIn = (marks: Marks): string => marks?.[labels.tenant] ?? '';

/**
 * What a sandbox publishes; undefined: it is none. The engine gives a tenant's container the labels
 * of its image, so that a label of this name alone says nothing.
 */
export const sandboxLabel = (marks: Marks): string | undefined =>
  marks?.[labels.container] === undefined ? marks?.[labels.sandbox] : undefined;

/** Begins what the label of a sandbox says, if its container is to be in no network. */
export const apart = 'apart:';
export const isApart = (label: string): boolean => label.startsWith(apart);

/** What the label of the sandbox says by which VPN peers reach the internet. */
export const wayOut = 'way-out';

/** The agent creates, adopts and removes only containers with both labels (invariant A4). */
export interface Owner {
  readonly cluster: string;
  readonly host: HostKey;
}

export const ownerLabels = ({ cluster, host }: Owner) => ({ [labels.cluster]: cluster, [labels.host]: host });

export const isOwnedBy = (owner: Owner, marks: Marks): boolean =>
  marks?.[labels.cluster] === owner.cluster && marks[labels.host] === owner.host;

/**
 * One name for one container on one host. The engine refuses a second, so a create whose answer was
 * lost and its repetition never both run (invariant A5).
 * @param update names the update that makes it beside the copy that runs
 */
export const containerName = (owner: Owner, id: ContainerId, update?: number): string =>
  `longshore-${owner.host}-${id}${update === undefined ? '' : `-${update}`}`;

export const networkName = ({ cluster, host }: Owner): string =>
  `longshore-${ownerHash({ cluster, host }).slice(0, 12)}`;

const ownerHash = (owner: Owner): string => createHash('sha256').update(JSON.stringify(owner)).digest('hex');
