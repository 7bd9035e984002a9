/**
 * Removes unused images, the longest unused first, while the disk is too full. An engine may be
 * shared, so by default the agent removes only images that it pulled; it records those, with the
 * time of their last use. Images of any container, and of containers wanted here, stay.
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

/**
 * The images to remove, the longest unused first: by `name`, so that other tags of an image stay.
 * Pure.
 */
export function removalsOf(
  images: readonly ImageSummary[],
  pulled: readonly PulledImage[],
  kept: ReadonlySet<string>,
  policy: ImagePolicy,
): { readonly id: string; readonly name: string }[] {
  if (policy === 'none') return [];
  const usedAtMs = new Map<string, number>();
  for (const { id, usedAtMs: atMs } of pulled) usedAtMs.set(id, Math.max(atMs, usedAtMs.get(id) ?? 0));
  const idle = images
    .filter(({ Id }) => !kept.has(Id) && (policy === 'all' || usedAtMs.has(Id)))
    .toSorted((left, right) => (usedAtMs.get(left.Id) ?? 0) - (usedAtMs.get(right.Id) ?? 0));
  return idle.flatMap(({ Id, RepoTags, RepoDigests }) => {
    const tags = (RepoTags ?? []).filter((tag) => tag !== '<none>:<none>');
    // The image has no tag any more, or is known by a digest only.
    if (tags.length === 0) return (RepoDigests ?? []).length > 1 && policy !== 'all' ? [] : [{ id: Id, name: Id }];
    const own = new Set(pulled.filter(({ id }) => id === Id).map(({ reference }) => familiar(reference)));
    return tags.filter((tag) => policy === 'all' || own.has(tag)).map((tag) => ({ id: Id, name: tag }));
  });
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
      if (pulled.size <= limits.imagesRecorded) break;
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
      if ('Image' in body) used(String(body.Image));
      return result;
    },
    pull: async (reference, signal, onLine) => {
      const before = await engine.imageId(reference);
      await engine.pull(reference, signal, onLine);
      const id = await engine.imageId(reference);
      // An image that was present before the pull may belong to someone else.
      if (id !== undefined && (id !== before || pulled.has(key(id, reference)))) record(id, reference);
    },
  };

  /**
   * Ids of images that any container uses, or that are wanted here; records that they are in use
   * now.
   */
  const keptIds = async (): Promise<ReadonlySet<string>> => {
    const kept = new Set(await engine.imagesInUse());
    for (const reference of new Set(parts.wanted())) {
      const id = await engine.imageId(reference);
      if (id !== undefined) kept.add(id);
    }
    for (const id of kept) used(id);
    return kept;
  };

  const remove = async ({ id, name }: { id: string; name: string }): Promise<void> => {
    try {
      if (!(await engine.removeImage(name))) return;
      parts.metrics.imageRemoved();
      log.info('image_removed', { image: id, name });
    } catch (error) {
      // A new container uses it, or it has names that the agent does not know.
      log[isRefusal(error, 409) ? 'debug' : 'warn']('image_not_removed', { image: id, name, error });
    }
  };

  return {
    recording,
    collect: async (goOn) => {
      if (policy === 'none') return;
      // An image that is pulled while the engine lists its images may be missing from the list.
      const before = [...pulled];
      const images = await engine.images();
      const present = new Set(images.map(({ Id }) => Id));
      for (const [entry, image] of before) {
        if (!present.has(image.id) && pulled.get(entry) === image) pulled.delete(entry);
      }
      file.touch();
      const kept = await keptIds();
      for (const removal of removalsOf(images, [...pulled.values()], kept, policy)) {
        if (!(await goOn())) return;
        await remove(removal);
      }
    },
    flush: () => file.flush(),
  };
}
