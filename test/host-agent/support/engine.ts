/** The test's own calls to the engine: what really runs, whatever the agent says. */
import { engineGet, engineRequest, parseEngineHost, type EngineAddress } from '../../../dev/servers/engine-api.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { labels } from '../../../host-agent/docker/ownership.ts';
import { sandboxOf } from '../../../host-agent/docker/observed.ts';
import type { Lifetime } from '../../support/runner/lifetime.ts';

const deadlineMs = 60_000;

export interface Inspected {
  readonly Id: string;
  readonly Name: string;
  readonly State: {
    Status: string;
    Running: boolean;
    StartedAt: string;
    ExitCode: number;
    OOMKilled: boolean;
    Pid: number;
  };
  readonly Config: { Env: string[]; Labels: Record<string, string> };
  readonly Mounts: readonly { readonly Type: string; readonly Name?: string; readonly Destination: string }[];
  readonly HostConfig: Record<string, unknown>;
  readonly NetworkSettings: {
    /** The file of its network namespace. */
    SandboxKey: string;
    Ports: Record<string, { HostIp: string; HostPort: string }[] | null>;
    Networks: Record<string, { Gateway: string; IPAddress: string }>;
  };
}

export interface EngineView {
  /** Containers of one id, or of the whole cluster; sandboxes are not among them. */
  containers(id?: ContainerId): Promise<Inspected[]>;
  /** The one container of this id. */
  only(id: ContainerId): Promise<Inspected>;
  /** The container whose network the one container of this id uses: its sandbox, or itself. */
  networked(id: ContainerId): Promise<Inspected>;
  /** Names of the volumes that bear the labels of this container. */
  volumes(id: ContainerId): Promise<string[]>;
  /** Runs a command in the one container of this id. @returns its whole output, after its end */
  exec(id: ContainerId, command: readonly string[]): Promise<string>;
  call(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<{ status: number; text: string }>;
}

/** Removes containers, volumes and networks with the cluster's label when the test ends. */
export function viewEngine(t: Lifetime, dockerHost: string, cluster: string): EngineView {
  const address = parseEngineHost(dockerHost) as EngineAddress;
  const filter = (...more: string[]) =>
    encodeURIComponent(JSON.stringify({ label: [`${labels.cluster}=${cluster}`, ...more] }));
  const call: EngineView['call'] = (method, path, body) => engineRequest(address, method, path, { deadlineMs, body });
  const containers = async (id?: ContainerId): Promise<Inspected[]> => {
    const asked = filter(id === undefined ? labels.container : `${labels.container}=${id}`);
    const found = await engineGet<{ Id: string }[]>(address, `/containers/json?all=1&filters=${asked}`, deadlineMs);
    const inspected = await Promise.all(found.map(({ Id }) => call('GET', `/containers/${Id}/json`)));
    return inspected.flatMap(({ status, text }) => (status === 200 ? [JSON.parse(text) as Inspected] : []));
  };
  const volumes = async (...more: string[]): Promise<string[]> => {
    const path = `/volumes?filters=${filter(...more)}`;
    const { Volumes } = await engineGet<{ Volumes: { Name: string }[] | null }>(address, path, deadlineMs);
    return (Volumes ?? []).map(({ Name }) => Name);
  };
  t.teardown(async () => {
    const all = `/containers/json?all=1&filters=${filter()}`;
    for (const { Id } of await engineGet<{ Id: string }[]>(address, all, deadlineMs)) {
      await call('DELETE', `/containers/${Id}?force=1&v=1`);
    }
    for (const name of await volumes()) await call('DELETE', `/volumes/${name}`);
    const networks = await engineGet<{ Id: string }[]>(address, `/networks?filters=${filter()}`, deadlineMs);
    for (const { Id } of networks) await call('DELETE', `/networks/${Id}`);
  });
  const only: EngineView['only'] = async (id) => {
    const [container, ...others] = await containers(id);
    if (container === undefined || others.length > 0)
      throw new Error(`${id} has ${container === undefined ? 0 : others.length + 1} containers, not one`);
    return container;
  };
  return {
    containers,
    only,
    networked: async (id) => {
      const container = await only(id);
      const sandbox = sandboxOf(String(container.HostConfig['NetworkMode']));
      if (sandbox === undefined) return container;
      return JSON.parse((await call('GET', `/containers/${sandbox}/json`)).text) as Inspected;
    },
    volumes: (id) => volumes(`${labels.container}=${id}`),
    exec: async (id, command) => {
      const { Id } = await only(id);
      // With a terminal, the answer is the text alone.
      const made = await call('POST', `/containers/${Id}/exec`, { Cmd: command, AttachStdout: true, Tty: true });
      const exec = JSON.parse(made.text) as { Id: string };
      return (await call('POST', `/exec/${exec.Id}/start`, { Detach: false, Tty: true })).text;
    },
    call,
  };
}
