/**
 * The calls of the Docker Engine API that the agent makes; each answer is decoded here. Destructive
 * calls name a container by the engine's id, never by name: a call that takes effect after its
 * deadline must not hit a successor.
 */
import { limits } from '../../schemas/limits.ts';
import {
  decode,
  shapes,
  type EngineEvent,
  type ImageDetails,
  type ImageSummary,
  type Info,
  type Inspection,
  type Network,
  type Summary,
} from './answers.ts';
import { asEngineError, EngineError, listCall } from './errors.ts';
import { lines } from './ndjson.ts';
import { Sieve } from './sieve.ts';
import { readWhole, sift, type Call, type OpenReply, type Reply, type Transport } from './transport.ts';

/**
 * Older engines lack what the agent relies on; newer ones still speak the newest version that the
 * agent was tested with.
 */
const oldestApi = '1.41';
const newestApi = '1.51';

export interface Engine {
  /**
   * The engine's version. Negotiates the API version too, each time, since the engine may have been
   * replaced.
   */
  probe(deadlineMs: number): Promise<{ readonly version: string }>;
  info(): Promise<Info>;
  /** All containers, running or not, that bear every one of the labels. */
  list(labels: Labels): Promise<Summary[]>;
  /** Undefined: no such container. */
  inspect(id: string): Promise<Inspection | undefined>;
  create(name: string, body: object): Promise<CreateResult>;
  upload(id: string, tar: Uint8Array): Promise<void>;
  start(id: string): Promise<void>;
  /**
   * Sends SIGTERM (or the image's stop signal), then SIGKILL after the grace; resolves when the
   * container is down.
   */
  stop(id: string, graceMs: number): Promise<void>;
  unpause(id: string): Promise<void>;
  /** A container that is gone counts as removed. */
  remove(id: string): Promise<void>;
  /** The id of an image; undefined: it is not present. */
  imageId(reference: string): Promise<string | undefined>;
  /**
   * The image's configuration; undefined: no such image. Rejects as `oversized` beyond
   * `limits.imageConfigBytes`.
   */
  imageDetails(id: string): Promise<ImageDetails | undefined>;
  pull(reference: string, signal: AbortSignal): Promise<void>;
  /** All images of the engine. */
  images(): Promise<ImageSummary[]>;
  /** Ids of the images that any container of the engine is made of. */
  imagesInUse(): Promise<string[]>;
  /**
   * Removes one name, and the image with its last name. False: no such image. Rejects with 409
   * while it is in use.
   */
  removeImage(name: string): Promise<boolean>;
  /**
   * What a container has written to its own layer, and the names of its volumes. Undefined: no such
   * container.
   */
  written(id: string): Promise<{ readonly layerBytes: number; readonly volumes: string[] } | undefined>;
  /**
   * Sizes of all volumes, by name. Engines measure them all at once; older ones measure everything
   * else too.
   */
  volumeBytes(): Promise<ReadonlyMap<string, number>>;
  /** An image whose files are those of a tar archive. */
  importImage(repository: string, tag: string, tar: Uint8Array): Promise<void>;
  /** Networks that bear every one of the labels. */
  networks(labels: Labels): Promise<Network[]>;
  createNetwork(name: string, body: object): Promise<void>;
  /** False: containers use it. A network that is gone counts as removed. */
  removeNetwork(id: string): Promise<boolean>;
  logs(id: string, options: { follow: boolean; since: string }, signal: AbortSignal): Promise<OpenReply>;
  events(labels: Labels, signal: AbortSignal): Promise<AsyncIterable<EngineEvent>>;
  close(): void;
}

export type Labels = Readonly<Record<string, string>>;
export type CreateResult = { kind: 'created'; id: string } | { kind: 'name_taken' } | { kind: 'no_image' };

/** `pullIdleMs`: a pull that makes no progress for this long has stalled. */
export function createEngine(transport: Transport, pullIdleMs: number = limits.enginePullIdleMs): Engine {
  let api: string | undefined;

  const negotiate = async (deadlineMs: number): Promise<{ version: string; api: string }> => {
    const name = 'version';
    const reply = await transport.call({ name, method: 'GET', path: '/version', deadlineMs });
    const { Version, ApiVersion, MinAPIVersion } = parse(name, decode.version, expect(name, reply, [200]));
    const agreed = compareApi(ApiVersion, newestApi) > 0 ? newestApi : ApiVersion;
    if (compareApi(agreed, oldestApi) < 0 || (MinAPIVersion !== undefined && compareApi(agreed, MinAPIVersion) < 0)) {
      const theirs = `API ${MinAPIVersion ?? '?'} to ${ApiVersion}`;
      throw new EngineError(
        name,
        { kind: 'malformed' },
        `engine speaks ${theirs}, the agent ${oldestApi} to ${newestApi}`,
      );
    }
    api = agreed;
    return { version: `docker ${Version}`, api: agreed };
  };
  const prefixed = async (call: Call): Promise<Call> => ({
    ...call,
    path: `/v${api ?? (await negotiate(limits.engineProbeMs)).api}${call.path}`,
  });
  const ask = async (call: Call, accepted: readonly number[]): Promise<Reply> =>
    expect(call.name, await transport.call(await prefixed(call)), accepted);
  const open = async (call: Call): Promise<OpenReply> => {
    const reply = await transport.open(await prefixed(call));
    if (reply.status === 200) return reply;
    throw refusal(call.name, reply.status, await readWhole(call.name, reply.stream));
  };
  const post = (name: string, path: string, accepted: readonly number[], deadlineMs?: number) =>
    ask({ name, method: 'POST', path, ...(deadlineMs === undefined ? {} : { deadlineMs }) }, accepted);

  return {
    probe: async (deadlineMs) => ({ version: (await negotiate(deadlineMs)).version }),

    info: async () => {
      const reply = await ask({ name: 'info', method: 'GET', path: '/info' }, [200]);
      return parse('info', decode.info, reply);
    },

    list: async (labels) => {
      const name = listCall;
      const path = `/containers/json?all=1&filters=${labelFilter(labels)}`;
      return parse(name, decode.summaries, await ask({ name, method: 'GET', path, keep: shapes.summaries }, [200]));
    },

    inspect: async (id) => {
      const name = 'container inspect';
      const path = `/containers/${encodeURIComponent(id)}/json`;
      const reply = await ask({ name, method: 'GET', path, keep: shapes.inspection }, [200, 404]);
      return reply.status === 404 ? undefined : parse(name, decode.inspection, reply);
    },

    create: async (containerName, body) => {
      const name = 'container create';
      const path = `/containers/create?name=${encodeURIComponent(containerName)}`;
      const reply = await ask({ name, method: 'POST', path, body: json(body) }, [201, 404, 409]);
      switch (reply.status) {
        case 404:
          return { kind: 'no_image' };
        case 409:
          return { kind: 'name_taken' };
        default:
          return { kind: 'created', id: parse(name, decode.created, reply).Id };
      }
    },

    upload: async (id, tar) => {
      const path = `/containers/${id}/archive?path=${encodeURIComponent('/')}`;
      const body = { type: 'application/x-tar', bytes: tar };
      await ask({ name: 'archive put', method: 'PUT', path, body }, [200]);
    },

    start: async (id) => void (await post('container start', `/containers/${id}/start`, [204, 304])),
    stop: async (id, graceMs) => {
      const path = `/containers/${id}/stop?t=${Math.ceil(graceMs / 1000)}`;
      await post('container stop', path, [204, 304, 404], graceMs + limits.engineCallMs);
    },
    unpause: async (id) => void (await post('container unpause', `/containers/${id}/unpause`, [204, 404, 409])),
    remove: async (id) => {
      // 409: its removal is already under way.
      const call = { name: 'container remove', method: 'DELETE', path: `/containers/${id}?v=1` } as const;
      await ask(call, [204, 404, 409]);
    },

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

    pull: async (reference, signal) => {
      const name = 'image pull';
      const idle = createIdle(pullIdleMs);
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
          idle.progress();
          const { error } = decode.pullProgress(line);
          if (error !== undefined) throw new EngineError(name, { kind: 'refused', status: 200 }, error);
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
    written: async (id) => {
      const path = `/containers/${encodeURIComponent(id)}/json?size=1`;
      const bounds = { keep: shapes.written, deadlineMs: limits.diskMeasureMs };
      const call = { name: 'container size', method: 'GET', path, ...bounds } as const;
      const reply = await ask(call, [200, 404]);
      if (reply.status === 404) return undefined;
      const { SizeRw, Mounts } = parse(call.name, decode.written, reply);
      const volumes = (Mounts ?? []).flatMap(({ Type, Name }) =>
        Type === 'volume' && Name !== undefined ? [Name] : [],
      );
      return { layerBytes: SizeRw ?? 0, volumes };
    },
    volumeBytes: async () => {
      const bounds = { keep: shapes.diskUsage, deadlineMs: limits.diskMeasureMs };
      const call = { name: 'disk usage', method: 'GET', path: '/system/df?type=volume', ...bounds } as const;
      const { Volumes } = parse(call.name, decode.diskUsage, await ask(call, [200]));
      return new Map((Volumes ?? []).map(({ Name, UsageData }) => [Name, Math.max(0, UsageData?.Size ?? 0)]));
    },
    importImage: async (repository, tag, tar) => {
      const path = `/images/create?fromSrc=-&repo=${encodeURIComponent(repository)}&tag=${encodeURIComponent(tag)}`;
      const body = { type: 'application/x-tar', bytes: tar };
      await ask({ name: 'image import', method: 'POST', path, body }, [200]);
    },

    networks: async (labels) => {
      const name = 'network list';
      const path = `/networks?filters=${labelFilter(labels)}`;
      return parse(name, decode.networks, await ask({ name, method: 'GET', path }, [200]));
    },
    createNetwork: async (networkName, body) => {
      const call = { name: 'network create', method: 'POST', path: '/networks/create' } as const;
      await ask({ ...call, body: json({ ...body, Name: networkName }) }, [201]);
    },
    removeNetwork: async (id) => {
      const call = { name: 'network remove', method: 'DELETE', path: `/networks/${id}` } as const;
      return (await ask(call, [204, 404, 403, 409])).status < 400;
    },

    logs: (id, { follow, since }, signal) => {
      const query = `follow=${follow ? 1 : 0}&stdout=1&stderr=1&timestamps=1&since=${since}`;
      return open({ name: 'container logs', method: 'GET', path: `/containers/${id}/logs?${query}`, signal });
    },

    events: async (labels, signal) => {
      const path = `/events?filters=${labelFilter(labels, { type: ['container'] })}`;
      const { stream } = await open({ name: 'events', method: 'GET', path, signal });
      return decodeEvents(stream);
    },

    close: () => transport.close(),
  };
}

/** Aborts when `ms` pass without progress. */
function createIdle(ms: number) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), ms);
  return {
    signal: controller.signal,
    progress: () => void timer.refresh(),
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

async function* decodeEvents(stream: OpenReply['stream']): AsyncGenerator<EngineEvent> {
  const name = 'events';
  const sieve = new Sieve(shapes.event, limits.engineLineBytes);
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      for (const event of sift(name, () => sieve.push(chunk))) yield decode.event(event);
    }
  } catch (error) {
    throw asEngineError(name, error);
  }
}

const json = (value: object) => ({ type: 'application/json', bytes: Buffer.from(JSON.stringify(value)) });

const labelFilter = (labels: Labels, more: object = {}): string =>
  encodeURIComponent(
    JSON.stringify({ ...more, label: Object.entries(labels).map(([name, value]) => `${name}=${value}`) }),
  );

function expect(name: string, reply: Reply, accepted: readonly number[]): Reply {
  if (accepted.includes(reply.status)) return reply;
  throw refusal(name, reply.status, reply.body);
}

function refusal(name: string, status: number, body: Buffer): EngineError {
  let detail = body.toString('utf8').slice(0, 300);
  try {
    detail = decode.failure(body).message;
  } catch {
    // Not the engine's JSON, perhaps a proxy's page: the text as it is.
  }
  return new EngineError(name, { kind: 'refused', status }, detail || `status ${status}`);
}

function parse<T>(name: string, decoder: (bytes: Uint8Array) => T, reply: Reply): T {
  try {
    return decoder(reply.body);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new EngineError(name, { kind: 'malformed' }, detail, error);
  }
}

/** "1.9" is older than "1.41": the parts are numbers. */
export function compareApi(left: string, right: string): number {
  const [leftMajor = 0, leftMinor = 0] = left.split('.').map(Number);
  const [rightMajor = 0, rightMinor = 0] = right.split('.').map(Number);
  return leftMajor - rightMajor || leftMinor - rightMinor;
}
