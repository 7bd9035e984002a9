/**
 * A container engine without containers, in the agent's own process: what the agent calls of the
 * Docker Engine API, answered in its JSON from memory, with no HTTP between. Every image is
 * present; every call is answered in the same tick.
 */
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Call, OpenReply, Reply, Transport } from '../../host-agent/docker/transport.ts';
import { labels as ours } from '../../host-agent/docker/ownership.ts';

type Labels = Readonly<Record<string, string>>;

interface Made {
  readonly dockerId: string;
  readonly name: string;
  readonly labels: Labels;
  status: 'created' | 'running' | 'exited';
  startedAt: string;
  finishedAt: string;
  /** Log streams that end when it does. */
  readonly followers: Set<Readable>;
}

export interface Counts {
  running: number;
  created: number;
  started: number;
  stopped: number;
  removed: number;
}

export interface MemoryEngine {
  readonly transport: Transport;
  readonly counts: Counts;
}

interface Answer {
  readonly status: number;
  readonly body?: unknown;
}

const version = { Version: '20.10.24', ApiVersion: '1.41', MinAPIVersion: '1.12' };
const info = { NCPU: 64, MemTotal: 2 ** 40 };
const imageId = `sha256:${'0'.repeat(64)}`;
const never = '0001-01-01T00:00:00Z';

const newId = (): string => randomBytes(32).toString('hex');
const refused = (status: number, message: string): Answer => ({ status, body: { message } });

/** A stream that its owner writes and ends. */
const openStream = (): Readable => new Readable({ read: () => undefined });

function labelsAsked(query: URLSearchParams): Labels {
  const { label = [] } = JSON.parse(query.get('filters') ?? '{}') as { label?: string[] };
  return Object.fromEntries(label.map((each) => [each.slice(0, each.indexOf('=')), each.slice(each.indexOf('=') + 1)]));
}

const bears = (labels: Labels, asked: Labels): boolean =>
  Object.entries(asked).every(([name, value]) => labels[name] === value);

export function createMemoryEngine(): MemoryEngine {
  const byId = new Map<string, Made>();
  const byName = new Map<string, Made>();
  const byContainer = new Map<string, Set<Made>>();
  const networks: { Id: string; Name: string; Created: string; Labels: Labels }[] = [];
  const listeners = new Set<Readable>();
  const counts: Counts = { running: 0, created: 0, started: 0, stopped: 0, removed: 0 };

  const tell = (action: string, { dockerId, labels }: Made): void => {
    if (listeners.size === 0) return;
    const line = `${JSON.stringify({ Type: 'container', Action: action, Actor: { ID: dockerId, Attributes: labels } })}\n`;
    for (const listener of listeners) listener.push(line);
  };
  const siblings = (labels: Labels): Set<Made> => {
    const id = labels[ours.container] ?? '';
    const known = byContainer.get(id) ?? new Set<Made>();
    byContainer.set(id, known);
    return known;
  };

  const create = (query: URLSearchParams, body: Uint8Array): Answer => {
    const name = query.get('name') ?? '';
    if (byName.has(name)) return refused(409, `Conflict. The container name "/${name}" is already in use.`);
    const { Labels: labels } = JSON.parse(Buffer.from(body).toString()) as { Labels: Labels };
    const dockerId = newId();
    const made: Made = {
      dockerId,
      name,
      labels,
      status: 'created',
      startedAt: never,
      finishedAt: never,
      followers: new Set(),
    };
    byId.set(dockerId, made);
    byName.set(name, made);
    siblings(labels).add(made);
    counts.created += 1;
    tell('create', made);
    return { status: 201, body: { Id: dockerId, Warnings: [] } };
  };

  const start = (made: Made): Answer => {
    if (made.status === 'running') return { status: 304 };
    made.status = 'running';
    made.startedAt = new Date().toISOString();
    counts.started += 1;
    counts.running += 1;
    tell('start', made);
    return { status: 204 };
  };

  const stop = (made: Made): Answer => {
    if (made.status !== 'running') return { status: 304 };
    made.status = 'exited';
    made.finishedAt = new Date().toISOString();
    counts.stopped += 1;
    counts.running -= 1;
    for (const follower of made.followers) follower.push(null);
    tell('die', made);
    return { status: 204 };
  };

  const remove = (made: Made): Answer => {
    if (made.status === 'running') return refused(409, 'You cannot remove a running container.');
    byId.delete(made.dockerId);
    byName.delete(made.name);
    siblings(made.labels).delete(made);
    counts.removed += 1;
    tell('destroy', made);
    return { status: 204 };
  };

  const inspection = ({ dockerId, name, labels, status, startedAt, finishedAt }: Made): unknown => ({
    Id: dockerId,
    Name: `/${name}`,
    State: { Status: status, OOMKilled: false, ExitCode: 0, Error: '', StartedAt: startedAt, FinishedAt: finishedAt },
    Config: { Labels: labels },
    NetworkSettings: { Ports: {} },
  });

  const list = (query: URLSearchParams): Answer => {
    const asked = labelsAsked(query);
    const id = asked[ours.container];
    const among = id === undefined ? byId.values() : (byContainer.get(id) ?? []);
    const body = [...among]
      .filter(({ labels }) => bears(labels, asked))
      .map(({ dockerId, labels, status }) => ({ Id: dockerId, State: status, Status: status, Labels: labels }));
    return { status: 200, body };
  };

  const createNetwork = (body: Uint8Array): Answer => {
    const { Name, Labels: labels } = JSON.parse(Buffer.from(body).toString()) as { Name: string; Labels: Labels };
    const Id = newId();
    networks.push({ Id, Name, Created: new Date().toISOString(), Labels: labels });
    return { status: 201, body: { Id } };
  };

  const ofContainer = (verb: string, made: Made): Answer => {
    switch (verb) {
      case 'GET json':
        return { status: 200, body: inspection(made) };
      case 'POST start':
        return start(made);
      case 'POST stop':
        return stop(made);
      case 'PUT archive':
        return { status: 200 };
      default:
        return verb.startsWith('DELETE') ? remove(made) : refused(404, 'page not found');
    }
  };

  const answer = ({ method, path: given, body }: Call): Answer => {
    const [path = '', search = ''] = given.split('?', 2);
    const [area = '', first = '', second = ''] = path
      .replace(/^\/v\d+\.\d+/, '')
      .split('/')
      .slice(1);
    const query = new URLSearchParams(search);
    const bytes = body?.bytes ?? new Uint8Array();
    if (area === 'version') return { status: 200, body: version };
    if (area === 'info') return { status: 200, body: info };
    if (area === 'images') return { status: 200, body: { Id: imageId, Config: null } };
    if (area === 'networks') {
      if (method === 'POST') return createNetwork(bytes);
      const asked = labelsAsked(query);
      return { status: 200, body: networks.filter(({ Labels: labels }) => bears(labels, asked)) };
    }
    if (area !== 'containers') return refused(404, 'page not found');
    if (first === 'json') return list(query);
    if (first === 'create') return create(query, bytes);
    const made = byId.get(first) ?? byName.get(first);
    return made === undefined ? refused(404, `No such container: ${first}`) : ofContainer(`${method} ${second}`, made);
  };

  const reply = (call: Call): Reply => {
    const { status, body } = answer(call);
    return { status, headers: {}, body: Buffer.from(body === undefined ? '' : JSON.stringify(body)) };
  };

  const open = ({ path }: Call): OpenReply => {
    const stream = openStream();
    const id = /\/containers\/([^/]+)\/logs/.exec(path)?.[1];
    if (id === undefined) {
      listeners.add(stream);
      stream.once('close', () => listeners.delete(stream));
      return { status: 200, headers: {}, stream };
    }
    const made = byId.get(id);
    if (made?.status === 'running' && path.includes('follow=1')) {
      made.followers.add(stream);
      stream.once('close', () => made.followers.delete(stream));
    } else stream.push(null);
    return { status: made === undefined ? 404 : 200, headers: {}, stream };
  };

  return {
    counts,
    transport: {
      call: (call) => Promise.resolve(reply(call)),
      open: (call) => Promise.resolve(open(call)),
      close: () => undefined,
    },
  };
}
