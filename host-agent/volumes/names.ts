/**
 * The volumes of a container on its host: one for each path that its image declares as VOLUME. They
 * are named by container and path, so every copy of the container mounts the same ones. Pure.
 */
import { createHash } from 'node:crypto';
import type { ContainerId, TenantId } from '../../schemas/ids.ts';
import type { ImageDetails } from '../docker/answers.ts';
import type { Labels } from '../docker/calls/client.ts';
import { volumePath } from '../docker/observed.ts';
import { containerName, labels, ownerLabels, type Owner } from '../docker/ownership.ts';

export interface VolumeOwner {
  readonly id: ContainerId;
  readonly tenant: TenantId;
}

export const volumeName = (owner: Owner, id: ContainerId, path: string): string =>
  `${containerName(owner, id)}-${createHash('sha256').update(path).digest('hex').slice(0, 12)}`;

export const volumeLabels = (owner: Owner, { id, tenant }: VolumeOwner, path: string): Labels => ({
  ...ownerLabels(owner),
  [labels.tenant]: tenant,
  [labels.container]: id,
  [labels.path]: path,
});

/** The paths that an image declares as VOLUME. The engine refuses the root itself. */
export function volumePaths({ Config }: ImageDetails): string[] {
  const paths = Object.keys(Config?.Volumes ?? {}).map(volumePath);
  return [...new Set(paths)].filter((path) => path !== '/');
}
