/**
 * From any copies on the engine, with any luck and killed at any step, an update ends: done or
 * rolled back, with one version up. Never do two run. The engine is a minimal model of Docker.
 */
import fc from 'fast-check';
import t from 'tap';
import { fromStored, toStored } from '../../../host-agent/reconcile/restart/restart-store.ts';
import { afterLook } from '../../../host-agent/reconcile/restart/look.ts';
import {
  blank,
  endOperation,
  settle,
  withStep,
  type RestartState,
} from '../../../host-agent/reconcile/restart/restart-state.ts';
import { absent, type EngineState, type Found } from '../../../host-agent/docker/observed.ts';
import { plan } from '../../../host-agent/reconcile/plan.ts';
import type { Operation, Outcome, Step } from '../../../host-agent/reconcile/step.ts';
import {
  isUpdating,
  lookAtVersions,
  planVersions,
  preparationOf,
  unverifiedMs,
} from '../../../host-agent/reconcile/update.ts';
import { specHash } from '../../../host-agent/spec/create-body.ts';
import type { Declared, Wanted } from '../../../host-agent/desired/wanted.ts';
import { defaultPolicy } from '../../../schemas/api/policy.ts';
import { restartPolicies } from '../../../schemas/words.ts';
import { container, found, nowMs, reference, wanted } from '../support/decisions.ts';

const backoff = { minMs: 1000, maxMs: 60_000 };
const verifyMs = 60_000;
const maxTurns = 300;

const old = container();
const next = container({ tag: '2', generation: 4 });
const [oldSpec, nextSpec] = [specHash(old), specHash(next)];
const updating: Wanted = {
  ...(wanted('running', { tag: '2', generation: 4 }) as Declared),
  update: { since: 4, previous: { container: old, spec: oldSpec } },
};

/** Outcome of a step on the engine, or an event beside it. */
type Luck = 'well' | 'retry' | 'failed' | 'outage' | 'changed' | 'crash' | 'killed' | 'gone';
const anyLuck: fc.Arbitrary<Luck> = fc.oneof(
  { weight: 5, arbitrary: fc.constant<Luck>('well') },
  { weight: 2, arbitrary: fc.constantFrom<Luck>('retry', 'failed', 'outage', 'changed', 'crash', 'killed') },
);

const anyState: fc.Arbitrary<EngineState> = fc.oneof(
  fc.constant<EngineState>({ phase: 'created' }),
  fc.constant<EngineState>({ phase: 'dead' }),
  fc.constant<EngineState>({ phase: 'paused', run: 'p' }),
  fc.constantFrom('a', 'b').map((run): EngineState => ended(run, nowMs)),
);
/** At most the first of them is up. */
const anyCopies: fc.Arbitrary<Found[]> = fc
  .tuple(
    fc.uniqueArray(fc.constantFrom(oldSpec, nextSpec, 'third'), { maxLength: 3 }),
    fc.array(anyState, { minLength: 3, maxLength: 3 }),
    fc.boolean(),
  )
  .map(([specs, states, isUp]) =>
    specs.map((spec, at) => {
      const up: EngineState = { phase: 'running', run: 'u', startedAtMs: nowMs, health: 'none', addresses: [] };
      const state = at === 0 && isUp ? up : (states[at] as EngineState);
      return found(state.phase === 'paused' && at > 0 ? { phase: 'created' } : state, { dockerId: `d${at}`, spec });
    }),
  );

const ended = (run: string, endedAtMs: number, exitCode = 1): EngineState => ({
  phase: 'exited',
  run,
  exit: { exitCode, oomKilled: false, upMs: 10, endedAtMs, error: '' },
});

interface World {
  engine: Found[];
  restart: RestartState;
  preparation: RestartState;
  atMs: number;
  made: number;
  /** Placement that copies are made for. */
  placement: number;
  /** The version of each start that was no failure of the engine. */
  readonly started: string[];
  /** The new version never stays up. */
  readonly isBroken: boolean;
}

const why = { reason: 'start_failed', message: 'bad luck', exitCode: null } as const;

function act(world: World, step: Step, spec: string, luck: Luck): Outcome {
  switch (luck) {
    case 'retry':
      return { kind: 'retry', fault: 'container', why };
    case 'failed':
      return step.kind === 'pull' || step.kind === 'create'
        ? { kind: 'failed', why }
        : { kind: 'retry', fault: 'container', why };
    case 'changed':
      return { kind: 'changed' };
    case 'outage':
      apply(world, step, spec, false);
      return { kind: 'outage' };
    case 'well':
    case 'crash':
    case 'killed':
    case 'gone':
      apply(world, step, spec, luck === 'crash');
      return step.kind === 'pull' ? { kind: 'done', imageId: 'sha256:one' } : { kind: 'done' };
  }
}

const isUp = ({ state }: Found): boolean => state.phase === 'running' || state.phase === 'paused';

function apply(world: World, step: Step, spec: string, crashes: boolean): void {
  const run = `run ${world.made++}`;
  const change = (dockerId: string, state: EngineState): void => {
    world.engine = world.engine.map((each) => (each.dockerId === dockerId ? { ...each, state } : each));
  };
  switch (step.kind) {
    case 'create':
      if (world.engine.some((each) => each.spec === spec && each.placement === world.placement))
        throw new Error('a second copy of one version');
      world.engine = [
        ...world.engine,
        found({ phase: 'created' }, { dockerId: run, spec, imageId: step.imageId, placement: world.placement }),
      ];
      return;
    case 'start':
    case 'unpause': {
      const one = world.engine.find(({ dockerId }) => dockerId === step.dockerId);
      if (step.kind === 'start' && world.engine.some((each) => each !== one && isUp(each)))
        throw new Error('a start beside one that runs');
      const fails = crashes || (world.isBroken && one?.spec === nextSpec);
      const up: EngineState = { phase: 'running', run, startedAtMs: world.atMs, health: 'none', addresses: [] };
      if (step.kind === 'start' && one !== undefined) world.started.push(one.spec);
      change(step.dockerId, fails ? ended(run, world.atMs) : up);
      return;
    }
    case 'stop': {
      // It ends at once, and cleanly, as programs do that handle SIGTERM.
      const state = world.engine.find(({ dockerId }) => dockerId === step.dockerId)?.state;
      if (state?.phase === 'running') change(step.dockerId, ended(state.run, world.atMs, 0));
      return;
    }
    case 'remove':
      world.engine = world.engine.filter(({ dockerId }) => dockerId !== step.dockerId);
      return;
    default:
      return;
  }
}

/** Carries out a step. @returns the restart state after it */
function carryOut(world: World, restart: RestartState, step: Step, spec: string, luck: Luck): RestartState {
  switch (step.kind) {
    case 'none':
    case 'wait':
      return restart;
    case 'fail':
      return settle(restart, step, { kind: 'failed', why: step.why }, world.atMs, backoff);
    case 'pull':
    case 'stop':
    case 'drain': {
      const operation: Operation =
        step.kind === 'pull'
          ? { kind: 'pull', generation: restart.generation, reference }
          : { kind: step.kind, generation: restart.generation, dockerId: step.dockerId };
      const begun = settle(restart, step, { kind: 'begun', operation }, world.atMs, backoff);
      return endOperation(begun, step, act(world, step, spec, luck), world.atMs, backoff);
    }
    default:
      return settle(restart, step, act(world, step, spec, luck), world.atMs, backoff);
  }
}

/** One look, as the reconciler does it. @returns false: there is nothing to do any more */
function turn(world: World, want: Wanted, luck: Luck): boolean {
  const watch = { nowMs: world.atMs, watchedSinceMs: 0, backoff };
  if ('container' in want) world.placement = want.container.placement;
  const before = { restart: world.restart, preparation: world.preparation };
  const { restart, roles } = lookAtVersions(before, want, world.engine, { ...watch, verifyMs });
  const { since, phase } = before.restart.update ?? {};
  if (since !== restart.update?.since || phase !== restart.update?.phase) world.preparation = blank;
  world.restart = restart;
  const steps: Step[] = [];
  if (restart.update?.phase === 'preparing' && isUpdating(want)) {
    const prepared = preparationOf(want);
    const observed = roles.other === undefined ? absent : ({ kind: 'present', found: roles.other, extra: [] } as const);
    world.preparation = afterLook(world.preparation, { wanted: prepared, observed, ...watch });
    const step = plan(prepared, observed, world.preparation, world.atMs);
    world.preparation = carryOut(world, world.preparation, step, want.spec, luck);
    steps.push(step);
  }
  const step = planVersions(roles, restart, world.atMs);
  const noted = withStep(restart, step, world.engine);
  world.restart = carryOut(world, noted, step, 'spec' in roles.wanted ? roles.wanted.spec : '', luck);
  steps.push(step);
  if (luck === 'killed') restartAgent(world, noted);
  if (luck === 'gone') world.engine = world.engine.filter(({ state }) => state.phase !== 'running');
  const waits = steps.flatMap((each) => (each.kind === 'wait' ? [each.untilMs] : []));
  const leftMs = unverifiedMs(restart, roles, world.atMs, verifyMs);
  if (leftMs !== undefined) waits.push(world.atMs + leftMs);
  if (steps.some(({ kind }) => kind !== 'none' && kind !== 'wait')) return true;
  if (waits.length === 0) return false;
  world.atMs = Math.max(world.atMs, Math.min(...waits));
  return true;
}

/** Only what was on the disk before the step survives. */
function restartAgent(world: World, restart: RestartState): void {
  const time = { wallMs: () => world.atMs, steadyMs: () => world.atMs, maxWaitMs: backoff.maxMs };
  world.restart = fromStored(toStored(restart, time), time);
  world.preparation = blank;
}

function settled(world: World, want: Wanted): void {
  for (let turns = 0; turns < maxTurns; turns++) if (!turn(world, want, 'well')) return;
  throw new Error(`no end after ${maxTurns} looks, in phase ${world.restart.update?.phase}`);
}

const seed = Number(process.env['LONGSHORE_TEST_SEED'] ?? 20_260_102);

t.test('every update ends with one version up', (t) => {
  t.comment(`seed ${seed}`);
  const lucks = fc.array(anyLuck, { maxLength: 30 });
  const ends = { done: 0, rolled_back: 0 };
  fc.assert(
    fc.property(anyCopies, lucks, fc.boolean(), (engine, before, isBroken) => {
      const restart = { ...blank, generation: 3, want: 'running' as const };
      const world: World = {
        engine,
        restart,
        preparation: blank,
        atMs: nowMs,
        made: 0,
        placement: 1,
        started: [],
        isBroken,
      };
      for (const luck of before) turn(world, updating, luck);
      settled(world, updating);
      const { update, attempt } = world.restart;
      const phase = update?.phase;
      if (phase !== 'done' && phase !== 'rolled_back') throw new Error(`it ended ${phase}`);
      const wasUp = engine.some((each) => each.spec === nextSpec && isUp(each));
      if (isBroken && !wasUp && phase === 'done') throw new Error('what never stays up is done');
      ends[phase]++;
      const spec = phase === 'done' ? nextSpec : oldSpec;
      const expected = attempt.phase === 'failed' ? '' : spec;
      const up = () =>
        world.engine
          .filter(isUp)
          .map((each) => each.spec)
          .join();
      if (up() !== expected) throw new Error(`${phase}: up is ${up()}`);

      // The owner has heard how it ended.
      settled(
        world,
        phase === 'done' ? wanted('running', { tag: '2', generation: 4 }) : wanted('running', { generation: 5 }),
      );
      if (world.restart.attempt.phase === 'failed') return;
      if (up() !== spec || world.engine.length !== 1)
        throw new Error(`${phase}: ${world.engine.length} copies are left`);
    }),
    { numRuns: 3000, seed },
  );
  t.ok(ends.done > 100, `${ends.done} done`);
  t.ok(ends.rolled_back > 100, `${ends.rolled_back} rolled back`);
  t.end();
});

t.test('a stop by the agent is never the end of the program, and what runs once runs once', (t) => {
  const tries = { always: 0, on_failure: 0, never: 0 };
  const anyPolicy = fc.constantFrom(...restartPolicies);
  const anyLook = fc.tuple(fc.nat({ max: 4 }), fc.oneof({ weight: 9, arbitrary: anyLuck }, fc.constant<Luck>('gone')));
  fc.assert(
    fc.property(anyPolicy, fc.array(anyLook, { maxLength: 40 }), fc.boolean(), (restart, looks, isBroken) => {
      const policy = { ...defaultPolicy, restart };
      const first = container({ policy });
      const to = (tag: string, generation: number): Wanted => ({
        ...(wanted('running', { policy, tag, generation }) as Declared),
        update: { since: generation, previous: { container: first, spec: specHash(first) } },
      });
      // Two updates, their way back, and another placement on the same host.
      const wants = [
        wanted('running', { policy }),
        to('2', 4),
        to('3', 5),
        wanted('running', { policy, generation: 6 }),
        wanted('running', { policy, generation: 7, placement: 2 }),
      ];
      const world: World = {
        engine: [],
        restart: blank,
        preparation: blank,
        atMs: nowMs,
        made: 0,
        placement: 1,
        started: [],
        isBroken,
      };
      const check = (): void => {
        const { attempt, why } = world.restart;
        if (restart !== 'never' && why?.exitCode === 0) throw new Error(`taken for an end: ${why.message}`);
        if (restart !== 'never' && attempt.phase === 'ended') throw new Error('it stays down');
        const twice = world.started.find((spec, at) => world.started.indexOf(spec) !== at);
        if (restart === 'never' && twice !== undefined) throw new Error(`${twice} runs twice: ${world.started.join()}`);
      };
      let at = 0;
      for (const [step, luck] of looks) {
        if (step === 0 && at < wants.length - 1) at++;
        turn(world, wants[at] as Wanted, luck);
        check();
      }
      settled(world, wants[at] as Wanted);
      check();
      tries[restart]++;
      if (restart === 'never' || world.restart.attempt.phase === 'failed') return;
      if (world.engine.filter(isUp).length !== 1) throw new Error(`${world.engine.filter(isUp).length} are up`);
    }),
    { numRuns: 4000, seed },
  );
  t.ok(Math.min(...Object.values(tries)) > 500, JSON.stringify(tries));
  t.end();
});
