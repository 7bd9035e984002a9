/**
 * A model of a container engine that runs nothing. It holds the engine's state, applies calls of
 * the Docker Engine API to it, and refuses what the engine refuses (304, 404, 409). It does no I/O;
 * the caller injects the clock and the ids.
 */
import { randomBytes } from 'node:crypto';
import { labels as ours } from '../../../host-agent/docker/ownership.ts';
import type { LogRecord } from './log.ts';

export type Labels = Readonly<Record<string, string>>;

export type ContainerState =
  | { readonly status: 'created' }
  | { readonly status: 'running'; readonly startedAt: string }
  | { readonly status: 'exited'; readonly startedAt: string; readonly finishedAt: string; readonly exitCode: number };

export interface SimulatedContainer {
  readonly id: string;
  readonly name: string;
  readonly labels: Labels;
  /** Image as the call named it: a reference or an id. */
  readonly image?: string;
  readonly network: string | null;
  /** Ports that it publishes while it runs. */
  readonly published?: Published;
  limits?: Limits;
  /** Written lines, oldest first. */
  readonly log?: LogRecord[];
  state: ContainerState;
}

/** Memory in bytes, CPU in billionths of one; 0 for no limit. */
export interface Limits {
  readonly Memory?: number;
  readonly MemorySwap?: number;
  readonly NanoCpus?: number;
  readonly PidsLimit?: number;
  readonly CpuShares?: number;
  readonly CpusetCpus?: string;
  readonly RestartPolicy?: { readonly Name: string };
}

/** Ports of the container, and the ports of the host that they are published at. */
export type Published = Readonly<Record<string, readonly { readonly HostIp: string; readonly HostPort: string }[]>>;

export interface Answer {
  readonly status: number;
  readonly body?: unknown;
}

/** Counts of tenants' containers. */
export interface EngineCounts {
  running: number;
  created: number;
  started: number;
  stopped: number;
  removed: number;
}

export interface ModelOptions {
  readonly nowMs?: () => number;
  readonly newId?: () => string;
  /** True if every image exists without a pull. */
  readonly hasEveryImage?: boolean;
}

interface Network {
  readonly Id: string;
  readonly Name: string;
  readonly Created: string;
  readonly Labels: Labels;
}

interface EventListener {
  readonly labels: Labels;
  /** Such as `container` or `image`. */
  readonly types: readonly string[];
  readonly onLine: (line: string) => void;
}

/** A network mode: in the network namespace of another container. */
const shared = 'container:';
const never = '0001-01-01T00:00:00Z';
const anyImage = `sha256:${'0'.repeat(64)}`;

export const refusal = (status: number, message: string): Answer => ({ status, body: { message } });

const hasLabels = (labels: Labels, asked: Labels): boolean =>
  Object.entries(asked).every(([name, value]) => labels[name] === value);

export class EngineModel {
  readonly counts: EngineCounts = { running: 0, created: 0, started: 0, stopped: 0, removed: 0 };
  /** One sentence for each container that was started while another of its id ran. */
  readonly doubles: string[] = [];
  readonly #nowMs: () => number;
  readonly #newId: () => string;
  readonly #hasEveryImage: boolean;
  readonly #containers = new Map<string, SimulatedContainer>();
  readonly #byName = new Map<string, SimulatedContainer>();
  /** Containers by Longshore's container id, because agents ask for one container at a time. */
  readonly #byContainer = new Map<string, Set<SimulatedContainer>>();
  readonly #images = new Map<string, string>();
  readonly #networks: Network[] = [];
  readonly #listeners = new Set<EventListener>();
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #readers = new Map<string, Set<(record: LogRecord) => void>>();

  constructor(options: ModelOptions = {}) {
    this.#nowMs = options.nowMs ?? Date.now;
    this.#newId = options.newId ?? (() => randomBytes(32).toString('hex'));
    this.#hasEveryImage = options.hasEveryImage ?? false;
  }

  /** All containers by the engine's id. */
  get containers(): ReadonlyMap<string, SimulatedContainer> {
    return this.#containers;
  }

  find(idOrName: string): SimulatedContainer | undefined {
    return this.#containers.get(idOrName) ?? this.#byName.get(idOrName.replace(/^\//, ''));
  }

  /** The containers of tenants; sandboxes are not among them. */
  ofTenants(): SimulatedContainer[] {
    return [...this.#containers.values()].filter(({ labels }) => ours.container in labels);
  }

  /** Running containers of tenants. */
  running(): SimulatedContainer[] {
    return this.ofTenants().filter(({ state }) => state.status === 'running');
  }

  /** The sandbox that a container is in; `undefined` if it has none, or the sandbox is gone. */
  sandboxOf({ network }: SimulatedContainer): SimulatedContainer | undefined {
    return network?.startsWith(shared) === true ? this.#containers.get(network.slice(shared.length)) : undefined;
  }

  /** Id of its first process, while it runs: no process of this machine has it. */
  pidOf(id: string): number {
    return 2 ** 30 + (Number.parseInt(id.slice(0, 6), 16) || 0);
  }

  /** True if a running container has the network that it was made with. */
  hasNetwork(made: SimulatedContainer): boolean {
    return made.network?.startsWith(shared) !== true || this.sandboxOf(made)?.state.status === 'running';
  }

  /** Adds a container without an event. */
  add(container: SimulatedContainer): void {
    this.#containers.set(container.id, container);
    this.#byName.set(container.name, container);
    this.#siblings(container.labels).add(container);
  }

  create(
    name: string,
    body: {
      readonly Image: string;
      readonly Labels?: Labels;
      readonly HostConfig?: Limits & { readonly NetworkMode?: string; readonly PortBindings?: Published };
    },
  ): Answer {
    if (this.imageId(body.Image) === undefined) return refusal(404, `No such image: ${body.Image}`);
    const twin = this.#byName.get(name);
    if (twin !== undefined) {
      return refusal(409, `Conflict. The container name "/${name}" is already in use by container "${twin.id}".`);
    }
    const { HostConfig: config = {}, Labels: labels = {} } = body;
    const network = config.NetworkMode ?? null;
    const published = config.PortBindings ?? {};
    const made: SimulatedContainer = {
      id: this.#newId(),
      name,
      labels,
      image: body.Image,
      network,
      published,
      limits: {
        Memory: config.Memory ?? 0,
        NanoCpus: config.NanoCpus ?? 0,
        ...(config.MemorySwap === undefined ? {} : { MemorySwap: config.MemorySwap }),
        ...(config.PidsLimit === undefined ? {} : { PidsLimit: config.PidsLimit }),
      },
      log: [],
      state: { status: 'created' },
    };
    this.add(made);
    this.#count(made, { created: 1 });
    this.#emit('create', made);
    return { status: 201, body: { Id: made.id, Warnings: [] } };
  }

  start(made: SimulatedContainer): Answer {
    if (made.state.status === 'running') return { status: 304 };
    const refused = this.#networkRefusal(made);
    if (refused !== undefined) return refused;
    const id = made.labels[ours.container];
    for (const twin of id === undefined ? [] : this.#siblings(made.labels)) {
      if (twin === made || twin.state.status !== 'running') continue;
      this.doubles.push(`${id}: ${made.id.slice(0, 12)} was started beside ${twin.id.slice(0, 12)}`);
    }
    made.state = { status: 'running', startedAt: this.#now() };
    this.#count(made, { started: 1, running: 1 });
    this.#emit('start', made);
    return { status: 204 };
  }

  /** With the messages of Docker 20.10. */
  #networkRefusal({ network, published = {} }: SimulatedContainer): Answer | undefined {
    if (network?.startsWith(shared) === true) {
      const other = this.#containers.get(network.slice(shared.length));
      if (other === undefined) return refusal(404, `No such container: ${network.slice(shared.length)}`);
      if (other.state.status === 'running') return undefined;
      return refusal(409, `cannot join network of a non running container: ${other.id}`);
    }
    if (network !== null && !this.#networks.some(({ Name }) => Name === network)) {
      return refusal(404, `network ${network} not found`);
    }
    const asked = Object.values(published).flat();
    const taken = new Set(
      [...this.#containers.values()]
        .filter(({ state }) => state.status === 'running')
        .flatMap((other) => Object.values(other.published ?? {}).flat())
        .map((at) => at.HostPort),
    );
    const twice = asked.find(({ HostPort }) => HostPort !== '' && taken.has(HostPort));
    if (twice === undefined) return undefined;
    return refusal(
      500,
      `driver failed programming external connectivity: Bind for ${twice.HostIp}:${twice.HostPort} failed: port is already allocated`,
    );
  }

  update(made: SimulatedContainer, limits: Limits): Answer {
    made.limits = { ...made.limits, ...limits };
    this.#emit('update', made);
    return { status: 200, body: { Warnings: [] } };
  }

  kill(made: SimulatedContainer): Answer {
    if (made.state.status !== 'running') return refusal(409, `Container ${made.id} is not running`);
    this.exit(made, 137);
    return { status: 204 };
  }

  stop(made: SimulatedContainer): Answer {
    if (made.state.status !== 'running') return { status: 304 };
    this.#count(made, { stopped: 1 });
    this.exit(made, 0);
    this.#emit('stop', made);
    return { status: 204 };
  }

  /** A running container writes a line. */
  write({ id, log, state }: SimulatedContainer, text: string): void {
    if (log === undefined || state.status !== 'running') return;
    const micros = Math.max(this.#nowMs() * 1000, (log.at(-1)?.micros ?? 0) + 1);
    const record = { micros, text };
    log.push(record);
    for (const onRecord of this.#readers.get(id) ?? []) onRecord(record);
  }

  /** Calls `onRecord` with each line from now on. @returns a function that ends it */
  onLine({ id }: SimulatedContainer, onRecord: (record: LogRecord) => void): () => void {
    const readers = this.#readers.get(id) ?? new Set();
    this.#readers.set(id, readers.add(onRecord));
    return () => {
      readers.delete(onRecord);
      if (readers.size === 0) this.#readers.delete(id);
    };
  }

  /** Ends a container as if it exited by itself. @param startedAt replaces its start time */
  exit(made: SimulatedContainer, exitCode: number, startedAt?: string): void {
    if (made.state.status !== 'running') return;
    const finishedAt = this.#now();
    made.state = { status: 'exited', startedAt: startedAt ?? made.state.startedAt, finishedAt, exitCode };
    this.#count(made, { running: -1 });
    for (const done of this.#waiting.get(made.id) ?? []) done();
    this.#waiting.delete(made.id);
    this.#emit('die', made);
  }

  remove(made: SimulatedContainer): Answer {
    if (made.state.status === 'running') {
      return refusal(409, `You cannot remove a running container ${made.id}. Stop the container first`);
    }
    this.drop(made.id);
    this.#count(made, { removed: 1 });
    this.#emit('destroy', made);
    return { status: 204 };
  }

  /** Removes a container without an event. */
  drop(id: string): void {
    const made = this.#containers.get(id);
    if (made === undefined) return;
    this.#containers.delete(id);
    this.#byName.delete(made.name);
    const siblings = this.#siblings(made.labels);
    siblings.delete(made);
    if (siblings.size === 0) this.#byContainer.delete(made.labels[ours.container] ?? '');
  }

  list(asked: Labels): Answer {
    const id = asked[ours.container];
    const among = id === undefined ? this.#containers.values() : (this.#byContainer.get(id) ?? []);
    const body = [...among]
      .filter(({ labels }) => hasLabels(labels, asked))
      .map(({ id: Id, labels: Labels, network, state: { status } }) => {
        return { Id, State: status, Status: status, Labels, HostConfig: { NetworkMode: network ?? 'default' } };
      });
    return { status: 200, body };
  }

  inspect({ id, name, labels, network, published, limits, state }: SimulatedContainer): Answer {
    const body = {
      Id: id,
      Name: `/${name}`,
      State: {
        Status: state.status,
        Pid: state.status === 'running' ? this.pidOf(id) : 0,
        OOMKilled: false,
        ExitCode: state.status === 'exited' ? state.exitCode : 0,
        Error: '',
        StartedAt: state.status === 'created' ? never : state.startedAt,
        FinishedAt: state.status === 'exited' ? state.finishedAt : never,
      },
      Config: { Labels: labels },
      HostConfig: { NetworkMode: network ?? 'default', ...limits },
      NetworkSettings: { Ports: state.status === 'running' ? published : {} },
    };
    return { status: 200, body };
  }

  pull(reference: string): void {
    this.#images.set(reference, this.#images.get(reference) ?? `sha256:${this.#newId()}`);
    this.#say('image', 'pull', reference, {});
  }

  /** Finds an image by reference or id. */
  imageId(name: string): string | undefined {
    if (this.#hasEveryImage) return anyImage;
    return this.#images.get(name) ?? [...this.#images.values()].find((id) => id === name);
  }

  /** The reference that the image of a container was pulled by. */
  referenceOf({ image }: SimulatedContainer): string | undefined {
    return [...this.#images].find(([reference, id]) => reference === image || id === image)?.[0];
  }

  networks(asked: Labels): Answer {
    return { status: 200, body: this.#networks.filter(({ Labels: labels }) => hasLabels(labels, asked)) };
  }

  createNetwork(body: { readonly Name: string; readonly Labels?: Labels }): Answer {
    const network = { Id: this.#newId(), Name: body.Name, Created: this.#now(), Labels: body.Labels ?? {} };
    this.#networks.push(network);
    this.#say('network', 'create', network.Id, {});
    return { status: 201, body: { Id: network.Id } };
  }

  removeNetwork(id: string): Answer {
    const at = this.#networks.findIndex(({ Id }) => Id === id);
    if (at < 0) return refusal(404, `network ${id} not found`);
    this.#networks.splice(at, 1);
    this.#say('network', 'destroy', id, {});
    return { status: 204 };
  }

  /** Subscribes to the lines of `GET /events`. @returns a function that unsubscribes */
  onEvent(labels: Labels, types: readonly string[], onLine: (line: string) => void): () => void {
    const listener = { labels, types, onLine };
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Calls `done` when the container is not running. @returns a function that cancels the call */
  onDown(made: SimulatedContainer, done: () => void): () => void {
    if (made.state.status !== 'running') {
      done();
      return () => undefined;
    }
    const waiting = this.#waiting.get(made.id) ?? new Set();
    this.#waiting.set(made.id, waiting.add(done));
    return () => void waiting.delete(done);
  }

  #count({ labels }: SimulatedContainer, more: Partial<EngineCounts>): void {
    if (!(ours.container in labels)) return;
    for (const [name, by] of Object.entries(more)) this.counts[name as keyof EngineCounts] += by;
  }

  #now(): string {
    return new Date(this.#nowMs()).toISOString();
  }

  #siblings(labels: Labels): Set<SimulatedContainer> {
    const id = labels[ours.container] ?? '';
    const known = this.#byContainer.get(id) ?? new Set<SimulatedContainer>();
    this.#byContainer.set(id, known);
    return known;
  }

  #emit(action: string, { id, labels, state }: SimulatedContainer): void {
    this.#say('container', action, id, {
      ...labels,
      ...(action === 'die' && state.status === 'exited' ? { exitCode: String(state.exitCode) } : {}),
    });
  }

  #say(type: string, action: string, id: string, attributes: Labels): void {
    if (this.#listeners.size === 0) return;
    const actor = { ID: id, Attributes: attributes };
    const line = `${JSON.stringify({ Type: type, Action: action, Actor: actor, timeNano: this.#nowMs() * 1e6 })}\n`;
    for (const { labels: asked, types, onLine } of this.#listeners) {
      if (types.includes(type) && hasLabels(attributes, asked)) onLine(line);
    }
  }
}
