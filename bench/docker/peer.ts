/** The systems that run a container: the engine alone, Longshore and Swarm. */
import { request } from 'node:http';
import { createInterface } from 'node:readline';
import { engineGet, engineRequest, parseEngineHost, type EngineAddress } from '../../dev/servers/engine-api.ts';
import { sleep } from '../../lib/time/backoff.ts';

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
  /** The engine's id of the container. */
  dockerId(): Promise<string>;
  /** Resolves when the peer knows that the container has stopped. */
  stop(): Promise<void>;
  /** Resolves when nothing of the container is left. Not measured. */
  remove(): Promise<void>;
  /** Ends its process. Resolves when the peer knows that it runs again. */
  crash?(): Promise<void>;
}

export interface Peer {
  readonly name: string;
  /** Resolves when the peer knows that the container runs. */
  run(image: BenchImage): Promise<Run>;
  /** Resolves when nothing that the peer does in the background is under way. */
  settle?(): Promise<void>;
}

export interface Inspected {
  readonly State: {
    readonly Status: string;
    readonly Running: boolean;
    readonly StartedAt: string;
    readonly FinishedAt: string;
  };
}

export interface DockerEngine {
  get<T>(path: string): Promise<T>;
  /** @throws if the engine refuses the call */
  ask(method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<string>;
  /** Undefined if the container does not exist. */
  inspect(id: string): Promise<Inspected | undefined>;
  /** Kills a container. Resolves at the engine's event that it has ended. */
  kill(id: string): Promise<void>;
  pull(reference: string): Promise<void>;
  /** Removes an image with all of its names. */
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
    kill: async (id) => {
      const died = await deathOf(address, id);
      await ask('POST', `/containers/${id}/kill`);
      await died.seen;
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

/** Resolves when the engine is listened to; `seen` at its event that the container has ended. */
function deathOf(address: EngineAddress, id: string): Promise<{ readonly seen: Promise<void> }> {
  const filters = encodeURIComponent(JSON.stringify({ container: [id], event: ['die'] }));
  const where =
    address.kind === 'unix' ? { socketPath: address.socketPath } : { host: address.host, port: address.port };
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(deadlineMs);
    const asked = request({ ...where, path: `/events?filters=${filters}`, agent: false, signal }, (answer) => {
      const seen = new Promise<void>((died, failed) => {
        answer.once('error', failed);
        createInterface({ input: answer })
          .once('line', () => {
            died();
            asked.destroy();
          })
          .once('error', failed);
      });
      resolve({ seen });
    });
    asked.once('error', reject);
    asked.end();
  });
}

/** Polls until `look` returns a value. @throws after the deadline */
export async function eventually<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const endMs = performance.now() + deadlineMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined) return seen;
    if (performance.now() > endMs) throw new Error(`${what}: not within ${deadlineMs} ms`);
    await sleep(pollMs);
  }
}
