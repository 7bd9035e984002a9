/**
 * Who runs a container: the engine alone, Longshore, Swarm. Each says when it knows that something
 * has happened.
 */
import { engineGet, engineRequest, parseEngineHost, type EngineAddress } from '../../dev/servers/engine-api.ts';
import { sleep } from '../../lib/backoff.ts';

const deadlineMs = 60_000;
export const pollMs = 5;

/** The same for every peer; `stopGraceMs` is the agent's default. */
export const load = { cpuMillis: 250, memBytes: 64 * 1024 * 1024, stopGraceMs: 10_000 } as const;

export interface BenchImage {
  readonly registry: string;
  readonly repository: string;
  readonly tag: string;
  readonly digest: string;
}

export interface Run {
  /** What the engine calls its container. */
  dockerId(): Promise<string>;
  /** Resolves when the peer says that it has stopped. */
  stop(): Promise<void>;
  /** Not measured: resolves when nothing of it is left. */
  remove(): Promise<void>;
}

export interface Peer {
  readonly name: string;
  /** Resolves when the peer says that it runs. */
  run(image: BenchImage): Promise<Run>;
}

export interface Inspected {
  readonly State: { readonly Status: string; readonly Running: boolean; readonly StartedAt: string };
}

export interface DockerEngine {
  get<T>(path: string): Promise<T>;
  /** @throws where it is refused. */
  ask(method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<string>;
  /** Undefined: there is none. */
  inspect(id: string): Promise<Inspected | undefined>;
  pull(reference: string): Promise<void>;
  /** Under all its names. */
  removeImage(reference: string): Promise<void>;
}

export function dockerEngine(host: string): DockerEngine {
  const address = parseEngineHost(host) as EngineAddress;
  const answer = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown) =>
    engineRequest(address, method, path, { deadlineMs, body });
  const ask: DockerEngine['ask'] = async (method, path, body) => {
    const { status, text } = await answer(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path.split('?')[0]}: ${status} ${text.trim()}`);
    return text;
  };
  return {
    get: (path) => engineGet(address, path, deadlineMs),
    ask,
    inspect: async (id) => {
      const { status, text } = await answer('GET', `/containers/${id}/json`);
      return status === 200 ? (JSON.parse(text) as Inspected) : undefined;
    },
    pull: async (reference) => {
      const progress = await ask('POST', `/images/create?fromImage=${encodeURIComponent(reference)}`);
      if (progress.includes('"error"')) throw new Error(`pull of ${reference}: ${progress.slice(-500)}`);
    },
    removeImage: async (reference) => {
      const { status, text } = await answer('GET', `/images/${reference}/json`);
      if (status === 404) return;
      const { Id } = JSON.parse(text) as { Id: string };
      await ask('DELETE', `/images/${Id}?force=1`);
    },
  };
}

/** @throws when it has not come to be by the deadline. */
export async function eventually<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const endMs = performance.now() + deadlineMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined) return seen;
    if (performance.now() > endMs) throw new Error(`${what}: not within ${deadlineMs} ms`);
    await sleep(pollMs);
  }
}
