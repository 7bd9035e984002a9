/** Calls about images. */
import { withAbort } from '../../../lib/time/backoff.ts';
import { limits } from '../../../schemas/limits.ts';
import { decode, shapes, type ImageDetails, type ImageSummary } from '../answers.ts';
import { asEngineError, EngineError } from '../errors.ts';
import { digestFor } from '../image-names.ts';
import { Some, type Shape } from '../json-filter.ts';
import { lines } from '../ndjson.ts';
import { PullLines } from '../pull-progress.ts';
import { parse, type EngineClient } from './client.ts';

/** The factor by which the time without progress is longer while a pull waits for other pulls. */
const enginePullQueuedTimes = 30;

export interface ImageCalls {
  /** The id of an image; `undefined` if it is not present. */
  imageId(reference: string): Promise<string | undefined>;
  /**
   * The image's configuration, and its digest in the repository of the reference; `undefined` if
   * there is no such image. Rejects with the fault `oversized` if its maker's text is beyond
   * `limits.imageConfigBytes`.
   */
  imageDetails(id: string, reference: string): Promise<ImageDetails | undefined>;
  pull(reference: string, signal: AbortSignal, options?: PullOptions): Promise<void>;
  /**
   * Makes the registry decide whether it gives this manifest. A pull by digest does not: engines
   * use a manifest that they have for everyone who asks.
   */
  checkAccess(reference: string, signal: AbortSignal, login?: RegistryLogin): Promise<void>;
  /** Passes on all images of the engine, one after another, as they arrive. */
  images(each: (image: ImageSummary) => void): Promise<void>;
  /** Ids of the images of all containers of the engine. */
  imagesInUse(): Promise<string[]>;
  /**
   * Removes one name, and the image with its last name.
   * @returns `false` if there is no such image
   * @throws EngineError with status 409 while it is in use
   */
  removeImage(name: string): Promise<boolean>;
  /** Imports a tar archive as the files of an image. */
  importImage(repository: string, tag: string, tar: Uint8Array): Promise<void>;
}

export interface PullOptions {
  /** Called for each line with news, always with the same object. */
  readonly onLine?: ((said: PullLines) => void) | undefined;
  /** The login for the registry of the reference; `undefined` for a pull without a login. */
  readonly login?: RegistryLogin | undefined;
}

export interface RegistryLogin {
  readonly username: string;
  readonly password: string;
}

/**
 * The header that carries a login. Engines decode base64url with padding alone, and treat a value
 * that they cannot decode as no login.
 */
export function authHeader({ username, password }: RegistryLogin, registry: string): string {
  // Docker Hub's name from the time of its first API is the one that engines know.
  const serveraddress = registry === dockerHub ? 'https://index.docker.io/v1/' : registry;
  const json = Buffer.from(JSON.stringify({ username, password, serveraddress }));
  return json.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}

const headersOf = (reference: string, login: RegistryLogin | undefined) =>
  login === undefined ? {} : { 'x-registry-auth': authHeader(login, registryOf(reference)) };

const dockerHub = 'docker.io';

/** A reference always begins with its registry (spec/reference.ts). */
export const registryOf = (reference: string): string => reference.slice(0, reference.indexOf('/'));

/** @param pullIdleMs a pull that makes no progress for this long has stalled */
export const imageCalls = ({ ask, open }: EngineClient, pullIdleMs: number): ImageCalls => ({
  imageId: async (reference) => {
    const name = 'image inspect';
    const call = { name, method: 'GET', path: `/images/${reference}/json`, keep: shapes.image } as const;
    const reply = await ask(call, [200, 404]);
    return reply.status === 404 ? undefined : parse(name, decode.image, reply).Id;
  },
  imageDetails: async (id, reference) => {
    const name = 'image inspect';
    const maxBytes = limits.imageConfigBytes;
    // An image may have thousands of names from others: one counts.
    const RepoDigests: Shape = [new Some(1, (known) => digestFor(reference, [known]) !== undefined)];
    const keep = { ...shapes.imageDetails, RepoDigests };
    const reply = await ask({ name, method: 'GET', path: `/images/${id}/json`, keep, maxBytes }, [200, 404]);
    if (reply.status === 404) return undefined;
    // Only its size counts.
    const history = { name: 'image history', method: 'GET', path: `/images/${id}/history` } as const;
    await ask({ ...history, keep: shapes.history, maxBytes }, [200, 404]);
    const { Id, RepoDigests: digests, Config } = parse(name, decode.imageDetails, reply);
    return { Id, RepoDigests: digests ?? null, Config: Config ?? null };
  },

  pull: async (reference, signal, { onLine, login } = {}) => {
    const name = 'image pull';
    const headers = headersOf(reference, login);
    const said = new PullLines();
    // While it waits for other pulls of the engine, its registry is not to blame.
    const idle = createIdle(pullIdleMs, () => said.isQueued());
    const deadline = AbortSignal.timeout(limits.enginePullMs);
    const path = `/images/create?fromImage=${encodeURIComponent(reference)}`;
    const follow = async ({ signal: ending }: AbortController): Promise<void> => {
      // The engine sends its headers with the first progress.
      const call = { name, method: 'POST', path, headers, deadlineMs: limits.enginePullMs, signal: ending } as const;
      const { stream } = await open(call);
      ending.addEventListener('abort', () => stream.destroy(), { once: true });
      for await (const line of lines(stream, limits.engineLineBytes)) {
        const told = decode.pullLine(line);
        const failure = told.error ?? told.errorDetail?.message;
        if (failure !== undefined) throw new EngineError(name, { kind: 'refused', status: 200 }, failure);
        if (!said.note(told)) continue;
        idle.progress();
        onLine?.(said);
      }
      // A stream that was destroyed may end without an error.
      ending.throwIfAborted();
    };
    try {
      await withAbort([signal, deadline, idle.signal], follow);
    } catch (error) {
      throw pullError(error, { signal, deadline, idle: idle.signal }, pullIdleMs);
    } finally {
      idle.end();
    }
  },

  checkAccess: async (reference, signal, login) => {
    const bounds = { headers: headersOf(reference, login), signal, deadlineMs: pullIdleMs };
    const call = { name: 'registry check', method: 'GET', path: `/distribution/${reference}/json`, ...bounds } as const;
    try {
      await ask(call, [200]);
    } catch (error) {
      if (!(error instanceof EngineError) || error.fault.kind !== 'deadline') throw error;
      // The registry is slow, and the engine waits for it.
      throw new EngineError(call.name, { kind: 'stalled', ms: pullIdleMs }, error.detail, error);
    }
  },

  images: async (each) => {
    const name = 'image list';
    const onElement = (body: Buffer): void => each(parse(name, decode.imageSummary, { body }));
    await ask({ name, method: 'GET', path: '/images/json', keep: shapes.images, onElement }, [200]);
  },
  imagesInUse: async () => {
    const path = '/containers/json?all=1';
    const call = { name: 'images in use', method: 'GET', path, keep: shapes.imagesInUse } as const;
    return parse(call.name, decode.imagesInUse, await ask(call, [200])).map(({ ImageID }) => ImageID);
  },
  removeImage: async (reference) => {
    const call = { name: 'image remove', method: 'DELETE', path: `/images/${reference}` } as const;
    return (await ask(call, [200, 404])).status === 200;
  },
  importImage: async (repository, tag, tar) => {
    const path = `/images/create?fromSrc=-&repo=${encodeURIComponent(repository)}&tag=${encodeURIComponent(tag)}`;
    const body = { type: 'application/x-tar', bytes: tar };
    await ask({ name: 'image import', method: 'POST', path, body }, [200]);
  },
});

/** Aborts after `ms` without progress; while `isExcused`, after several times as long. */
function createIdle(ms: number, isExcused: () => boolean) {
  const controller = new AbortController();
  let times = 0;
  const timer: NodeJS.Timeout = setTimeout(() => {
    times += 1;
    if (isExcused() && times < enginePullQueuedTimes) timer.refresh();
    else controller.abort();
  }, ms);
  return {
    signal: controller.signal,
    progress: () => {
      times = 0;
      timer.refresh();
    },
    end: () => clearTimeout(timer),
  };
}

/** Says which of its three signals ended a pull. */
function pullError(
  error: unknown,
  { signal, deadline, idle }: Readonly<Record<'signal' | 'deadline' | 'idle', AbortSignal>>,
  idleMs: number,
): EngineError {
  const name = 'image pull';
  if (signal.aborted) return new EngineError(name, { kind: 'aborted' }, 'given up');
  if (idle.aborted) {
    const message = `the registry sent nothing for ${idleMs / 1000} s`;
    return new EngineError(name, { kind: 'stalled', ms: idleMs }, message, error);
  }
  if (!deadline.aborted) return asEngineError(name, error);
  const ms = limits.enginePullMs;
  return new EngineError(name, { kind: 'deadline', ms }, `not done within ${ms} ms`, error);
}
