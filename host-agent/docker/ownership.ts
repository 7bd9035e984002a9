/**
 * Labels and names that mark containers and networks on the engine as this host's own (invariant
 * A4). Pure.
 */
import { createHash } from 'node:crypto';
import { isContainerId, type ContainerId, type HostKey } from '../../schemas/ids.ts';

/** Labels that name the owner of a container (invariant A4), and its purpose. */
export const labels = {
  cluster: 'longshore.cluster',
  host: 'longshore.host',
  tenant: 'longshore.tenant',
  container: 'longshore.container',
  placement: 'longshore.placement',
  spec: 'longshore.spec',
  image: 'longshore.image',
  /** Only of a sandbox: what it publishes (sandbox/shape.ts). */
  sandbox: 'longshore.sandbox',
  /** Only of a sandbox: the ports of the host that it publishes at, whether it runs or not. */
  published: 'longshore.published',
  /** The name of the image, for people. */
  reference: 'longshore.reference',
  /** The digest that the name had when the container was made, and the time of that. */
  digest: 'longshore.digest',
  resolvedAt: 'longshore.resolved-at',
  /** Of a volume: its path in the container. */
  path: 'longshore.path',
} as const;

/** The labels that a container or an event of the engine bears. */
type Marks = Readonly<Record<string, string>> | null | undefined;

/** The id of the tenant's container; `undefined` if it is none. */
export function containerIn(marks: Marks): ContainerId | undefined {
  const id = marks?.[labels.container] ?? '';
  return isContainerId(id) ? id : undefined;
}

/** The tenant in the label; empty if there is no label. */
export const tenantIn = (marks: Marks): string => marks?.[labels.tenant] ?? '';

/**
 * The label of a sandbox; `undefined` if it is no sandbox. The engine gives a tenant's container
 * the labels of its image, so that a label of this name alone proves nothing.
 */
export const sandboxLabel = (marks: Marks): string | undefined =>
  marks?.[labels.container] === undefined ? marks?.[labels.sandbox] : undefined;

/** The prefix of the label of a sandbox whose container is to be in no network. */
export const apart = 'apart:';
export const isApart = (label: string): boolean => label.startsWith(apart);

/** The label’s value of the sandbox by which VPN peers reach the internet. */
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
