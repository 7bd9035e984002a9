/**
 * Sandboxes: containers of the engine that own a network address and published ports. A tenant's
 * container runs in the network namespace of one, so it starts in about half of the time, and keeps
 * its ports while it restarts (ADR 29).
 *
 * A few sandboxes wait ready, of the shapes that were asked for last. A sandbox serves one
 * container for that container's life on this host, and is then removed: none ever passes from one
 * container to another. The engine's state decides: the sandbox of a container is known from the
 * container's network mode, and a sandbox that nobody uses is removed.
 */
import { randomBytes } from 'node:crypto';
import type { Log } from '../../lib/log.ts';
import { createSemaphore } from '../../lib/semaphore.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import type { EngineEvent } from '../docker/answers.ts';
import type { Engine } from '../docker/engine.ts';
import { detailOf, EngineError } from '../docker/errors.ts';
import { sandboxLabel, wayOut, type Owner } from '../docker/ownership.ts';
import type { Metrics, SandboxCounts } from '../metrics.ts';
import { sandboxImage, sandboxTar } from './image.ts';
import { choosePorts, portsOf, sandboxBody, sandboxName, shapeOf, type PortRange, type Shape } from './shape.ts';

/** Sandboxes made at a time: each slows down the others, and calls have deadlines. */
export const concurrentSandboxes = 8;

/** Ports of the host that are tried for one sandbox. */
const sandboxPortTries = 8;

/** A sandbox as the engine lists it. */
export interface ListedSandbox {
  readonly dockerId: string;
  readonly shape: Shape;
  /** Ports of the host that it publishes at while it runs. */
  readonly published: readonly number[];
  readonly isRunning: boolean;
  /** `true` if it runs and is in no network: somebody has disconnected it. */
  readonly isCut: boolean;
}

/** All of this host's sandboxes, and the containers that are in them. */
export interface SandboxList {
  readonly sandboxes: readonly ListedSandbox[];
  readonly users: ReadonlyMap<ContainerId, string>;
  /** Sandboxes that any container of this host is in, also one that should not exist. */
  readonly inUse: ReadonlySet<string>;
}

type Declared = Pick<DesiredContainer, 'id' | 'ports' | 'network' | 'update'>;

export interface Sandboxes {
  /**
   * The running sandbox of this container: the one that it has, one that waits ready, or a new one.
   * @returns the engine's id. @throws EngineError
   */
  claim(container: Declared): Promise<string>;
  /** Begins to make the sandbox that the container will claim. */
  prepare(container: Declared): void;
  /** Starts a sandbox that went down, with the ports that it had. @throws EngineError */
  start(dockerId: string): Promise<void>;
  /**
   * The running sandbox by which VPN peers reach the internet: no container is ever in it. One that
   * is not wanted is removed.
   * @returns the engine's id; `undefined` if it is not wanted. @throws EngineError
   */
  wayOut(isWanted: boolean): Promise<string | undefined>;
  /** The container is gone from this host, so its sandbox is removed. */
  release(id: ContainerId): void;
  /** @returns the container whose sandbox went down or was removed */
  heard(event: EngineEvent): ContainerId | undefined;
  /**
   * Is called after each list of the engine: adopts the sandboxes that containers use, and removes
   * those that nobody uses.
   * @param knows `true` if the container is wanted here
   */
  look(list: SandboxList, knows: (id: ContainerId) => boolean): Promise<void>;
  counts(): SandboxCounts;
  /**
   * The number of ports of the range that no container has. Those of sandboxes that wait ready
   * count: a container that lacks ports gets them. `null` before the first list of the engine.
   */
  freePorts(): number | null;
  /** Makes no more, and removes those that wait ready. */
  stop(): Promise<void>;
}

export interface SandboxesParts {
  readonly engine: Engine;
  readonly owner: Owner;
  readonly publishAddress: string;
  readonly ports: PortRange;
  /** The number of sandboxes that wait ready. */
  readonly size: number;
  /** The architecture of the engine's machine. */
  readonly architecture: () => string;
  /** Resolves when the network is there. */
  readonly ensureNetwork: () => Promise<unknown>;
  /**
   * `true` if the kernel has no interface for the run whose first process has this pid; `undefined`
   * if unknown.
   */
  readonly isCutOff?: ((dockerId: string, pid: number) => boolean | undefined) | undefined;
  readonly metrics: Pick<Metrics, 'sandbox'>;
  readonly log: Log;
}

interface Sandbox {
  readonly dockerId: string;
  readonly shape: Shape;
}

/** In the words of the engine, which mean the same (reconcile/execute/failures.ts). */
const rangeUsedUp = 'all ports are allocated';
const isRangeUsedUp = (error: unknown): boolean => error instanceof EngineError && detailOf(error) === rangeUsedUp;

const isPortTaken = (error: unknown): boolean =>
  error instanceof EngineError && /port is already allocated|address already in use/i.test(detailOf(error));

export class SandboxPool implements Sandboxes {
  readonly #parts: SandboxesParts;
  #ready: Sandbox[] = [];
  readonly #used = new Map<ContainerId, Sandbox>();
  /** Created and not yet up: a busy engine takes seconds to start one. */
  readonly #making = new Set<string>();
  #wayOut: Sandbox | undefined;
  readonly #claims = new Map<ContainerId, Promise<string>>();
  /** Ports of the host, by sandbox, that this agent has chosen. */
  readonly #published = new Map<string, readonly number[]>();
  /**
   * Ports of the host of all sandboxes in the last list, also of those that are down; `null` before
   * the first list.
   */
  #listed: Map<string, readonly number[]> | null = null;
  /** Shapes that were asked for, the newest last. */
  #wanted: Shape[];
  /** Sandboxes in the last list that nobody knows. */
  #strangers: ReadonlySet<string> = new Set();
  #filling: Promise<void> | undefined;
  readonly #semaphore = createSemaphore(concurrentSandboxes);
  #isStopped = false;

  constructor(parts: SandboxesParts) {
    this.#parts = parts;
    this.#wanted = Array.from({ length: parts.size }, () => '');
  }

  counts(): SandboxCounts {
    return { ready: this.#ready.length, used: this.#used.size };
  }

  freePorts(): number | null {
    if (this.#listed === null) return null;
    const { first, last } = this.#parts.ports;
    const held = [...this.#heldPorts(new Set(this.#ready.map(({ dockerId }) => dockerId)))];
    return last - first + 1 - held.filter((port) => port >= first && port <= last).length;
  }

  claim(container: Declared): Promise<string> {
    const { id } = container;
    let claim = this.#claims.get(id);
    if (claim === undefined) {
      claim = this.#claim(container).finally(() => {
        this.#claims.delete(id);
        this.#fill();
      });
      this.#claims.set(id, claim);
    }
    return claim;
  }

  async wayOut(isWanted: boolean): Promise<string | undefined> {
    const own = this.#wayOut;
    if (own !== undefined && isWanted && (await this.#isUp(own))) return own.dockerId;
    this.#wayOut = undefined;
    if (own !== undefined) this.#discard(own.dockerId);
    if (!isWanted || this.#isStopped) return undefined;
    const made = await this.#make(wayOut);
    this.#wayOut = made;
    this.#making.delete(made.dockerId);
    return made.dockerId;
  }

  prepare(container: Declared): void {
    // The claim that counts reports the failure.
    this.claim(container).catch(() => undefined);
  }

  async start(dockerId: string): Promise<void> {
    try {
      await this.#parts.engine.start(dockerId);
    } catch (error) {
      // Somebody else has taken its ports: the container gets another sandbox.
      if (isPortTaken(error)) await this.#remove(dockerId);
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#filling;
    const ready = this.#ready.splice(0);
    const removed = await Promise.allSettled(ready.map(({ dockerId }) => this.#remove(dockerId)));
    const failed = removed.filter(({ status }) => status === 'rejected').length;
    // The next agent finds them.
    if (failed > 0) this.#parts.log.debug('sandboxes_remove_failed', { sandboxes: failed });
  }

  release(id: ContainerId): void {
    const sandbox = this.#used.get(id);
    if (sandbox === undefined) return;
    this.#used.delete(id);
    this.#discard(sandbox.dockerId);
  }

  heard({ Action, Actor }: EngineEvent): ContainerId | undefined {
    if (Action !== 'die' && Action !== 'destroy') return undefined;
    if (Actor === undefined || sandboxLabel(Actor.Attributes) === undefined) return undefined;
    const dockerId = Actor.ID;
    if (Action === 'destroy') {
      this.#published.delete(dockerId);
      this.#listed?.delete(dockerId);
    }
    const isReady = this.#ready.some((sandbox) => sandbox.dockerId === dockerId);
    if (isReady) {
      this.#ready = this.#ready.filter((sandbox) => sandbox.dockerId !== dockerId);
      this.#discard(dockerId);
      this.#fill();
    }
    return [...this.#used].find(([, sandbox]) => sandbox.dockerId === dockerId)?.[0];
  }

  async look({ sandboxes, users, inUse }: SandboxList, knows: (id: ContainerId) => boolean): Promise<void> {
    const byId = new Map(sandboxes.map((sandbox) => [sandbox.dockerId, sandbox]));
    for (const [id, dockerId] of users) {
      const sandbox = byId.get(dockerId);
      if (sandbox !== undefined && !this.#claims.has(id)) this.#used.set(id, { dockerId, shape: sandbox.shape });
    }
    for (const id of this.#used.keys()) if (!users.has(id) && !knows(id) && !this.#claims.has(id)) this.release(id);
    this.#wayOut ??= sandboxes.find(({ shape }) => shape === wayOut);
    // One that the list lacks may be newer than the list.
    this.#ready = this.#ready.filter(({ dockerId }) => byId.get(dockerId)?.isRunning !== false);
    this.#listed = new Map(sandboxes.map(({ dockerId, published }) => [dockerId, published]));
    // The engine does not give a network back: the container gets another, as after a removal.
    for (const sandbox of sandboxes) {
      const { dockerId } = sandbox;
      if (!(await this.#isCut(sandbox))) continue;
      this.#parts.log.warn('sandbox_cut_off', { sandbox: dockerId });
      await this.#remove(dockerId);
    }
    const known = this.#known();
    const strangers = sandboxes
      .map(({ dockerId }) => dockerId)
      .filter((dockerId) => !inUse.has(dockerId) && !known.has(dockerId));
    // One that is being created may be in the list before this agent knows its id: only the second
    // list decides.
    const before = this.#strangers;
    this.#strangers = new Set(strangers);
    for (const dockerId of strangers) {
      // A sandbox that was unknown when the engine was listed may be known by now.
      if (before.has(dockerId) && !this.#known().has(dockerId)) await this.#remove(dockerId);
    }
    this.#fill();
  }

  /**
   * `true` if the engine reports it, or the sandbox's interface on the host was deleted, which the
   * engine does not notice.
   */
  async #isCut({ dockerId, isRunning, isCut }: ListedSandbox): Promise<boolean> {
    const { isCutOff, engine } = this.#parts;
    if (isCut || !isRunning || isCutOff === undefined) return isCut;
    const pid = (await engine.inspect(dockerId))?.State.Pid ?? 0;
    return pid > 0 && isCutOff(dockerId, pid) === true;
  }

  #heldPorts(except: ReadonlySet<string> = new Set()): Set<number> {
    const held = [...this.#published, ...(this.#listed ?? [])];
    return new Set(held.flatMap(([dockerId, ports]) => (except.has(dockerId) ? [] : ports)));
  }

  /** The sandboxes that this agent made or adopted. */
  #known(): ReadonlySet<string> {
    const kept = [...this.#used.values(), ...this.#ready, ...(this.#wayOut === undefined ? [] : [this.#wayOut])];
    return new Set([...this.#making, ...kept.map(({ dockerId }) => dockerId)]);
  }

  async #claim({ id, ports, network, update }: Declared): Promise<string> {
    const { metrics } = this.#parts;
    const shape = shapeOf(ports, network);
    const own = this.#used.get(id);
    if (own !== undefined) {
      if (own.shape === shape && (await this.#isUp(own))) {
        metrics.sandbox('kept');
        return own.dockerId;
      }
      // The copy that an update replaces still runs in its own sandbox, which is removed with that
      // copy.
      if (update === undefined) this.release(id);
      else this.#used.delete(id);
    }
    this.#wanted = [...this.#wanted, shape].slice(-Math.max(1, this.#parts.size));
    const at = this.#ready.findIndex((sandbox) => sandbox.shape === shape);
    const [ready] = at < 0 ? [] : this.#ready.splice(at, 1);
    metrics.sandbox(ready === undefined ? 'made' : 'ready');
    const sandbox = ready ?? (await this.#makeForClaim(shape));
    this.#used.set(id, sandbox);
    this.#making.delete(sandbox.dockerId);
    return sandbox.dockerId;
  }

  async #isUp({ dockerId }: Sandbox): Promise<boolean> {
    const inspection = await this.#parts.engine.inspect(dockerId);
    if (inspection?.State.Status === 'running') return true;
    if (inspection === undefined) return false;
    await this.start(dockerId);
    return true;
  }

  /** If the range has no port left, sandboxes that wait ready give up theirs. */
  async #makeForClaim(shape: Shape): Promise<Sandbox> {
    try {
      return await this.#make(shape);
    } catch (error) {
      const spare = this.#ready.filter(({ shape }) => portsOf(shape).length > 0);
      if (!isRangeUsedUp(error) || spare.length === 0) throw error;
      this.#ready = this.#ready.filter((sandbox) => !spare.includes(sandbox));
      await Promise.all(spare.map(({ dockerId }) => this.#remove(dockerId)));
      return await this.#make(shape);
    }
  }

  #make(shape: Shape): Promise<Sandbox> {
    return this.#semaphore.run(() => this.#makeNow(shape));
  }

  async #makeNow(shape: Shape): Promise<Sandbox> {
    const avoided = new Set<number>();
    for (let attempt = 1; ; attempt++) {
      const dockerId = await this.#create(shape, avoided);
      this.#making.add(dockerId);
      try {
        await this.#parts.engine.start(dockerId);
        // Inspected so that its addresses are known when a container takes it.
        await this.#parts.engine.inspect(dockerId);
        return { dockerId, shape };
      } catch (error) {
        this.#making.delete(dockerId);
        for (const port of this.#published.get(dockerId) ?? []) avoided.add(port);
        await this.#remove(dockerId);
        // Somebody else has a port of the host: others are tried.
        if (!isPortTaken(error) || attempt === sandboxPortTries) throw error;
      }
    }
  }

  async #create(shape: Shape, avoided: ReadonlySet<number>): Promise<string> {
    const { engine, owner, publishAddress, ports, architecture, ensureNetwork } = this.#parts;
    await ensureNetwork();
    const taken = new Set([...avoided, ...this.#heldPorts()]);
    const published = choosePorts(portsOf(shape), ports, taken, Math.random());
    if (published === undefined) {
      throw new EngineError('container create', { kind: 'refused', status: 500 }, rangeUsedUp);
    }
    const body = sandboxBody(owner, shape, publishAddress, published);
    const make = () => engine.create(sandboxName(owner, randomBytes(6).toString('hex')), body);
    let made = await make();
    if (made.kind === 'no_image') {
      await engine.importImage(sandboxImage.repository, sandboxImage.tag, await sandboxTar(architecture()));
      made = await make();
    }
    if (made.kind !== 'created') {
      throw new EngineError(
        'container create',
        { kind: 'refused', status: 500 },
        `a sandbox was not made: ${made.kind}`,
      );
    }
    this.#published.set(made.id, [...published.values()]);
    return made.id;
  }

  /** Makes what is missing, one at a time, while no container waits for one. */
  #fill(): void {
    if (this.#filling !== undefined || this.#claims.size > 0 || this.#isStopped) return;
    this.#filling = this.#fillOnce()
      .catch((error: unknown) => this.#parts.log.warn('sandbox_create_failed', { error }))
      .finally(() => (this.#filling = undefined));
  }

  async #fillOnce(): Promise<void> {
    while (this.#claims.size === 0 && !this.#isStopped) {
      const shape = this.#missing();
      if (shape === undefined) return;
      const made = await this.#make(shape);
      this.#ready.push(made);
      this.#making.delete(made.dockerId);
      // Checked only now: while it was made, a container may have taken one of the others.
      const surplus = this.#surplus();
      if (surplus === undefined) continue;
      this.#ready = this.#ready.filter((sandbox) => sandbox !== surplus);
      this.#discard(surplus.dockerId);
    }
  }

  /** The newest shape that none is ready for. */
  #missing(): Shape | undefined {
    if (this.#parts.size === 0) return undefined;
    return this.#compare().missing[0];
  }

  /** One to remove, if more are ready than should be. */
  #surplus(): Sandbox | undefined {
    return this.#ready.length > this.#parts.size ? (this.#compare().unwanted[0] ?? this.#ready[0]) : undefined;
  }

  /** Compares the wanted shapes, the newest first, with the sandboxes that are ready. */
  #compare(): { readonly missing: readonly Shape[]; readonly unwanted: readonly Sandbox[] } {
    const unwanted = [...this.#ready];
    const missing = this.#wanted.toReversed().filter((shape) => {
      const at = unwanted.findIndex((sandbox) => sandbox.shape === shape);
      if (at >= 0) unwanted.splice(at, 1);
      return at < 0;
    });
    return { missing, unwanted };
  }

  #discard(dockerId: string): void {
    this.#remove(dockerId).catch((error: unknown) => {
      // The next lists of the engine find it again.
      this.#parts.log.debug('sandbox_remove_failed', { sandbox: dockerId, error });
    });
  }

  async #remove(dockerId: string): Promise<void> {
    this.#published.delete(dockerId);
    await this.#parts.engine.kill(dockerId);
    await this.#parts.engine.remove(dockerId);
    this.#listed?.delete(dockerId);
  }
}
