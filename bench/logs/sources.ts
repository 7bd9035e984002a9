/**
 * Containers that print what they receive on a port, created through Longshore or by the engine
 * alone.
 */
import { pushTestImage } from '../../dev/servers/registry.ts';
import type { Stack } from '../../dev/stack/stack.ts';
import { sleep } from '../../lib/time/backoff.ts';
import { engineBody } from '../docker/engine-alone.ts';
import { load, type BenchImage, type DockerEngine } from '../docker/peer.ts';
import type { Owner } from '../../host-agent/docker/ownership.ts';

export interface Source {
  /** Longshore's id of the container, or the engine's. */
  readonly id: string;
  /** Published port that takes the lines. */
  readonly port: number;
}

const port = 8080;
const deadlineMs = 60_000;
const pollMs = 250;

/** `tail` keeps the standard input of nc open; at its end nc would close the connection. */
const command = ['sh', '-c', `trap "exit 0" TERM; tail -f /dev/null | nc -l -p ${port} & wait $!`];

export async function pushPrinter(stack: Stack): Promise<BenchImage> {
  const { registry } = stack.image;
  const image = { repository: 'bench/printer', tag: '1' };
  const digest = await pushTestImage(registry, { ...image, cmd: command, exposedPorts: [port] });
  return { registry, ...image, digest };
}

export interface Sources {
  readonly all: readonly Source[];
  remove(): Promise<void>;
}

export async function declared({ api, tokens }: Stack, printer: BenchImage, count: number): Promise<Sources> {
  const { token } = tokens.tenants.other;
  const { registry, repository, tag } = printer;
  const one = async (number: number): Promise<Source> => {
    const { id } = await api.create(token, {
      name: `printer-${number}`,
      ...{ registry, repository, tag, ports: [port] },
      cpu_limit: String(load.cpuMillis / 1000),
      mem_limit: `${load.memBytes / 1024 ** 2}m`,
    });
    const endMs = performance.now() + deadlineMs;
    for (;;) {
      const { status, addresses } = await api.status(token, id);
      const [published] = addresses;
      if (status === 'running' && published !== undefined) {
        return { id, port: Number(published.address.split(':').at(-1)) };
      }
      if (performance.now() > endMs) throw new Error(`container ${id} is ${status} after ${deadlineMs} ms`);
      await sleep(pollMs);
    }
  };
  const all = await Promise.all(Array.from({ length: count }, (_, number) => one(number)));
  return {
    all,
    remove: async () => {
      for (const { id } of all) {
        await fetch(`${api.baseUrl}/api/v2/compute/${id}`, {
          method: 'DELETE',
          headers: { authorization: `Bearer ${token}` },
          signal: AbortSignal.timeout(deadlineMs),
        });
      }
    },
  };
}

interface Published {
  readonly NetworkSettings: { readonly Ports: Readonly<Record<string, readonly { readonly HostPort: string }[]>> };
}

export async function made(engine: DockerEngine, owner: Owner, printer: BenchImage, count: number): Promise<Sources> {
  const one = async (number: number): Promise<Source> => {
    const path = `/containers/create?name=bench-printer-${number}`;
    const { Id: id } = JSON.parse(await engine.ask('POST', path, engineBody(owner, printer, [port]))) as { Id: string };
    await engine.ask('POST', `/containers/${id}/start`);
    const { NetworkSettings } = await engine.get<Published>(`/containers/${id}/json`);
    return { id, port: Number(NetworkSettings.Ports[`${port}/tcp`]?.[0]?.HostPort) };
  };
  const all = await Promise.all(Array.from({ length: count }, (_, number) => one(number)));
  return {
    all,
    remove: async () => {
      for (const { id } of all) await engine.ask('DELETE', `/containers/${id}?force=1&v=1`);
    },
  };
}
