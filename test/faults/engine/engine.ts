/**
 * A container engine without containers: what the agent calls of the Docker Engine API, over a unix
 * socket, with the engine's own refusals (404, 409, 304), delays, and trouble of its own by a seed.
 * It writes down every run of every container, so that a judge can say what ran, and whether
 * anything ran twice.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { rmSync } from 'node:fs';
import { once } from 'node:events';
import { sleep } from '../../../lib/backoff.ts';
import type { Random } from '../../actors/support/random.ts';
import { labels as ours } from '../../../host-agent/docker/ownership.ts';

type Labels = Readonly<Record<string, string>>;

type State =
  | { readonly status: 'created' }
  | { readonly status: 'running'; readonly startedAt: string }
  | { readonly status: 'exited'; readonly startedAt: string; readonly finishedAt: string; readonly exitCode: number };

interface Made {
  readonly dockerId: string;
  readonly name: string;
  readonly labels: Labels;
  readonly network: string;
  state: State;
}

export interface Running {
  readonly dockerId: string;
  readonly tenant: string;
  readonly container: string;
}

export interface SimulatedEngine {
  /** As DOCKER_HOST names it. */
  readonly host: string;
  running(): readonly Running[];
  /** What ran twice at a time, in words. */
  readonly doubles: readonly string[];
  readonly counts: { created: number; started: number; removed: number; troubles: number };
  /**
   * Calls go wrong now and then: a connection is cut before the work or after it; and where a call
   * is about the tenant in bad luck, it may be refused with a 500.
   */
  setTrouble(isOn: boolean): void;
  /** One container of the tenant in bad luck ends by itself. False where none runs. */
  crashOne(): boolean;
  close(): Promise<void>;
}

/** A call goes wrong about once in so many. */
const cutOnceIn = 300;
const errorOnceIn = 50;
const delayMaxMs = 15;
const stopMaxMs = 300;
const pullMaxMs = 200;
const api = { Version: '20.10.24', ApiVersion: '1.41', MinAPIVersion: '1.12' };
const never = '0001-01-01T00:00:00Z';

class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: Buffer;
}

/** What is sent: JSON, nothing, or a stream that the handler has taken over. */
type Answer = { readonly status: number; readonly body?: unknown } | 'streamed';

const labelsAsked = (query: URLSearchParams): [string, string][] => {
  const { label = [] } = JSON.parse(query.get('filters') ?? '{}') as { label?: string[] };
  return label.map((each) => {
    const at = each.indexOf('=');
    return [each.slice(0, at), each.slice(at + 1)];
  });
};

const bears = (labels: Labels, asked: readonly (readonly [string, string])[]): boolean =>
  asked.every(([name, value]) => labels[name] === value);

/**
 * `unlucky`: the tenant whose containers crash and fail; the others have only the luck of their
 * connections.
 */
export async function startSimulatedEngine(
  socketPath: string,
  unlucky: string,
  random: Random,
): Promise<SimulatedEngine> {
  const containers = new Map<string, Made>();
  const images = new Map<string, string>();
  /** By what it is called, or by its id. */
  const imageOf = (name: string) => images.get(name) ?? [...images.values()].find((id) => id === name);
  const networks: { Id: string; Name: string; Created: string; Labels: Labels }[] = [];
  const listeners = new Set<{ readonly asked: [string, string][]; readonly response: ServerResponse }>();
  const doubles: string[] = [];
  const counts = { created: 0, started: 0, removed: 0, troubles: 0 };
  let hasTrouble = false;

  const newId = (): string => randomBytes(32).toString('hex');
  const pause = (maxMs: number): Promise<void> => sleep(random.below(maxMs));
  const tell = (action: string, { dockerId, labels }: Made): void => {
    const line = `${JSON.stringify({ Type: 'container', Action: action, Actor: { ID: dockerId, Attributes: labels } })}\n`;
    for (const { asked, response } of listeners) if (bears(labels, asked)) response.write(line);
  };
  const find = (idOrName: string): Made => {
    const found =
      containers.get(idOrName) ?? [...containers.values()].find(({ name }) => name === idOrName.replace(/^\//, ''));
    if (found === undefined) throw new Refusal(404, `No such container: ${idOrName}`);
    return found;
  };
  const end = (made: Made, exitCode: number): void => {
    if (made.state.status !== 'running') return;
    const { startedAt } = made.state;
    made.state = { status: 'exited', startedAt, finishedAt: new Date().toISOString(), exitCode };
    tell('die', made);
  };

  const create = ({ query, body }: Asked): Answer => {
    const name = query.get('name') ?? '';
    const wanted = JSON.parse(body.toString()) as {
      Image: string;
      Labels: Labels;
      HostConfig: { NetworkMode: string };
    };
    if (imageOf(wanted.Image) === undefined) throw new Refusal(404, `No such image: ${wanted.Image}`);
    const twin = [...containers.values()].find((each) => each.name === name);
    if (twin !== undefined) {
      throw new Refusal(
        409,
        `Conflict. The container name "/${name}" is already in use by container "${twin.dockerId}".`,
      );
    }
    const dockerId = newId();
    const network = wanted.HostConfig.NetworkMode;
    const made: Made = { dockerId, name, labels: wanted.Labels, network, state: { status: 'created' } };
    containers.set(dockerId, made);
    counts.created += 1;
    tell('create', made);
    return { status: 201, body: { Id: dockerId, Warnings: [] } };
  };

  const start = (made: Made): Answer => {
    if (made.state.status === 'running') return { status: 304 };
    if (!networks.some(({ Name }) => Name === made.network))
      throw new Refusal(404, `network ${made.network} not found`);
    const id = made.labels[ours.container];
    const twin = [...containers.values()].find(
      (each) => each !== made && each.labels[ours.container] === id && each.state.status === 'running',
    );
    if (twin !== undefined)
      doubles.push(`${id}: ${made.dockerId.slice(0, 12)} was started beside ${twin.dockerId.slice(0, 12)}`);
    made.state = { status: 'running', startedAt: new Date().toISOString() };
    counts.started += 1;
    tell('start', made);
    return { status: 204 };
  };

  const stop = async (made: Made): Promise<Answer> => {
    if (made.state.status !== 'running') return { status: 304 };
    await pause(stopMaxMs);
    end(made, 0);
    tell('stop', made);
    return { status: 204 };
  };

  const remove = (made: Made): Answer => {
    if (made.state.status === 'running') {
      throw new Refusal(409, `You cannot remove a running container ${made.dockerId}. Stop the container first`);
    }
    if (containers.delete(made.dockerId)) counts.removed += 1;
    tell('destroy', made);
    return { status: 204 };
  };

  const inspection = ({ dockerId, name, labels, state }: Made): unknown => ({
    Id: dockerId,
    Name: `/${name}`,
    State: {
      Status: state.status,
      OOMKilled: false,
      ExitCode: state.status === 'exited' ? state.exitCode : 0,
      Error: '',
      StartedAt: state.status === 'created' ? never : state.startedAt,
      FinishedAt: state.status === 'exited' ? state.finishedAt : never,
    },
    Config: { Labels: labels },
    NetworkSettings: { Ports: {} },
  });

  const pull = async ({ query }: Asked, response: ServerResponse): Promise<Answer> => {
    const reference = query.get('fromImage') ?? '';
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write(`${JSON.stringify({ status: `Pulling from ${reference}` })}\n`);
    await pause(pullMaxMs);
    images.set(reference, images.get(reference) ?? `sha256:${newId()}`);
    response.end(`${JSON.stringify({ status: 'Status: Downloaded newer image' })}\n`);
    return 'streamed';
  };

  /**
   * No container says anything: a follower waits until its container is down, another gets the end
   * at once.
   */
  const logs = (made: Made, { query }: Asked, response: ServerResponse): Answer => {
    response.writeHead(200, { 'content-type': 'application/vnd.docker.raw-stream' });
    response.flushHeaders();
    if (query.get('follow') !== '1') {
      response.end();
      return 'streamed';
    }
    const poll = setInterval(() => {
      // The follower may have left before this began.
      if (response.destroyed) clearInterval(poll);
      else if (made.state.status !== 'running') response.end();
    }, 100);
    response.once('close', () => clearInterval(poll));
    return 'streamed';
  };

  const events = ({ query }: Asked, response: ServerResponse): Answer => {
    const listener = { asked: labelsAsked(query), response };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    listeners.add(listener);
    response.once('close', () => listeners.delete(listener));
    return 'streamed';
  };

  const list = ({ query }: Asked): Answer => {
    const asked = labelsAsked(query);
    const found = [...containers.values()].filter(({ labels }) => bears(labels, asked));
    return {
      status: 200,
      body: found.map(({ dockerId, labels, state }) => ({
        Id: dockerId,
        State: state.status,
        Status: state.status,
        Labels: labels,
      })),
    };
  };

  const createNetwork = ({ body }: Asked): Answer => {
    const { Name, Labels: labels } = JSON.parse(body.toString()) as { Name: string; Labels: Labels };
    const Id = newId();
    networks.push({ Id, Name, Created: new Date().toISOString(), Labels: labels });
    return { status: 201, body: { Id } };
  };

  const removeNetwork = (id: string): Answer => {
    const at = networks.findIndex(({ Id }) => Id === id);
    if (at < 0) throw new Refusal(404, `network ${id} not found`);
    networks.splice(at, 1);
    return { status: 204 };
  };

  const handle = async (asked: Asked, response: ServerResponse): Promise<Answer> => {
    const { method, path, query } = asked;
    const [area = '', first = '', second = ''] = path.split('/').slice(1).map(decodeURIComponent);
    switch (`${method} ${area}`) {
      case 'GET version':
        return { status: 200, body: api };
      case 'GET info':
        return { status: 200, body: { NCPU: 64, MemTotal: 2 ** 40 } };
      case 'GET events':
        return events(asked, response);
      case 'GET networks': {
        const wanted = labelsAsked(query);
        return { status: 200, body: networks.filter(({ Labels: labels }) => bears(labels, wanted)) };
      }
      case 'POST networks':
        return createNetwork(asked);
      case 'DELETE networks':
        return removeNetwork(first);
      case 'POST images':
        return pull(asked, response);
      case 'GET images': {
        const id = imageOf(decodeURIComponent(path.slice('/images/'.length, -'/json'.length)));
        if (id === undefined) throw new Refusal(404, `No such image: ${path}`);
        return { status: 200, body: { Id: id, Config: null } };
      }
      case 'DELETE containers':
        return remove(find(first));
      case 'PUT containers':
        find(first);
        return { status: 200 };
      case 'GET containers':
        if (first === 'json') return list(asked);
        return second === 'logs' ? logs(find(first), asked, response) : { status: 200, body: inspection(find(first)) };
      case 'POST containers':
        if (first === 'create') return create(asked);
        if (second === 'start') return start(find(first));
        if (second === 'stop') return stop(find(first));
        break;
    }
    throw new Refusal(404, `page not found: ${method} ${path}`);
  };

  /** Images are named after tenants (workload.ts). */
  const isUnlucky = ({ path, body, query }: Asked): boolean => {
    const [, area = '', id = ''] = path.split('/');
    if (area === 'images')
      return path.includes(`/${unlucky}:`) || query.get('fromImage')?.includes(`/${unlucky}:`) === true;
    if (id === 'create') return body.includes(`"${ours.tenant}":"${unlucky}"`);
    return containers.get(id)?.labels[ours.tenant] === unlucky;
  };

  const troubleOf = (asked: Asked): 'error' | 'cut' | 'cut_after' | undefined => {
    if (!hasTrouble) return undefined;
    if (isUnlucky(asked) && random.once(errorOnceIn)) return 'error';
    if (!random.once(cutOnceIn)) return undefined;
    return random.pick(['cut', 'cut_after']);
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const url = new URL(request.url ?? '/', 'http://engine');
    const path = url.pathname.replace(/^\/v\d+\.\d+/, '');
    const asked = { method: request.method ?? '', path, query: url.searchParams, body: Buffer.concat(chunks) };
    await pause(delayMaxMs);
    const trouble = troubleOf(asked);
    if (trouble !== undefined) counts.troubles += 1;
    if (trouble === 'cut') return void response.destroy();
    if (trouble === 'error') throw new Refusal(500, 'the simulated engine has a bad moment');
    const answer = await handle(asked, response);
    if (answer === 'streamed') return;
    if (trouble === 'cut_after') return void response.destroy();
    response.writeHead(answer.status, { 'content-type': 'application/json' });
    response.end(answer.body === undefined ? undefined : JSON.stringify(answer.body));
  };

  rmSync(socketPath, { force: true });
  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      if (response.headersSent) return void response.destroy();
      const status = error instanceof Refusal ? error.status : 500;
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ message: error instanceof Error ? error.message : String(error) }));
    });
  });
  server.listen(socketPath);
  await once(server, 'listening');

  return {
    host: `unix://${socketPath}`,
    running: () =>
      [...containers.values()]
        .filter(({ state }) => state.status === 'running')
        .map(({ dockerId, labels }) => ({
          dockerId,
          tenant: labels[ours.tenant] ?? '',
          container: labels[ours.container] ?? '',
        })),
    doubles,
    counts,
    setTrouble: (isOn) => {
      hasTrouble = isOn;
    },
    crashOne: () => {
      const up = [...containers.values()].filter(
        ({ state, labels }) => state.status === 'running' && labels[ours.tenant] === unlucky,
      );
      const victim = up[random.below(Math.max(1, up.length))];
      if (victim !== undefined) end(victim, 1);
      return victim !== undefined;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
