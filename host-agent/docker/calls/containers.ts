/**
 * Calls about containers. Destructive calls name a container by the engine's id, never by name: a
 * call that takes effect after its deadline must not hit a successor.
 */
import { sleep } from '../../../lib/time/backoff.ts';
import { limits } from '../../../schemas/limits.ts';
import { decode, shapes, type EngineEvent, type Inspection, type Stats, type Summary } from '../answers.ts';
import type { EngineLimits, KeptSettings } from '../kept-settings.ts';
import { asEngineError, listCall } from '../errors.ts';
import { JsonFilter, type Shape } from '../json-filter.ts';
import { filtering, type OpenReply } from '../transport.ts';
import { json, labelFilter, parse, type EngineClient, type Labels } from './client.ts';

/**
 * The time between two inspections of a container that was given another signal than its image's.
 */
const stopLookMs = 200;

export type CreateResult = { kind: 'created'; id: string } | { kind: 'name_taken' } | { kind: 'no_image' };

/** A file of the host in a container: an entry of the engine's `HostConfig.Mounts`. */
export interface BindMount {
  readonly Type: 'bind';
  readonly Source: string;
  readonly Target: string;
  readonly ReadOnly: true;
}

/**
 * A volume in a container: also an entry of `HostConfig.Mounts`. The engine makes the volume if it
 * is not there.
 */
export interface VolumeMount {
  readonly Type: 'volume';
  readonly Source: string;
  readonly Target: string;
  /** Labels of a volume that the engine makes; an existing volume keeps its own. */
  readonly VolumeOptions: { readonly Labels: Labels };
}

/** Body of `POST /containers/create`, as far as the agent itself reads it. */
export interface ContainerBody {
  readonly Image: string;
  readonly Labels: Labels;
  readonly HostConfig: {
    readonly NetworkMode?: string;
    readonly Mounts?: readonly { readonly Type: string; readonly Source: string; readonly Target: string }[];
    readonly [setting: string]: unknown;
  };
  readonly [setting: string]: unknown;
}

export interface ContainerCalls {
  /** All containers, running or not, that bear every one of the labels. */
  list(labels: Labels): Promise<Summary[]>;
  /** `undefined` if there is no such container. */
  inspect(id: string): Promise<Inspection | undefined>;
  create(name: string, body: ContainerBody): Promise<CreateResult>;
  upload(id: string, tar: Uint8Array): Promise<void>;
  start(id: string): Promise<void>;
  /**
   * Sends SIGTERM (or the image's stop signal), then SIGKILL after the grace; resolves when the
   * container is down.
   */
  stop(id: string, graceMs: number): Promise<void>;
  /**
   * As `stop`, with another signal than the image's. Engines take a signal in their stop only from
   * API 1.42 on.
   */
  stopBy(id: string, signal: string, graceMs: number): Promise<void>;
  /** Sends SIGKILL. A container that is down or gone counts as killed. */
  kill(id: string): Promise<void>;
  unpause(id: string): Promise<void>;
  /** Sets limits of a container while it runs. */
  update(id: string, limits: EngineLimits & Partial<KeptSettings>): Promise<void>;
  /**
   * A container that is gone counts as removed.
   * @param volumes `kept` leaves the volumes that the engine itself made for it; otherwise the
   * engine removes those that no other container uses
   */
  remove(id: string, volumes?: 'kept'): Promise<void>;
  /**
   * The bytes in the container's writable layer, and the names of its volumes. `undefined` if there
   * is no such container.
   */
  written(id: string): Promise<{ readonly layerBytes: number; readonly volumes: string[] } | undefined>;
  /** The container's current use of resources. `undefined` if there is no such container. */
  stats(id: string, deadlineMs: number): Promise<Stats | undefined>;
  logs(id: string, options: { follow: boolean; since: string }, signal: AbortSignal): Promise<OpenReply>;
  /** Events of containers that bear every one of the labels. */
  events(labels: Labels, signal: AbortSignal): Promise<AsyncIterable<EngineEvent>>;
  /**
   * Events after which the engine may have other images or networks. They contain only the action.
   */
  changes(signal: AbortSignal): Promise<AsyncIterable<EngineEvent>>;
}

export function containerCalls({ ask, post, open }: EngineClient): ContainerCalls {
  const inspect: ContainerCalls['inspect'] = async (id) => {
    const name = 'container inspect';
    const path = `/containers/${encodeURIComponent(id)}/json`;
    const reply = await ask({ name, method: 'GET', path, keep: shapes.inspection }, [200, 404]);
    return reply.status === 404 ? undefined : parse(name, decode.inspection, reply);
  };

  const isDownWithin = async (id: string, ms: number): Promise<boolean> => {
    const untilMs = performance.now() + ms;
    for (;;) {
      const { Status } = (await inspect(id))?.State ?? { Status: 'gone' };
      if (Status !== 'running') return true;
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) return false;
      await sleep(Math.min(leftMs, stopLookMs));
    }
  };

  return {
    list: async (labels) => {
      const name = listCall;
      const path = `/containers/json?all=1&filters=${labelFilter(labels)}`;
      return parse(name, decode.summaries, await ask({ name, method: 'GET', path, keep: shapes.summaries }, [200]));
    },
    inspect,

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
    stopBy: async (id, signal, graceMs) => {
      const query = `signal=${encodeURIComponent(signal)}`;
      await post('container signal', `/containers/${id}/kill?${query}`, [204, 404, 409]);
      if (await isDownWithin(id, graceMs)) return;
      await post('container kill', `/containers/${id}/kill`, [204, 404, 409]);
      await isDownWithin(id, limits.engineCallMs);
    },
    kill: async (id) => void (await post('container kill', `/containers/${id}/kill`, [204, 404, 409])),
    unpause: async (id) => void (await post('container unpause', `/containers/${id}/unpause`, [204, 404, 409])),
    update: async (id, limits) => {
      const call = { name: 'container update', method: 'POST', path: `/containers/${id}/update` } as const;
      await ask({ ...call, body: json(limits) }, [200]);
    },
    remove: async (id, volumes) => {
      // 409: its removal is already under way.
      const path = `/containers/${id}?v=${volumes === 'kept' ? 0 : 1}`;
      const call = { name: 'container remove', method: 'DELETE', path } as const;
      await ask(call, [204, 404, 409]);
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
    stats: async (id, deadlineMs) => {
      const path = `/containers/${id}/stats?stream=false&one-shot=true`;
      const call = { name: 'container stats', method: 'GET', path, keep: shapes.stats, deadlineMs } as const;
      const reply = await ask(call, [200, 404]);
      return reply.status === 404 ? undefined : parse(call.name, decode.stats, reply);
    },
    logs: (id, { follow, since }, signal) => {
      const query = `follow=${follow ? 1 : 0}&stdout=1&stderr=1&timestamps=1&since=${since}`;
      return open({ name: 'container logs', method: 'GET', path: `/containers/${id}/logs?${query}`, signal });
    },
    events: async (labels, signal) => {
      const path = `/events?filters=${labelFilter(labels, { type: ['container'] })}`;
      const { stream } = await open({ name: 'events', method: 'GET', path, signal });
      return decodeEvents(stream, shapes.event);
    },
    changes: async (signal) => {
      const path = `/events?filters=${labelFilter({}, { type: ['image', 'network'], event: changeActions })}`;
      const { stream } = await open({ name: 'events', method: 'GET', path, signal });
      return decodeEvents(stream, shapes.change);
    },
  };
}

const changeActions = ['create', 'destroy', 'remove', 'delete', 'import', 'load', 'pull', 'tag', 'untag'];

async function* decodeEvents(stream: OpenReply['stream'], shape: Shape): AsyncGenerator<EngineEvent> {
  const name = 'events';
  const filter = new JsonFilter(shape, limits.engineLineBytes);
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      for (const event of filtering(name, () => filter.push(chunk))) yield decode.event(event);
    }
  } catch (error) {
    throw asEngineError(name, error);
  }
}
