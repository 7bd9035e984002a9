/** Docker Swarm on the same engine: a service of one replica on a bridge network of its own. */
import { limits } from '../../schemas/limits.ts';
import { eventually, load, type BenchImage, type DockerEngine, type Peer } from './peer.ts';

const networkName = 'bench-swarm';

interface Task {
  readonly Status: {
    readonly State: string;
    readonly Err?: string;
    readonly ContainerStatus?: { readonly ContainerID: string };
  };
}

interface Service {
  readonly Version: { readonly Index: number };
  readonly Spec: object;
}

/**
 * Names the image by digest, as the `docker` command does. With a tag, Swarm would ask the registry
 * for each service.
 */
const specOf = (name: string, { registry, repository, digest }: BenchImage, network: string): object => ({
  Name: name,
  TaskTemplate: {
    ContainerSpec: {
      Image: `${registry}/${repository}@${digest}`,
      StopGracePeriod: load.stopGraceMs * 1_000_000,
      CapabilityDrop: ['CAP_NET_RAW'],
    },
    Resources: {
      Limits: { NanoCPUs: load.cpuMillis * 1_000_000, MemoryBytes: load.memBytes, Pids: limits.containerPids },
    },
    RestartPolicy: { Condition: 'none' },
    LogDriver: {
      Name: 'json-file',
      Options: { 'max-size': limits.engineLogFileSize, 'max-file': String(limits.engineLogFiles) },
    },
    Networks: [{ Target: network }],
  },
  Mode: { Replicated: { Replicas: 1 } },
  EndpointSpec: { Mode: 'dnsrr' },
});

/** A service that is updated. */
export interface Served {
  dockerId(): Promise<string>;
  /** Resolves to the container of the new version when it runs. */
  update(image: BenchImage): Promise<string>;
  remove(): Promise<void>;
}

export interface Swarm extends Peer {
  serve(image: BenchImage): Promise<Served>;
  leave(): Promise<void>;
}

export async function swarm(engine: DockerEngine): Promise<Swarm> {
  await engine.ask('POST', '/swarm/init', {
    ListenAddr: '127.0.0.1:0',
    AdvertiseAddr: '127.0.0.1',
    DataPathAddr: '127.0.0.1',
  });
  const network = JSON.parse(
    await engine.ask('POST', '/networks/create', {
      Name: networkName,
      Driver: 'bridge',
      Scope: 'swarm',
      Options: { 'com.docker.network.bridge.enable_icc': 'false' },
    }),
  ) as { Id: string };
  let count = 0;

  const tasksOf = (service: string): Promise<Task[]> =>
    engine.get(`/tasks?filters=${encodeURIComponent(JSON.stringify({ service: [service] }))}`);
  const running = async (service: string): Promise<string | undefined> => {
    const [task] = await tasksOf(service);
    const { State: state = 'none', Err: error = '', ContainerStatus: container } = task?.Status ?? {};
    if (['failed', 'rejected', 'complete'].includes(state))
      throw new Error(`the task of service ${service} is ${state}: ${error}`);
    return state === 'running' ? container?.ContainerID : undefined;
  };

  return {
    name: 'Docker Swarm',
    run: async (image) => {
      const spec = specOf(`bench-${(count += 1)}`, image, network.Id);
      const { ID: service } = JSON.parse(await engine.ask('POST', '/services/create', spec)) as { ID: string };
      const dockerId = await eventually(`service ${service} running`, () => running(service));
      return {
        dockerId: () => Promise.resolve(dockerId),
        stop: async () => {
          const { Version } = await engine.get<Service>(`/services/${service}`);
          const mode = { Mode: { Replicated: { Replicas: 0 } } };
          await engine.ask('POST', `/services/${service}/update?version=${Version.Index}`, { ...spec, ...mode });
          await eventually(`container of ${service} stopped`, async () => {
            const found = await engine.inspect(dockerId);
            return found?.State.Running === true ? undefined : true;
          });
        },
        remove: async () => {
          // Not measured: a kill avoids the wait for Swarm's gossip.
          if ((await engine.inspect(dockerId))?.State.Running === true) {
            await engine.ask('POST', `/containers/${dockerId}/kill`);
          }
          await engine.ask('DELETE', `/services/${service}`);
          await eventually(`container of ${service} gone`, async () =>
            (await engine.inspect(dockerId)) === undefined ? true : undefined,
          );
        },
      };
    },
    serve: async (image) => {
      const name = `bench-${(count += 1)}`;
      const spec = specOf(name, image, network.Id);
      const { ID: service } = JSON.parse(await engine.ask('POST', '/services/create', spec)) as { ID: string };
      const first = await eventually(`service ${service} running`, () => running(service));
      let last = first;
      return {
        dockerId: () => Promise.resolve(first),
        update: async (next) => {
          const { Version } = await engine.get<Service>(`/services/${service}`);
          const path = `/services/${service}/update?version=${Version.Index}`;
          await engine.ask('POST', path, specOf(name, next, network.Id));
          last = await eventually(`service ${service} updated`, async () => {
            const tasks = await tasksOf(service);
            const up = tasks.flatMap(({ Status: { State, ContainerStatus: made } }) =>
              State === 'running' && made !== undefined && made.ContainerID !== first ? [made.ContainerID] : [],
            );
            return up[0];
          });
          return last;
        },
        remove: async () => {
          await engine.ask('DELETE', `/services/${service}`);
          await eventually(`containers of ${service} gone`, async () => {
            const left = await Promise.all([first, last].map((id) => engine.inspect(id)));
            return left.every((one) => one === undefined) ? true : undefined;
          });
        },
      };
    },
    leave: async () => void (await engine.ask('POST', '/swarm/leave?force=1')),
  };
}
