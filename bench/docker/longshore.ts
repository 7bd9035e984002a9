/** A container through Longshore's API, timed until the tenant gets its status. */
import type { Stack } from '../../dev/stack/stack.ts';
import { load, type DockerEngine, type Peer } from './peer.ts';
import { labels } from '../../host-agent/docker/ownership.ts';

const waitSeconds = 60;

export function longshore({ api, tokens }: Stack, engine: DockerEngine): Peer {
  const { token } = tokens.tenants.other;
  let count = 0;
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
    name: 'Longshore',
    run: async ({ registry, repository, tag }) => {
      const { id } = await api.create(token, {
        name: `bench-${(count += 1)}`,
        ...{ registry, repository, tag },
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
      };
    },
  };
}
