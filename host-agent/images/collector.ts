/**
 * Removes unused images: those unused for long, and while the disk is too full more of them, by age
 * and size. An engine may be shared, so by default the agent removes only images that it pulled; it
 * records those, with the time of their last use. Images of any container, and of containers wanted
 * here, stay.
 */
import { join } from 'node:path';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import type { ImageSummary } from '../docker/answers.ts';
import { isRefusal } from '../docker/errors.ts';
import type { Engine } from '../docker/engine.ts';
import { createLazyFile, readDecoded } from '../disk/files.ts';
import type { Metrics } from '../metrics.ts';
import type { StateDisk } from '../disk/state-disk.ts';
import type { ImageAccess } from './access.ts';

/** Images in an agent's record of those that it pulled. */
const imagesRecorded = 5000;

export const imagePolicies = ['pulled', 'all', 'none'] as const;
export type ImagePolicy = (typeof imagePolicies)[number];

/** `reference`: the name that it was pulled by. */
export interface PulledImage {
  readonly id: string;
  readonly reference: string;
  readonly usedAtMs: number;
}

export interface ImageCollector {
  /** Removes one image after another while `goOn` says so. */
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
  /** What the engine is told to remove. */
  readonly name: string;
  readonly bytes: number;
  /** Of an image that others pulled, since 1970: nobody knows when it was used. */
  readonly unusedMs: number;
}

/**
 * The images that may be removed, first those that took the most room for the longest (bytes times
 * time unused): by `name`, so that other tags of an image stay. Pure.
 */
export function removalsOf(
  images: readonly ImageSummary[],
  pulled: readonly PulledImage[],
  kept: ReadonlySet<string>,
  { policy, nowMs }: { readonly policy: ImagePolicy; readonly nowMs: number },
): Removal[] {
  if (policy === 'none') return [];
  const usedAtMs = new Map<string, number>();
  for (const { id, usedAtMs: atMs } of pulled) usedAtMs.set(id, Math.max(atMs, usedAtMs.get(id) ?? 0));
  return images
    .filter(({ Id }) => !kept.has(Id) && (policy === 'all' || usedAtMs.has(Id)))
    .flatMap((image) => {
      const unusedMs = Math.max(0, nowMs - (usedAtMs.get(image.Id) ?? 0));
      return namesOf(image, pulled, policy).map((name) => ({ id: image.Id, name, bytes: image.Size ?? 0, unusedMs }));
    })
    .toSorted((left, right) => burden(right) - burden(left));
}

/** At least one of each, so that what is not known of one image still orders it by the other. */
const burden = ({ bytes, unusedMs }: Removal): number => (bytes + 1) * (unusedMs + 1);

function namesOf(
  { Id, RepoTags, RepoDigests }: ImageSummary,
  pulled: readonly PulledImage[],
  policy: ImagePolicy,
): readonly string[] {
  const tags = (RepoTags ?? []).filter((tag) => tag !== '<none>:<none>');
  // The image has no tag any more, or is known by a digest only.
  if (tags.length === 0) return (RepoDigests ?? []).length > 1 && policy !== 'all' ? [] : [Id];
  const own = new Set(pulled.filter(({ id }) => id === Id).map(({ reference }) => familiar(reference)));
  return tags.filter((tag) => policy === 'all' || own.has(tag));
}

/** As the engine shows a reference: `docker.io/library/nginx:1` → `nginx:1`. */
export const familiar = (reference: string): string => reference.replace(/^docker\.io\/(library\/(?=[^/]+$))?/, '');

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
    // Images that fall out of the record are never collected.
    for (const oldest of pulled.keys()) {
      if (pulled.size <= imagesRecorded) break;
      pulled.delete(oldest);
    }
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
      if (id !== undefined && (id !== before || pulled.has(key(id, reference)))) record(id, reference);
    },
  };

  /**
   * Adds the ids of images that are wanted here and were not looked up before. A container may be
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

  const remove = async ({ id, name, bytes, unusedMs }: Removal): Promise<void> => {
    try {
      if (!(await engine.removeImage(name))) return;
      parts.metrics.imageRemoved();
      log.info('image_removed', { image: id, name, bytes, unusedMs });
    } catch (error) {
      // A new container uses it, or it has names that the agent does not know.
      log[isRefusal(error, 409) ? 'debug' : 'warn']('image_remove_failed', { image: id, name, error });
    }
  };

  /** Removes what may go, in its order; `isNext` says whether an image is to go now. */
  const removeUnused = async (isNext: (removal: Removal) => Promise<boolean>): Promise<void> => {
    // An image that is pulled while the engine lists its images may be missing from the list.
    const before = [...pulled];
    const accessible = parts.access.images();
    const images = await engine.images();
    const present = new Set(images.map(({ Id }) => Id));
    for (const [entry, image] of before) {
      if (!present.has(image.id) && pulled.get(entry) === image) pulled.delete(entry);
    }
    for (const id of accessible) if (!present.has(id)) parts.access.forget(id);
    file.touch();
    if (policy === 'none') return;
    const kept = new Set(await engine.imagesInUse());
    const lookedUp = new Set<string>();
    await lookUpWanted(kept, lookedUp);
    for (const id of kept) used(id);
    for (const removal of removalsOf(images, [...pulled.values()], kept, { policy, nowMs: nowMs() })) {
      if (!(await isNext(removal))) continue;
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
