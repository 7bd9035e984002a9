/**
 * The agent's reconciler in virtual time: its own decisions, step by step, on an engine that is a
 * model. An agent that is killed loses its memory, and what it has not yet written to its disk.
 */
import type { Description } from '../../../host-agent/link/reporter.ts';
import { describe } from '../../../host-agent/reconcile/describe.ts';
import { absent, observedFrom, type Found, type Observed } from '../../../host-agent/docker/observed.ts';
import { plan } from '../../../host-agent/reconcile/plan.ts';
import { afterLook } from '../../../host-agent/reconcile/restart/look.ts';
import {
  blank,
  endOperation,
  lastingOf,
  settle,
  type RestartState,
  type UpdateState,
} from '../../../host-agent/reconcile/restart/restart-state.ts';
import { fromStored, toStored, type WaitTime } from '../../../host-agent/reconcile/restart/restart-store.ts';
import type { Operation, Outcome, Step } from '../../../host-agent/reconcile/step.ts';
import {
  isUpdating,
  lookAtVersions,
  planVersions,
  preparationOf,
  unverifiedMs,
} from '../../../host-agent/reconcile/update.ts';
import { EngineError } from '../../../host-agent/docker/errors.ts';
import { RefusedPull } from '../../../host-agent/images/pulls.ts';
import { pullFailure } from '../../../host-agent/reconcile/execute/failures.ts';
import type { Login } from '../../../host-agent/secrets/values.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import type { Declared, Wanted } from '../../../host-agent/desired/wanted.ts';
import type { Workload } from '../../../host-agent/desired/workload.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import type { Process, World } from '../world/time.ts';
import type { Engine } from './engine.ts';

const backoff = { minMs: 100, maxMs: 800 };
export const verifyMs = 800;
/** Longest delay of a changed restart state before it is on the disk. */
const flushMs = 300;
const done: Outcome = { kind: 'done' };
const hostFault = { reason: 'start_failed', message: 'no address is free', exitCode: null } as const;

/** A container as this host reports it. */
export interface SeenHere {
  readonly wanted: Declared;
  readonly description: Description;
  readonly update: UpdateState | null;
}

/** The registry that hosts pull from, and the gateways that know its logins. */
export interface Registry {
  readonly login: (tenant: TenantId, registry: string) => Promise<Login>;
  readonly accepts: (registry: string, login: Login) => boolean;
}

type Stored = ReturnType<typeof toStored>;
/** A host's disk: it outlives the agent. */
export type Disk = Map<ContainerId, Stored>;

export interface ReconcilerOptions {
  readonly world: World;
  readonly process: Process;
  readonly engine: Engine;
  readonly disk: Disk;
  readonly fault: { readonly isThere: boolean };
  readonly workload: Pick<Workload, 'wanted' | 'knows'>;
  readonly stopMs: () => number;
  readonly registry: Registry;
  readonly onPrepared: (id: ContainerId) => void;
  /** Nothing of it is left on the engine. */
  readonly onRemoved: (id: ContainerId, why: 'removed' | 'orphan') => void;
  /** The engine may have others than before. */
  readonly onPresence: () => void;
}

export class Reconciler {
  readonly observed = new Map<ContainerId, SeenHere>();
  readonly #options: ReconcilerOptions;
  readonly #restarts = new Map<ContainerId, RestartState>();
  readonly #preparations = new Map<ContainerId, RestartState>();
  readonly #dirty = new Set<ContainerId>();
  /** Looks that are due at once. */
  readonly #due = new Set<ContainerId>();
  readonly #startedMs: number;
  #isFlushing = false;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#startedMs = options.world.nowMs;
    for (const [id, stored] of options.disk) this.#restarts.set(id, fromStored(stored, this.#time()));
  }

  /** Soon, and in the agent's process. */
  look(id: ContainerId): void {
    if (this.#due.has(id)) return;
    this.#due.add(id);
    this.#later(1, () => {
      this.#due.delete(id);
      this.#look(id);
    });
  }

  #later(ms: number, run: () => void): void {
    const { world, process } = this.#options;
    world.at(world.nowMs + ms, process, run);
  }

  #time(): WaitTime {
    const nowMs = (): number => this.#options.world.nowMs;
    return { wallMs: nowMs, steadyMs: nowMs, maxWaitMs: backoff.maxMs };
  }

  #of(id: ContainerId): RestartState {
    return this.#restarts.get(id) ?? blank;
  }

  #set(id: ContainerId, restart: RestartState): void {
    const before = this.#of(id);
    this.#restarts.set(id, restart);
    if (JSON.stringify(lastingOf(before)) === JSON.stringify(lastingOf(restart))) return;
    this.#dirty.add(id);
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    this.#later(flushMs, () => {
      this.#isFlushing = false;
      this.#flush();
    });
  }

  #flush(): void {
    for (const id of this.#dirty) {
      const restart = this.#restarts.get(id);
      if (restart === undefined) this.#options.disk.delete(id);
      else this.#options.disk.set(id, toStored(restart, this.#time()));
    }
    this.#dirty.clear();
  }

  #forget(id: ContainerId): void {
    this.observed.delete(id);
    this.#preparations.delete(id);
    if (this.#restarts.delete(id)) this.#dirty.add(id);
  }

  /** As in host-agent/reconcile/reconcile-one.ts. */
  #look(id: ContainerId): void {
    const { engine, workload, world } = this.#options;
    const found = engine.of(id);
    const wanted = workload.wanted(id);
    if (found.length === 0 && !workload.knows(id)) return this.#forget(id);
    const watch = { nowMs: world.nowMs, watchedSinceMs: this.#startedMs, backoff };
    const before = { restart: this.#of(id), preparation: this.#preparations.get(id) ?? blank };
    const { restart, roles } = lookAtVersions(before, wanted, found, { ...watch, verifyMs });
    this.#set(id, restart);
    const { since, phase } = before.restart.update ?? {};
    if (since !== restart.update?.since || phase !== restart.update?.phase) {
      this.#preparations.delete(id);
      if (restart.update !== null) this.#flush();
    }
    this.#observe(id, roles.wanted, roles.observed);
    if (wanted.want === 'prepared') this.#options.onPrepared(id);
    if (restart.update?.phase === 'preparing' && wanted.want === 'running' && isUpdating(wanted)) {
      const prepared = preparationOf(wanted);
      const other: Observed = roles.other === undefined ? absent : { kind: 'present', found: roles.other, extra: [] };
      const preparation = afterLook(this.#preparations.get(id) ?? blank, {
        wanted: prepared,
        observed: other,
        ...watch,
      });
      this.#preparations.set(id, preparation);
      this.#carryOut(id, prepared, plan(prepared, other, preparation, world.nowMs), 'preparation');
    }
    this.#carryOut(id, roles.wanted, planVersions(roles, this.#of(id), world.nowMs), 'restart');
    const leftMs = unverifiedMs(restart, roles, world.nowMs, verifyMs);
    if (leftMs !== undefined) this.#later(leftMs + 1, () => this.look(id));
  }

  #observe(id: ContainerId, wanted: Wanted, seen: Observed): void {
    const restart = this.#of(id);
    const description = describe(wanted, seen, restart);
    if (description === undefined || !('container' in wanted)) this.observed.delete(id);
    else this.observed.set(id, { wanted, description, update: restart.update });
  }

  #carryOut(id: ContainerId, wanted: Wanted, step: Step, of: 'restart' | 'preparation'): void {
    const { world } = this.#options;
    const get = (): RestartState => (of === 'restart' ? this.#of(id) : (this.#preparations.get(id) ?? blank));
    const set = (next: RestartState): void => {
      if (of === 'restart') this.#set(id, next);
      else this.#preparations.set(id, next);
    };
    switch (step.kind) {
      case 'none':
        return;
      case 'wait':
        return this.#later(Math.max(1, step.untilMs - world.nowMs), () => this.look(id));
      case 'pull':
      case 'stop':
      case 'drain':
        return this.#begin(id, wanted, step, { get, set });
      case 'fail':
        set(settle(get(), step, { kind: 'failed', why: step.why }, world.nowMs, backoff));
        return this.look(id);
      default:
        set(settle(get(), step, this.#act(id, wanted, step), world.nowMs, backoff));
        return this.look(id);
    }
  }

  #begin(
    id: ContainerId,
    wanted: Wanted,
    step: Extract<Step, { kind: 'pull' | 'stop' | 'drain' }>,
    { get, set }: { readonly get: () => RestartState; readonly set: (next: RestartState) => void },
  ): void {
    const { world, process, engine, stopMs } = this.#options;
    const { generation } = get();
    const operation: Operation =
      step.kind === 'pull'
        ? { kind: 'pull', generation, reference: step.reference }
        : { kind: step.kind, generation, dockerId: step.dockerId };
    set(settle(get(), step, { kind: 'begun', operation }, world.nowMs, backoff));
    const ms = step.kind === 'drain' ? 1 : stopMs();
    const end = (outcome: Outcome): void => {
      if (get().operation !== operation) return;
      set(endOperation(get(), step, outcome, world.nowMs, backoff));
      this.look(id);
    };
    if (step.kind === 'pull') {
      const pull = async () => ('container' in wanted ? this.#pull(wanted, step.reference, ms) : done);
      void world.spawn(process, pull).then(end);
      return;
    }
    // The engine stops it also when the agent is gone.
    if (step.kind === 'stop') world.at(world.nowMs + ms, world.stage, () => engine.stop(step.dockerId));
    this.#later(ms + 1, () => end(done));
  }

  /** As in host-agent/images/pulls.ts: a refusal is final if no other login has come meanwhile. */
  async #pull({ container: { tenant, registry } }: Declared, reference: string, ms: number): Promise<Outcome> {
    const login = await this.#loginOf(tenant, registry);
    await sleep(ms + 1);
    if (this.#options.registry.accepts(registry, login)) return { kind: 'done', imageId: reference };
    const isOld = JSON.stringify(login) !== JSON.stringify(await this.#loginOf(tenant, registry));
    const refused = new EngineError('pull', { kind: 'refused', status: 500 }, 'unauthorized');
    return pullFailure(new RefusedPull(refused, isOld ? 'old' : login));
  }

  /** The answer arrives in the agent's process. */
  #loginOf(tenant: TenantId, name: string): Promise<Login> {
    const { world, process, registry } = this.#options;
    return new Promise((resolve) => {
      void registry.login(tenant, name).then((login) => world.at(world.nowMs, process, () => resolve(login)));
    });
  }

  #act(id: ContainerId, wanted: Wanted, step: Step): Outcome {
    const { engine, fault } = this.#options;
    switch (step.kind) {
      case 'create':
        if ('container' in wanted) engine.create(wanted, step.imageId);
        this.#options.onPresence();
        return { kind: 'done' };
      case 'start':
        if (fault.isThere) return { kind: 'retry', fault: 'host', why: hostFault };
        engine.start(step.dockerId);
        return { kind: 'done' };
      case 'remove': {
        engine.remove(step.dockerId);
        if (engine.of(id).length === 0 && (wanted.want === 'removed' || wanted.want === 'nothing'))
          this.#options.onRemoved(id, wanted.want === 'removed' ? 'removed' : 'orphan');
        this.#options.onPresence();
        return { kind: 'done' };
      }
      default:
        return { kind: 'done' };
    }
  }
}

/** A container as the agent observes it in the engine. */
export const firstOf = (found: readonly Found[]): Found | undefined => {
  const seen = observedFrom(found);
  return seen.kind === 'present' ? seen.found : undefined;
};
