/**
 * Which tenants have proved that they may use an image of this host: by a pull of it from the same
 * repository that succeeded, with their own login or without any. An engine keeps one set of images
 * for all, so an image that one tenant's login fetched is there for others to name; they pull it
 * first, and the registry decides (ADR 38).
 *
 * What is not known here is not proved. So a record that is lost costs pulls, and gives nothing
 * away.
 */
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { fileMarks, lineMarks, readContinuedFile } from '../disk/continued-file.ts';
import type { StateDisk } from '../disk/state-disk.ts';

export interface ImageAccess {
  /** Whether the tenant may use the image under this reference without a pull. */
  isProved(tenant: TenantId, imageId: string, reference: string): boolean;
  /** Only pulls with a login are known to have fetched it, from any repository. */
  isPrivate(imageId: string): boolean;
  /**
   * A pull of the reference has succeeded; `all`: without a login.
   * @param isVouched the registry has what it says, as far as the operator knows
   * @returns false: it proves nothing. The image is private to other tenants and came from other
   * repositories; a registry that knows its digest can name it without having it.
   */
  prove(who: TenantId | 'all', imageId: string, reference: string, isVouched: boolean): boolean;
  /** Images of which something is known. */
  images(): ReadonlySet<string>;
  /** The image is no longer on the engine. */
  forget(imageId: string): void;
  flush(): Promise<void>;
}

/** `all`: the repository gives it to everyone. */
type Provers = 'all' | ReadonlySet<TenantId>;

const StoredProvers = Type.Union([Type.Literal('all'), Type.Array(TenantId)]);
const StoredProof = Type.Object({ image: Type.String(), repository: Type.String() });
const decodeFile = decoder(
  Type.Object({ ...fileMarks, proofs: Type.Array(Type.Object({ ...StoredProof.properties, provers: StoredProvers })) }),
);
const decodeLine = decoder(
  Type.Object({
    ...lineMarks,
    /** No provers: forgotten. */
    proofs: Type.Array(Type.Object({ ...StoredProof.properties, provers: Type.Optional(StoredProvers) })),
  }),
);

/** `r.example:5000/team/web:1`, and the same by digest → `r.example:5000/team/web` */
export const repositoryOf = (reference: string): string => reference.replace(/@.*$/, '').replace(/:[^/:]*$/, '');

const keyOf = (imageId: string, repository: string): string => `${imageId} ${repository}`;
const namesIn = (key: string) => {
  const at = key.indexOf(' ');
  return { image: key.slice(0, at), repository: key.slice(at + 1) };
};

export async function loadImageAccess(stateDir: string, disk: StateDisk, log: Log): Promise<ImageAccess> {
  const { file, lines, follow } = await readContinuedFile({
    stateDir,
    name: 'image-access',
    decodeFile,
    decodeLine,
    intervalMs: limits.imagesFlushMs,
    disk,
    log,
  });
  const proofs = new Map<string, Provers>();
  for (const { proofs: read } of [...(file === undefined ? [] : [file]), ...lines]) {
    for (const { image, repository, provers } of read) {
      const key = keyOf(image, repository);
      if (provers === undefined) proofs.delete(key);
      else proofs.set(key, provers === 'all' ? 'all' : new Set(provers));
    }
  }

  /** What the disk does not know yet. */
  const changed = new Set<string>();
  const stored = (key: string) => {
    const provers = proofs.get(key);
    return {
      ...namesIn(key),
      ...(provers === undefined ? {} : { provers: provers === 'all' ? provers : [...provers] }),
    };
  };
  const writer = follow({
    whole: () => ({ proofs: [...proofs.keys()].map(stored) }),
    changes: () => {
      if (changed.size === 0) return undefined;
      const line = { proofs: [...changed].map(stored) };
      changed.clear();
      return line;
    },
  });
  const set = (key: string, provers: Provers | undefined): void => {
    proofs.delete(key);
    if (provers !== undefined) proofs.set(key, provers);
    changed.add(key);
    writer.touch();
  };

  /** Logins have fetched the image, and none of this tenant. */
  const isOfOthers = (who: TenantId | 'all', imageId: string): boolean => {
    const known = [...proofs].filter(([key]) => namesIn(key).image === imageId);
    return known.length > 0 && !known.some(([, provers]) => provers === 'all' || (who !== 'all' && provers.has(who)));
  };

  return {
    isProved: (tenant, imageId, reference) => {
      const provers = proofs.get(keyOf(imageId, repositoryOf(reference)));
      return provers === 'all' || provers?.has(tenant) === true;
    },
    isPrivate: (imageId) => isOfOthers('all', imageId),
    prove: (who, imageId, reference, isVouched) => {
      const key = keyOf(imageId, repositoryOf(reference));
      const before = proofs.get(key);
      if (before === undefined && !isVouched && isOfOthers(who, imageId)) return false;
      if (before === 'all' || (who !== 'all' && before?.has(who) === true)) return true;
      // What falls out must be proved again.
      if (who === 'all') set(key, 'all');
      else set(key, new Set([...(before ?? []), who].slice(-limits.imageProvers)));
      for (const oldest of proofs.keys()) {
        if (proofs.size <= limits.imagesRecorded) break;
        set(oldest, undefined);
      }
      return true;
    },
    images: () => new Set(Array.from(proofs.keys(), (key) => namesIn(key).image)),
    forget: (imageId) => {
      for (const key of [...proofs.keys()]) if (namesIn(key).image === imageId) set(key, undefined);
    },
    flush: () => writer.flush(),
  };
}
