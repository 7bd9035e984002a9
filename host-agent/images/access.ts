/**
 * Records which tenants have proved that they may use an image of this host: by a pull of it from
 * the same repository that succeeded, with their own login or without any. An engine keeps one set
 * of images for all, so an image that one tenant's login fetched is there for others to name; they
 * pull it first, and the registry decides (ADR 38).
 *
 * An access that is not recorded counts as not proved. So a lost record costs pulls, and gives
 * nothing away, with one exception: it no longer marks an image as private. A full record therefore
 * gives up proofs of the tenant that has the most, and never the last one of a private image.
 */
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { repositoryOf } from '../docker/image-names.ts';
import { fileMarks, lineMarks, readContinuedFile } from '../disk/continued-file.ts';
import type { StateDisk } from '../disk/state-disk.ts';

/** Proofs of access to images. */
export const imageProofs = 10_000;
/** Tenants that have a proof for the same image and repository. */
export const imageProvers = 1000;

/** Proofs that a full record gives up for a new one: each choice walks over the whole record. */
const imageProofsGoing = 8;

export interface ImageAccess {
  /** `true` if the tenant may use the image under this reference without a pull. */
  isProved(tenant: TenantId, imageId: string, reference: string): boolean;
  /** `true` if only pulls with a login are known to have fetched the image, from any repository. */
  isPrivate(imageId: string): boolean;
  /**
   * A pull of the reference has succeeded, for this tenant.
   * @param isPublic the pull had no login, so that the image is for all
   * @param isVouched the registry holds the images that it names, as far as the operator knows
   * @returns `false` if it proves nothing: the image is private to other tenants and came from
   * other repositories, and a registry that knows its digest can name it without having it
   */
  prove(who: Who, imageId: string, reference: string, isVouched: boolean): boolean;
  /** `false` if the tenant has as many private images here as a host records. */
  hasRoom(tenant: TenantId): boolean;
  /** The images that the record is about. */
  images(): ReadonlySet<string>;
  /** The image is no longer on the engine. */
  forget(imageId: string): void;
  flush(): Promise<void>;
}

export interface Who {
  readonly tenant: TenantId;
  readonly isPublic: boolean;
}

interface Proof {
  /** `true` if the repository gives it to everyone. */
  readonly isPublic: boolean;
  /**
   * The tenants that have proved it. For a public image, the first one; empty if an earlier release
   * recorded it.
   */
  readonly tenants: ReadonlySet<TenantId>;
}

const StoredProvers = Type.Union([Type.Literal('all'), Type.Array(TenantId)]);
const StoredProof = Type.Object({
  image: Type.String(),
  repository: Type.String(),
  /** The tenant that proved it, if `provers` is `all`. */
  by: Type.Optional(TenantId),
});
const decodeFile = decoder(
  Type.Object({ ...fileMarks, proofs: Type.Array(Type.Object({ ...StoredProof.properties, provers: StoredProvers })) }),
);
const decodeLine = decoder(
  Type.Object({
    ...lineMarks,
    /** An entry without `provers` was given up. */
    proofs: Type.Array(Type.Object({ ...StoredProof.properties, provers: Type.Optional(StoredProvers) })),
  }),
);

const weightOf = (tenants: ReadonlySet<TenantId>): number => Math.max(1, tenants.size);
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
  /** By image and repository, the oldest first. */
  const proofs = new Map<string, Proof>();
  const keysOf = new Map<string, Set<string>>();
  const put = (key: string, proof: Proof): void => {
    const { image } = namesIn(key);
    proofs.set(key, proof);
    keysOf.set(image, (keysOf.get(image) ?? new Set()).add(key));
  };
  const remove = (key: string): void => {
    const { image } = namesIn(key);
    proofs.delete(key);
    keysOf.get(image)?.delete(key);
    if (keysOf.get(image)?.size === 0) keysOf.delete(image);
  };
  for (const { proofs: read } of [...(file === undefined ? [] : [file]), ...lines]) {
    for (const { image, repository, provers, by } of read) {
      const key = keyOf(image, repository);
      if (provers === undefined) remove(key);
      else if (provers === 'all') put(key, { isPublic: true, tenants: new Set(by === undefined ? [] : [by]) });
      else put(key, { isPublic: false, tenants: new Set(provers) });
    }
  }

  /** The keys whose change is not on disk yet. */
  const changed = new Set<string>();
  const stored = (key: string) => {
    const { isPublic, tenants } = proofs.get(key) ?? {};
    if (tenants === undefined) return namesIn(key);
    const [by] = tenants;
    if (isPublic !== true) return { ...namesIn(key), provers: [...tenants] };
    return { ...namesIn(key), provers: 'all', ...(by === undefined ? {} : { by }) };
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
  const set = (key: string, proof: Proof | undefined): void => {
    remove(key);
    if (proof !== undefined) put(key, proof);
    changed.add(key);
    writer.touch();
  };

  /** `true` if logins have fetched the image, and none of them was this tenant's. */
  const isOfOthers = (tenant: TenantId | undefined, imageId: string): boolean => {
    const known = [...(keysOf.get(imageId) ?? [])].flatMap((key) => proofs.get(key) ?? []);
    const isOf = ({ isPublic, tenants }: Proof) => isPublic || (tenant !== undefined && tenants.has(tenant));
    return known.length > 0 && !known.some(isOf);
  };

  /** The proofs of each image; the last one of a private image must stay. */
  const byImage = (): Map<string, { count: number; isPublic: boolean }> => {
    const images = new Map<string, { count: number; isPublic: boolean }>();
    for (const [key, { isPublic, tenants }] of proofs) {
      const { image } = namesIn(key);
      const of = images.get(image) ?? { count: 0, isPublic: false };
      images.set(image, { count: of.count + weightOf(tenants), isPublic: of.isPublic || isPublic });
    }
    return images;
  };

  /** The oldest proof that may go, of the tenant with the most; `undefined` if all must stay. */
  const nextToGo = (): { key: string; tenant: TenantId | undefined } | undefined => {
    const images = byImage();
    const shares = new Map<TenantId | undefined, { count: number; oldest: string | undefined }>();
    for (const [key, { tenants }] of proofs) {
      const of = images.get(namesIn(key).image);
      const mustStay = of?.count === 1 && !of.isPublic;
      for (const tenant of tenants.size === 0 ? [undefined] : tenants) {
        const share = shares.get(tenant) ?? { count: 0, oldest: undefined };
        shares.set(tenant, { count: share.count + 1, oldest: share.oldest ?? (mustStay ? undefined : key) });
      }
    }
    let most: { key: string; tenant: TenantId | undefined; count: number } | undefined;
    for (const [tenant, { count, oldest }] of shares) {
      if (oldest !== undefined && count > (most?.count ?? 0)) most = { key: oldest, tenant, count };
    }
    return most;
  };

  const shrink = (): void => {
    let size = 0;
    for (const { tenants } of proofs.values()) size += weightOf(tenants);
    for (let gone = 0; size > imageProofs && gone < imageProofsGoing; gone += 1, size -= 1) {
      const next = nextToGo();
      if (next === undefined) return;
      const { isPublic = false, tenants = new Set<TenantId>() } = proofs.get(next.key) ?? {};
      const left = [...tenants].filter((tenant) => tenant !== next.tenant);
      // In the same place, so that the rest of the proof stays as old as it was.
      if (left.length > 0) put(next.key, { isPublic, tenants: new Set(left) });
      else remove(next.key);
      changed.add(next.key);
    }
  };

  return {
    isProved: (tenant, imageId, reference) => {
      const proof = proofs.get(keyOf(imageId, repositoryOf(reference)));
      return proof !== undefined && (proof.isPublic || proof.tenants.has(tenant));
    },
    isPrivate: (imageId) => isOfOthers(undefined, imageId),
    prove: ({ tenant, isPublic }, imageId, reference, isVouched) => {
      const key = keyOf(imageId, repositoryOf(reference));
      const before = proofs.get(key);
      const who = isPublic ? undefined : tenant;
      if (before === undefined && !isVouched && isOfOthers(who, imageId)) return false;
      if (before?.isPublic === true || (!isPublic && before?.tenants.has(tenant) === true)) return true;
      // A tenant that falls out must prove its access again.
      const tenants = isPublic ? [tenant] : [...(before?.tenants ?? []), tenant].slice(-imageProvers);
      set(key, { isPublic, tenants: new Set(tenants) });
      shrink();
      return true;
    },
    hasRoom: (tenant) => {
      const images = byImage();
      let own = 0;
      for (const [key, { tenants }] of proofs) {
        const of = images.get(namesIn(key).image);
        if (of?.count === 1 && !of.isPublic && tenants.has(tenant)) own += 1;
      }
      return own < limits.privateImagesOfTenant;
    },
    images: () => new Set(keysOf.keys()),
    forget: (imageId) => {
      for (const key of [...(keysOf.get(imageId) ?? [])]) set(key, undefined);
    },
    flush: () => writer.flush(),
  };
}
