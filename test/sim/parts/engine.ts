/**
 * The container engine of a host in virtual time. It outlives the agent, and what it has begun it
 * brings to its end. Versions with a bad tag never stay up; jobs end by themselves.
 */
import type { EngineState, Found } from '../../../host-agent/docker/observed.ts';
import type { Declared } from '../../../host-agent/desired/wanted.ts';
import type { SecretUses } from '../../../schemas/api/secret.ts';
import type { ContainerId, HostKey } from '../../../schemas/ids.ts';
import type { World } from '../world/time.ts';

/** A version that never stays up. */
export const badTag = 'bad';
/** Versions that run to their end. */
export const jobTag = 'job';
export const failingJobTag = 'job-failing';

const crashMs = 60;
const jobMs = 400;

export interface Copy {
  readonly tag: string | null;
  /** Versions of secrets that it was made with. */
  readonly secrets: SecretUses | undefined;
  readonly found: Found;
}

export interface EngineOptions {
  readonly world: World;
  readonly host: HostKey;
  /** Called before a copy starts. */
  readonly onStart: (id: ContainerId, copy: Copy) => void;
  /** Something has changed by itself. */
  readonly onChange: (id: ContainerId) => void;
}

export class Engine {
  /** Copies by the engine's id. */
  readonly copies = new Map<string, Copy>();
  readonly #options: EngineOptions;
  #made = 0;

  constructor(options: EngineOptions) {
    this.#options = options;
  }

  /** The copies of one container. */
  of(id: ContainerId): Found[] {
    return [...this.copies.values()].flatMap(({ found }) => (found.id === id ? [found] : []));
  }

  ids(): Set<ContainerId> {
    return new Set([...this.copies.values()].map(({ found }) => found.id));
  }

  /** The tags that run of a container. */
  runningTags(id: ContainerId): (string | null)[] {
    return [...this.copies.values()].flatMap(({ found, tag }) => (found.id === id && isUp(found) ? [tag] : []));
  }

  create({ container, spec }: Declared, imageId: string): void {
    const dockerId = `${this.#options.host}-${++this.#made}`;
    const { tenant, id, placement, tag, secrets } = container;
    const state = { phase: 'created' } as const;
    const found = { dockerId, tenant, id, placement, spec, imageId, state, sandbox: null };
    this.copies.set(dockerId, { tag, secrets, found });
  }

  start(dockerId: string): void {
    const copy = this.copies.get(dockerId);
    if (copy === undefined || isUp(copy.found)) return;
    const { world, onStart } = this.#options;
    onStart(copy.found.id, copy);
    const run = `${dockerId}:${++this.#made}`;
    this.#set(dockerId, { phase: 'running', run, startedAtMs: world.nowMs, health: 'none', addresses: [] });
    if (copy.tag === badTag) this.#endLater(dockerId, run, crashMs, 1);
    if (copy.tag === jobTag) this.#endLater(dockerId, run, jobMs, 0);
    if (copy.tag === failingJobTag) this.#endLater(dockerId, run, jobMs, 3);
  }

  /** A process that is asked to stop ends with code 0. Another agent may have asked. */
  stop(dockerId: string): void {
    this.#endNow(dockerId, 0);
  }

  crash(dockerId: string): void {
    this.#endNow(dockerId, 137);
  }

  remove(dockerId: string): void {
    this.copies.delete(dockerId);
  }

  #endNow(dockerId: string, exitCode: number): void {
    const id = this.copies.get(dockerId)?.found.id;
    this.#end(dockerId, undefined, exitCode);
    if (id !== undefined) this.#options.onChange(id);
  }

  #endLater(dockerId: string, run: string, ms: number, exitCode: number): void {
    const { world, onChange } = this.#options;
    world.at(world.nowMs + ms, world.stage, () => {
      this.#end(dockerId, run, exitCode);
      const id = this.copies.get(dockerId)?.found.id;
      if (id !== undefined) onChange(id);
    });
  }

  /** @param run the only run to end; any if `undefined` */
  #end(dockerId: string, run: string | undefined, exitCode: number): void {
    const state = this.copies.get(dockerId)?.found.state;
    if (state?.phase !== 'running' || (run !== undefined && state.run !== run)) return;
    const endedAtMs = this.#options.world.nowMs;
    const exit = { exitCode, oomKilled: false, upMs: endedAtMs - state.startedAtMs, endedAtMs, error: '' };
    this.#set(dockerId, { phase: 'exited', run: state.run, exit });
  }

  #set(dockerId: string, state: EngineState): void {
    const copy = this.copies.get(dockerId);
    if (copy !== undefined) this.copies.set(dockerId, { ...copy, found: { ...copy.found, state } });
  }
}

export const isUp = ({ state }: Found): boolean => state.phase === 'running';
