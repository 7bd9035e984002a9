/**
 * Removes unused images: those unused for long, and while the disk is too full more of them, by age
 * and size. An engine may be shared, so by default the agent removes only images that it pulled; it
 * records those, with the time of their last use. Images of any container, and of containers wanted
 * here, stay.
 *
 * A tenant decides how many names an image has: each repository of its registry may have it. So
 * after a pull the oldest names go that no container here needs, of an image with many names and
 * of a full record.
 */
import { join } from 'node:path';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import type { ImageSummary } from '../docker/answers.ts';
import { isRefusal } from '../docker/errors.ts';
import type { Engine } from '../docker/engine.ts';
import { familiar, repositoryOf } from '../docker/image-names.ts';
import { createLazyFile, readDecoded } from '../disk/files.ts';
import type { Metrics } from '../metrics.ts';
import type { StateDisk } from '../disk/state-disk.ts';
import type { ImageAccess } from './access.ts';

/** Names of images in an agent's record of those that it pulled. */
const imagesRecorded = 5000;
/** Removals that are weighed against one another at a time, on an engine with more images. */
const removalsWeighed = 20_000;

export const imagePolicies = ['pulled', 'all', 'none'] as const;
export type ImagePolicy = (typeof imagePolicies)[number];

/** `reference` is the name that the image was pulled by. */
export interface PulledImage {
  readonly id: string;
  readonly reference: string;
  readonly usedAtMs: number;
}

export interface ImageCollector {
  /** Removes one image after another while `goOn` resolves to true. */
  collect(goOn: () => Promise<boolean>): Promise<void>;
  /** Removes images that it pulled and that were unused for so long. */
  collectUnused(ms: number): Promise<void>;
  /** The engine, with its pulls recorded. */
  readonly recording: Engine;
  flush(): Promise<void>;
}

export interface ImageCollectorParts {
  readonly engine: Engine;
  readonly stateDir: string;
  readonly policy: ImagePolicy;
  /** References of the containers that are desired on this host. */
  readonly wanted: () => Iterable<string>;
  readonly nowMs: () => number;
  /** Learns which images are left. */
  readonly access: Pick<ImageAccess, 'images' | 'forget'>;
  readonly metrics: Pick<Metrics, 'imageRemoved'>;
  readonly disk: StateDisk;
  readonly log: Log;
}

const decodeImages = decoder(
  Type.Object({
    v: Type.Literal(1),
    images: Type.Array(Type.Object({ id: Type.String(), reference: Type.String(), usedAtMs: Type.Number() })),
  }),
);

export interface Removal {
  readonly id: string;
  /** The name or id that the engine removes. */
  readonly name: string;
  readonly bytes: number;
  /**
   * Milliseconds. For an image that others pulled, the time since 1970: its last use is unknown.
   */
  readonly unusedMs: number;
}

/**
 * The removals that take away an image: one for each `name` that the agent pulled it by, so that
 * its other names stay. Pure.
 * @param pulled the records of this image
 */
export function removalsOf(
  image: ImageSummary,
  pulled: readonly PulledImage[],
  { policy, nowMs }: { readonly policy: ImagePolicy; readonly nowMs: number },
): Removal[] {
  if (policy === 'none' || (policy === 'pulled' && pulled.length === 0)) return [];
  const unusedMs = Math.max(0, nowMs - Math.max(0, ...pulled.map(({ usedAtMs }) => usedAtMs)));
  const { Id: id, Size: bytes = 0 } = image;
  return namesOf(image, pulled, policy).map((name) => ({ id, name, bytes, unusedMs }));
}

/** In descending order of bytes times time unused. */
export const inOrder = (removals: readonly Removal[]): Removal[] =>
  removals.toSorted((left, right) => burden(right) - burden(left));

/** Each factor is at least one, so that an unknown factor leaves the order to the other. */
const burden = ({ bytes, unusedMs }: Removal): number => (bytes + 1) * (unusedMs + 1);

function namesOf(
  { Id, RepoTags, RepoDigests }: ImageSummary,
  pulled: readonly PulledImage[],
  policy: ImagePolicy,
): readonly string[] {
  const tags = (RepoTags ?? []).filter((tag) => !tag.startsWith('<none>'));
  const tagged = new Set(tags.map(repositoryOf));
  // With the last tag of a repository, an engine forgets its digests.
  const digests = (RepoDigests ?? []).filter((name) => !name.startsWith('<none>') && !tagged.has(repositoryOf(name)));
  if (tags.length + digests.length === 0) return [Id];
  const own = new Set(pulled.map(({ reference }) => familiar(reference)));
  const repositories = new Set([...own].map(repositoryOf));
  return [
    ...tags.filter((tag) => policy === 'all' || own.has(familiar(tag))),
    ...digests.filter((name) => policy === 'all' || repositories.has(repositoryOf(familiar(name)))),
  ];
}

export async function createImageCollector(parts: ImageCollectorParts): Promise<ImageCollector> {
  const { engine, policy, nowMs, log } = parts;
  const path = join(parts.stateDir, 'images.json');
  const known = await readDecoded(path, decodeImages, log);
  const key = (id: string, reference: string): string => `${id} ${reference}`;
  const pulled = new Map<string, PulledImage>(
    (known?.images ?? []).map((image) => [key(image.id, image.reference), image]),
  );
  const file = createLazyFile(
    path,
    () => JSON.stringify({ v: 1, images: [...pulled.values()] }),
    limits.imagesFlushMs,
    parts.disk,
  );

  const record = (id: string, reference: string): void => {
    pulled.delete(key(id, reference));
    pulled.set(key(id, reference), { id, reference, usedAtMs: nowMs() });
    file.touch();
  };

  const used = (id: string): void => {
    for (const image of [...pulled.values()]) if (image.id === id) record(id, image.reference);
  };

  const recording: Engine = {
    ...engine,
    create: async (name, body) => {
      const result = await engine.create(name, body);
      used(body.Image);
      return result;
    },
    pull: async (reference, signal, options) => {
      const before = await engine.imageId(reference);
      await engine.pull(reference, signal, options);
      const id = await engine.imageId(reference);
      // An image that was present before the pull may belong to someone else.
      if (id === undefined || (id === before && !pulled.has(key(id, reference)))) return;
      record(id, reference);
      await trim(id).catch((error: unknown) => log.debug('images_collect_failed', { error }));
    },
  };

  /** Removes the oldest names of the image, and of a full record, that no container here needs. */
  const trim = async (id: string): Promise<void> => {
    const wanted = new Set(parts.wanted());
    const unneeded = [...pulled.values()].filter(({ reference }) => !wanted.has(reference));
    const ofImage = unneeded.filter((image) => image.id === id).slice(0, -limits.namesOfImage);
    const beyond = unneeded.slice(0, Math.max(0, pulled.size - imagesRecorded));
    for (const image of new Set([...ofImage, ...beyond])) await trimName(image);
  };

  const trimName = async (image: PulledImage): Promise<void> => {
    const { id, reference, usedAtMs } = image;
    // The name may belong to another image now.
    const isThere = policy !== 'none' && (await engine.imageId(reference)) === id;
    // Pulled again meanwhile.
    if (pulled.get(key(id, reference)) !== image) return;
    const removal = { id, name: reference, bytes: 0, unusedMs: Math.max(0, nowMs() - usedAtMs) };
    if (isThere && !(await remove(removal))) record(id, reference);
    else pulled.delete(key(id, reference));
  };

  /**
   * Adds the ids of images that are wanted here and were not resolved before. A container may be
   * declared while images are removed.
   */
  const lookUpWanted = async (kept: Set<string>, lookedUp: Set<string>): Promise<void> => {
    for (const reference of new Set(parts.wanted())) {
      if (lookedUp.has(reference)) continue;
      lookedUp.add(reference);
      const id = await engine.imageId(reference);
      if (id !== undefined) kept.add(id);
    }
  };

  /** @returns `false` if it is still there */
  const remove = async ({ id, name, bytes, unusedMs }: Removal): Promise<boolean> => {
    try {
      if (!(await engine.removeImage(name))) return true;
      parts.metrics.imageRemoved();
      log.info('image_removed', { image: id, name, bytes, unusedMs });
      return true;
    } catch (error) {
      // A new container uses it, or it has names that the agent does not know.
      log[isRefusal(error, 409) ? 'debug' : 'warn']('image_remove_failed', { image: id, name, error });
      return false;
    }
  };

  /**
   * Removes those unused images, in order of `burden`, for which `isNext` is true at their turn.
   */
  const removeUnused = async (isNext: (removal: Removal) => Promise<boolean>): Promise<void> => {
    // An image that is pulled while the engine lists its images may be missing from the list.
    const before = [...pulled];
    const ofImage = new Map<string, PulledImage[]>();
    for (const image of pulled.values()) ofImage.set(image.id, [...(ofImage.get(image.id) ?? []), image]);
    const accessible = parts.access.images();
    const gone = new Set([...ofImage.keys(), ...accessible]);
    const removals: Removal[] = [];
    await engine.images((image) => {
      gone.delete(image.Id);
      if (removals.length >= removalsWeighed) return;
      removals.push(...removalsOf(image, ofImage.get(image.Id) ?? [], { policy, nowMs: nowMs() }));
    });
    for (const [entry, image] of before) {
      if (gone.has(image.id) && pulled.get(entry) === image) pulled.delete(entry);
    }
    for (const id of accessible) if (gone.has(id)) parts.access.forget(id);
    file.touch();
    if (policy === 'none') return;
    const kept = new Set(await engine.imagesInUse());
    const lookedUp = new Set<string>();
    await lookUpWanted(kept, lookedUp);
    for (const id of kept) used(id);
    for (const removal of inOrder(removals)) {
      if (kept.has(removal.id) || !(await isNext(removal))) continue;
      await lookUpWanted(kept, lookedUp);
      if (!kept.has(removal.id)) await remove(removal);
    }
  };

  return {
    recording,
    collect: async (goOn) => {
      let isGoing = true;
      await removeUnused(async () => (isGoing &&= await goOn()));
    },
    collectUnused: (ms) => {
      const own = new Set([...pulled.values()].map(({ id }) => id));
      return removeUnused(({ id, unusedMs }) => Promise.resolve(own.has(id) && unusedMs >= ms));
    },
    flush: () => file.flush(),
  };
}
