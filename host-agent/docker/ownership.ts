/**
 * How a container, a network and a name on the engine are known as this host's own (invariant A4).
 * Pure.
 */
import { createHash } from 'node:crypto';
import type { ContainerId, HostKey } from '../../schemas/ids.ts';

/** Labels by which a container is known as ours (invariant A4), and for what it was made. */
export const labels = {
  cluster: 'longshore.cluster',
  host: 'longshore.host',
  tenant: 'longshore.tenant',
  container: 'longshore.container',
  placement: 'longshore.placement',
  spec: 'longshore.spec',
  image: 'longshore.image',
  /** For people: what the image was called. */
  reference: 'longshore.reference',
} as const;

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

export const networkName = ({ cluster, host }: Owner): string =>
  `longshore-${ownerHash({ cluster, host }).slice(0, 12)}`;

const ownerHash = (owner: Owner): string => createHash('sha256').update(JSON.stringify(owner)).digest('hex');
