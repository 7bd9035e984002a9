/** A container through Longshore's API, timed until the tenant gets its status. */
import { randomBytes } from 'node:crypto';
import type { Stack } from '../../dev/stack/stack.ts';
import { sleep } from '../../lib/time/backoff.ts';
import { eventually, load, type DockerEngine, type Peer } from './peer.ts';
import { labels } from '../../host-agent/docker/ownership.ts';

const waitSeconds = 60;
/** The agent begins to refill its pool within this time. */
const refillMs = 100;

export interface LongshoreOptions {
  readonly name?: string;
  /** Ports of the next container. */
  readonly ports?: () => readonly number[];
}

export function longshore(stack: Stack, engine: DockerEngine, options: LongshoreOptions = {}): Peer {
  const { api, tokens } = stack;
  const { name = 'Longshore', ports = () => [] } = options;
  const { token } = tokens.tenants.other;
  const ask = async (method: string, path: string): Promise<void> => {
    const answer = await fetch(`${api.baseUrl}/api/v2/compute/${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(waitSeconds * 1000),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    await answer.arrayBuffer();
  };
  const hasStatus = (id: string, status: string): Promise<void> =>
    ask('GET', `${id}/wait?status=${status}&timeout=${waitSeconds}`);
  const dockerIdOf = async (id: string): Promise<string> => {
    const filters = encodeURIComponent(JSON.stringify({ label: [`${labels.container}=${id}`] }));
    const [found] = await engine.get<{ Id: string }[]>(`/containers/json?all=1&filters=${filters}`);
    if (found === undefined) throw new Error(`the engine has no container of ${id}`);
    return found.Id;
  };
  return {
    name,
    run: async ({ registry, repository, tag }) => {
      const { id } = await api.create(token, {
        name: `bench-${randomBytes(6).toString('hex')}`,
        ...{ registry, repository, tag, ports: ports() },
        cpu_limit: String(load.cpuMillis / 1000),
        mem_limit: `${load.memBytes / 1024 ** 2}m`,
      });
      await hasStatus(id, 'running');
      return {
        dockerId: () => dockerIdOf(id),
        stop: async () => {
          await ask('POST', `${id}/stop`);
          await hasStatus(id, 'stopped');
        },
        remove: async () => {
          await ask('DELETE', id);
          await hasStatus(id, 'removed');
        },
        crash: async () => {
          await engine.kill(await dockerIdOf(id));
          await eventually(`${id} restarted`, async () => {
            const { status, restart_count: restarts } = await api.status(token, id);
            return restarts === 1 && status === 'running' ? true : undefined;
          });
        },
      };
    },
    settle: () => sandboxesSettled(stack, engine),
  };
}

/** Resolves when the agent's pool of sandboxes is full, and what it discards is gone. */
export async function sandboxesSettled({ metricsUrls }: Stack, engine: DockerEngine): Promise<void> {
  await sleep(refillMs);
  const filters = encodeURIComponent(JSON.stringify({ label: [labels.sandbox] }));
  await eventually('sandboxes settled', async () => {
    const pages = await Promise.all(metricsUrls.map(async (url) => (await fetch(url)).text()));
    const counted = [...pages.join().matchAll(/^longshore_agent_sandboxes\{state="\w+"\} (\d+)/gm)];
    const listed = await engine.get<{ State: string }[]>(`/containers/json?all=1&filters=${filters}`);
    const isUp = listed.every(({ State }) => State === 'running');
    return isUp && counted.reduce((sum, [, count]) => sum + Number(count), 0) === listed.length ? true : undefined;
  });
}
