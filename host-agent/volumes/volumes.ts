/**
 * Keeps the volumes that an image declares over every copy of its container on this host (ADR 46).
 *
 * The engine deletes none of these volumes with a copy. They go when their container is deleted, or
 * `limits.volumesLeftMs` after it has left this host; both only if its owner says that it is not
 * here any more (invariant A4).
 */
import type { Log } from '../../lib/log.ts';
import { isTenantId, type ContainerId, type TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { days } from '../../schemas/limits/units.ts';
import type { Stranger } from '../../schemas/wire/host.ts';
import type { Inspection } from '../docker/answers.ts';
import type { CachedEngine } from '../docker/cached-engine.ts';
import { volumePath } from '../docker/observed.ts';
import type { VolumeMount } from '../docker/calls/containers.ts';
import { containerIn, ownerLabels, tenantIn, type Owner } from '../docker/ownership.ts';
import type { Gone } from '../desired/desired-set.ts';
import { volumeLabels, volumeName, type VolumeOwner } from './names.ts';
import type { VolumeRecord } from './record.ts';

export interface Volumes {
  /**
   * Gives a new copy the volumes of its container at these paths: those that a copy has there now,
   * else new ones.
   * @throws EngineError
   */
  mounts(of: VolumeOwner, paths: readonly string[]): Promise<VolumeMount[]>;
  /**
   * Removes a copy; the volumes of its container stay.
   * @param leaves `true` if its container leaves this host
   * @throws EngineError
   */
  removeCopy(dockerId: string, leaves: boolean): Promise<void>;
  /**
   * The container is deleted, and its copies are gone. Does not reject: volumes that the engine
   * does not remove now go later.
   */
  remove(id: ContainerId): Promise<void>;
  /** Lists the engine's volumes. @throws EngineError */
  look(): Promise<void>;
  /**
   * Containers that are not here, but whose volumes are: their owners decide whether these may go.
   */
  strangers(): Stranger[];
  /** The verdicts of their owners. */
  applyVerdicts(named: readonly Stranger[], gone: Gone): Promise<void>;
  /** The number of containers that have left volumes here. */
  left(): number;
}

export interface VolumesParts {
  readonly engine: Pick<CachedEngine, 'idsOf' | 'inspect' | 'remove' | 'volumes' | 'removeVolume'>;
  readonly owner: Owner;
  readonly record: VolumeRecord;
  /** `true` if the desired set names the container. */
  readonly isWanted: (id: ContainerId) => boolean;
  /** `true` if the engine has a copy of it; `undefined` if not known yet. */
  readonly isPresent: (id: ContainerId) => boolean | undefined;
  /** A clock for waits, which never steps. */
  readonly steadyMs: () => number;
  readonly log: Log;
}

/**
 * The volumes of a copy, by the paths at which its processes see them. For a path that its image
 * declares as a relative one (`VOLUME data`), the engine makes one of its own below the agent's
 * mount there: its path is empty.
 */
function volumesOf({ Mounts }: Inspection): { readonly name: string; readonly path: string }[] {
  const mounts = Mounts ?? [];
  const isHidden = (path: string): boolean =>
    !path.startsWith('/') && mounts.some(({ Destination }) => Destination === volumePath(path));
  return mounts.flatMap(({ Type, Name: name, Destination: path }) =>
    Type === 'volume' && name !== undefined && path !== undefined
      ? [{ name, path: isHidden(path) ? '' : volumePath(path) }]
      : [],
  );
}

interface Known {
  readonly tenant: TenantId;
  readonly names: Set<string>;
}

export function createVolumes(parts: VolumesParts): Volumes {
  const { engine, owner, record, isWanted, isPresent, steadyMs, log } = parts;
  const { adopted, left } = record;
  /** Volumes with labels. */
  const known = new Map<ContainerId, Known>();
  let isListed = false;
  /** The last time at which the volumes that stay behind were counted. */
  const countedAtMs = new Map<ContainerId, number>();

  const note = ({ id, tenant }: VolumeOwner, name: string): void => {
    const before = known.get(id) ?? { tenant, names: new Set() };
    before.names.add(name);
    known.set(id, before);
  };
  const nameAt = (id: ContainerId, path: string): string =>
    adopted.get(id)?.at.findLast((each) => volumePath(each.path) === path)?.name ?? volumeName(owner, id, path);

  /** Takes in the volumes of a copy. @returns `true` if there is news */
  const adopt = (copy: Inspection): boolean => {
    const id = containerIn(copy.Config.Labels);
    const tenant = tenantIn(copy.Config.Labels);
    if (id === undefined || !isTenantId(tenant)) return false;
    const before = adopted.get(id)?.at ?? [];
    const news = volumesOf(copy).filter(({ name, path }) =>
      path === '' ? !before.some((each) => each.name === name) : name !== nameAt(id, path),
    );
    if (news.length === 0) return false;
    adopted.set(id, { id, tenant, at: [...before, ...news] });
    log.info('volumes_adopted', { container: id, volumes: news.map(({ name }) => name) });
    return true;
  };

  /** Volumes that no process sees go with their copy. */
  const removeHidden = async (id: ContainerId, copy: Inspection): Promise<void> => {
    const before = adopted.get(id);
    const hidden = volumesOf(copy).flatMap(({ name, path }) => (path === '' ? [name] : []));
    if (before === undefined || hidden.length === 0) return;
    const removed = await Promise.all(hidden.map((name) => engine.removeVolume(name)));
    const isGone = new Set(hidden.filter((_, at) => removed[at]));
    const at = before.at.filter(({ name }) => !isGone.has(name));
    if (at.length === 0) adopted.delete(id);
    else adopted.set(id, { ...before, at });
    record.touch();
  };

  const forget = (id: ContainerId): void => {
    known.delete(id);
    countedAtMs.delete(id);
    const wasAdopted = adopted.delete(id);
    if (left.delete(id) || wasAdopted) record.touch();
  };

  const ids = (): ContainerId[] => [...new Set([...known.keys(), ...adopted.keys()])];
  const strange = (): ContainerId[] => ids().filter((id) => !isWanted(id) && isPresent(id) === false);

  const look = async (): Promise<void> => {
    const before = Array.from(known, ([id, { names }]) => [id, [...names]] as const);
    const listed = await engine.volumes(ownerLabels(owner));
    const there = new Set(listed.map(({ Name }) => Name));
    for (const [id, names] of before) {
      const entry = known.get(id);
      for (const name of names) if (!there.has(name)) entry?.names.delete(name);
      if (entry?.names.size === 0) known.delete(id);
    }
    for (const { Name, Labels } of listed) {
      const id = containerIn(Labels);
      const tenant = tenantIn(Labels);
      if (id !== undefined && isTenantId(tenant)) note({ id, tenant }, Name);
    }
    isListed = true;
    for (const id of left.keys()) {
      if (!isWanted(id) && (known.has(id) || adopted.has(id))) continue;
      left.delete(id);
      countedAtMs.delete(id);
      record.touch();
    }
  };

  const namesOf = (id: ContainerId): string[] => [
    ...(known.get(id)?.names ?? []),
    ...(adopted.get(id)?.at ?? []).map(({ name }) => name),
  ];

  const remove = async (id: ContainerId): Promise<void> => {
    try {
      if (!isListed) await look();
      const names = namesOf(id);
      if (names.length === 0) return;
      const removed = await Promise.all(names.map((name) => engine.removeVolume(name)));
      log.info('volumes_removed', { container: id, volumes: names.filter((_, at) => removed[at]) });
      if (!removed.includes(false)) forget(id);
    } catch (error) {
      log.warn('volumes_remove_failed', { container: id, error });
    }
  };

  /** Its volumes may be removed in time from now on. */
  const leave = async (id: ContainerId): Promise<void> => {
    if (left.has(id)) return;
    left.set(id, 0);
    log.info('volumes_left', { container: id, volumes: namesOf(id), days: limits.volumesLeftMs / days });
    await record.sync();
  };
  /** @returns the milliseconds for which its volumes were kept by now */
  const count = (id: ContainerId): number => {
    const nowMs = steadyMs();
    const keptMs = (left.get(id) ?? 0) + nowMs - (countedAtMs.get(id) ?? nowMs);
    countedAtMs.set(id, nowMs);
    left.set(id, keptMs);
    record.touch();
    return keptMs;
  };

  return {
    mounts: async (of, paths) => {
      if (paths.length === 0) return [];
      const copies: Inspection[] = [];
      for (const dockerId of await engine.idsOf(of.id)) {
        const copy = await engine.inspect(dockerId);
        if (copy !== undefined) copies.push(copy);
      }
      // The volumes of the running copy take precedence.
      const upLast = copies.toSorted(
        (a, b) => Number(a.State.Status === 'running') - Number(b.State.Status === 'running'),
      );
      if (upLast.filter(adopt).length > 0) await record.sync();
      return paths.map((path): VolumeMount => {
        const name = nameAt(of.id, path);
        if (name === volumeName(owner, of.id, path)) note(of, name);
        return { Type: 'volume', Source: name, Target: path, VolumeOptions: { Labels: volumeLabels(owner, of, path) } };
      });
    },
    removeCopy: async (dockerId, leaves) => {
      const copy = await engine.inspect(dockerId);
      const id = containerIn(copy?.Config.Labels);
      if (copy === undefined || id === undefined) return engine.remove(dockerId, 'kept');
      // After the removal, the engine does not know whose they are.
      if (adopt(copy)) await record.sync();
      if (leaves && (copy.Mounts ?? []).some(({ Type }) => Type === 'volume')) await leave(id);
      // A copy that never ran has written nothing to the volumes that the engine made for it.
      await engine.remove(dockerId, copy.State.Status === 'created' ? undefined : 'kept');
      await removeHidden(id, copy);
    },
    remove,
    look,
    strangers: () =>
      strange().flatMap((id) => {
        const tenant = (known.get(id) ?? adopted.get(id))?.tenant;
        return tenant === undefined ? [] : [{ id, tenant, placement: 0 }];
      }),
    applyVerdicts: async (named, gone) => {
      const verdicts = new Map(gone.map((each) => [each.id, each]));
      const among = new Set(strange());
      for (const { id } of named) {
        if (!among.has(id)) continue;
        const verdict = verdicts.get(id);
        if (verdict !== undefined) await leave(id);
        if (!left.has(id)) continue;
        if (verdict?.deleted === true || count(id) >= limits.volumesLeftMs) await remove(id);
      }
    },
    left: () => strange().length,
  };
}
