/** Calls about images. */
import { limits } from '../../../schemas/limits.ts';
import { decode, shapes, type ImageDetails, type ImageSummary } from '../answers.ts';
import { asEngineError, EngineError } from '../errors.ts';
import { lines } from '../ndjson.ts';
import { PullLines } from '../pull-progress.ts';
import type { OpenReply } from '../transport.ts';
import { parse, type EngineClient } from './client.ts';

export interface ImageCalls {
  /** The id of an image; undefined: it is not present. */
  imageId(reference: string): Promise<string | undefined>;
  /**
   * The image's configuration; undefined: no such image. Rejects as `oversized` beyond
   * `limits.imageConfigBytes`.
   */
  imageDetails(id: string): Promise<ImageDetails | undefined>;
  /** `onLine` is called for each line that says something new, always with the same lines. */
  pull(reference: string, signal: AbortSignal, onLine?: (said: PullLines) => void): Promise<void>;
  /** All images of the engine. */
  images(): Promise<ImageSummary[]>;
  /** Ids of the images that any container of the engine is made of. */
  imagesInUse(): Promise<string[]>;
  /**
   * Removes one name, and the image with its last name. False: no such image. Rejects with 409
   * while it is in use.
   */
  removeImage(name: string): Promise<boolean>;
  /** An image whose files are those of a tar archive. */
  importImage(repository: string, tag: string, tar: Uint8Array): Promise<void>;
}

/** `pullIdleMs`: a pull that makes no progress for this long has stalled. */
export const imageCalls = ({ ask, open }: EngineClient, pullIdleMs: number): ImageCalls => ({
  imageId: async (reference) => {
    const name = 'image inspect';
    const call = { name, method: 'GET', path: `/images/${reference}/json`, keep: shapes.image } as const;
    const reply = await ask(call, [200, 404]);
    return reply.status === 404 ? undefined : parse(name, decode.image, reply).Id;
  },
  imageDetails: async (id) => {
    const name = 'image inspect';
    const bounds = { keep: shapes.imageDetails, maxBytes: limits.imageConfigBytes };
    const reply = await ask({ name, method: 'GET', path: `/images/${id}/json`, ...bounds }, [200, 404]);
    return reply.status === 404 ? undefined : parse(name, decode.imageDetails, reply);
  },

  pull: async (reference, signal, onLine) => {
    const name = 'image pull';
    const said = new PullLines();
    // While it waits for other pulls of the engine, its registry is not to blame.
    const idle = createIdle(pullIdleMs, () => said.isQueued());
    const deadline = AbortSignal.timeout(limits.enginePullMs);
    const ending = AbortSignal.any([signal, deadline, idle.signal]);
    const path = `/images/create?fromImage=${encodeURIComponent(reference)}`;
    let stream: OpenReply['stream'] | undefined;
    const abort = () => stream?.destroy();
    ending.addEventListener('abort', abort, { once: true });
    try {
      // The engine sends its headers with the first progress.
      ({ stream } = await open({ name, method: 'POST', path, deadlineMs: limits.enginePullMs, signal: ending }));
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
    } catch (error) {
      throw pullError(error, { signal, deadline, idle: idle.signal }, pullIdleMs);
    } finally {
      idle.end();
      ending.removeEventListener('abort', abort);
      stream?.destroy();
    }
  },

  images: async () => {
    const call = { name: 'image list', method: 'GET', path: '/images/json', keep: shapes.images } as const;
    return parse(call.name, decode.images, await ask(call, [200]));
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

/** Aborts when `ms` pass without progress; where that is excused, after several times as long. */
function createIdle(ms: number, isExcused: () => boolean) {
  const controller = new AbortController();
  let times = 0;
  const timer: NodeJS.Timeout = setTimeout(() => {
    times += 1;
    if (isExcused() && times < limits.enginePullQueuedTimes) timer.refresh();
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
