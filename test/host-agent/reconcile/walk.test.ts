/**
 * From any (desired, observed, restart state), the loop of look, plan, carry out and settle reaches
 * "nothing to do" in a bounded number of steps, with the engine as desired. The engine is a minimal
 * model of Docker; the seed decides its answers and when the desired state changes.
 */
import fc from 'fast-check';
import t from 'tap';
import { describe } from '../../../host-agent/reconcile/describe.ts';
import { afterLook } from '../../../host-agent/reconcile/restart/look.ts';
import { endOperation, settle, type RestartState } from '../../../host-agent/reconcile/restart/restart-state.ts';
import {
  absent,
  observedFrom,
  type EngineState,
  type Found,
  type SandboxSeen,
} from '../../../host-agent/docker/observed.ts';
import { plan } from '../../../host-agent/reconcile/plan.ts';
import { specHash } from '../../../host-agent/spec/create-body.ts';
import type { Wanted } from '../../../host-agent/desired/wanted.ts';
import { container, found, image, restartState, nowMs, reference, wanted } from '../support/decisions.ts';
import type { Operation, Outcome, Step } from '../../../host-agent/reconcile/step.ts';

const bounds = { minMs: 1000, maxMs: 60_000 };
const maxSteps = 100;

const anyState: fc.Arbitrary<EngineState> = fc.oneof(
  fc.constant<EngineState>({ phase: 'created' }),
  fc.constant<EngineState>({ phase: 'dead' }),
  fc.constant<EngineState>({ phase: 'removing' }),
  fc.record({ run: fc.constantFrom('a', 'b') }).map(({ run }): EngineState => ({ phase: 'paused', run })),
  fc
    .record({ run: fc.constantFrom('a', 'b'), health: fc.constantFrom('none', 'starting', 'healthy', 'unhealthy') })
    .map(({ run, health }): EngineState => ({ phase: 'running', run, startedAtMs: nowMs, health, addresses: [] })),
  fc
    .record({
      run: fc.constantFrom('a', 'b'),
      exitCode: fc.integer({ min: 0, max: 255 }),
      oomKilled: fc.boolean(),
      upMs: fc.nat(1_000_000),
      endedAtMs: fc.nat(1_000_000),
    })
    .map(({ run, ...exit }): EngineState => ({ phase: 'exited', run, exit: { ...exit, error: '' } })),
);

const anyFound: fc.Arbitrary<Found> = fc
  .record({
    dockerId: fc.constantFrom('d1', 'd2', 'd3'),
    placement: fc.constantFrom(1, 2),
    spec: fc.constantFrom(specHash(container()), 'other'),
    imageId: fc.constantFrom('sha256:one', 'sha256:two'),
    state: anyState,
    hasOtherLimits: fc.boolean(),
    sandbox: fc.oneof(
      fc.constant(null),
      fc.record({ dockerId: fc.constantFrom('s1', 's2'), state: fc.constantFrom('up', 'down', 'gone') }),
    ),
  })
  .map(({ state, ...changes }) => found(state, changes));

const anyWanted: fc.Arbitrary<Wanted> = fc.oneof(
  fc.constant<Wanted>({ want: 'nothing' }),
  fc.constant<Wanted>({ want: 'ignored' }),
  fc
    .record({
      want: fc.constantFrom('running', 'prepared', 'stopped', 'removed'),
      generation: fc.integer({ min: 1, max: 4 }),
      pull_policy: fc.constantFrom('if_not_present', 'always', 'never'),
      repository: fc.constantFrom('longshore/web', null),
      admitted: fc.boolean(),
    })
    .map(({ want, admitted, ...changes }) => wanted(want, changes, admitted)),
);

const anyRestartState: fc.Arbitrary<RestartState> = fc
  .record({
    generation: fc.integer({ min: -1, max: 4 }),
    want: fc.constantFrom('running', 'prepared', 'stopped', 'removed', 'nothing', 'ignored'),
    attempt: fc.oneof(
      fc.constant({ phase: 'clear' } as const),
      fc.constant({ phase: 'failed' } as const),
      fc.integer({ min: -100_000, max: 10_000_000 }).map((ms) => ({ phase: 'waiting', untilMs: nowMs + ms }) as const),
    ),
    failures: fc.nat(40),
    countedRun: fc.constantFrom(null, 'a', 'b'),
    pullDue: fc.boolean(),
    image: fc.constantFrom(null, image, { reference: 'other:1', id: 'sha256:x' }),
    drained: fc.constantFrom(null, 'd1', 'd2'),
  })
  .map((changes) => restartState(changes));

/** Outcome of a step on the engine: mostly success. */
type Luck = 'well' | 'retry' | 'failed' | 'outage' | 'changed' | 'crash';
const anyLuck: fc.Arbitrary<Luck> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Luck>('well') },
  { weight: 1, arbitrary: fc.constantFrom<Luck>('retry', 'failed', 'outage', 'changed', 'crash') },
);

const why = { reason: 'start_failed', message: 'bad luck', exitCode: null } as const;

interface World {
  engine: Found[];
  restart: RestartState;
  atMs: number;
  made: number;
}

/** Applies a step to the model of the engine. @returns its outcome */
function act(world: World, step: Step, luck: Luck): Outcome {
  switch (luck) {
    case 'retry':
      return { kind: 'retry', fault: 'container', why };
    case 'failed':
      return step.kind === 'pull' || step.kind === 'create'
        ? { kind: 'failed', why }
        : { kind: 'retry', fault: 'container', why };
    case 'outage':
      // The answer was lost, and the engine did the work.
      apply(world, step, luck);
      return { kind: 'outage' };
    case 'changed':
      return { kind: 'changed' };
    case 'well':
    case 'crash':
      apply(world, step, luck);
      return step.kind === 'pull' ? { kind: 'done', imageId: 'sha256:one' } : { kind: 'done' };
  }
}

function apply(world: World, step: Step, luck: Luck): void {
  const change = (dockerId: string, state: EngineState): void => {
    world.engine = world.engine.map((each) => (each.dockerId === dockerId ? { ...each, state } : each));
  };
  const run = `run ${world.made++}`;
  const exited: EngineState = {
    phase: 'exited',
    run,
    exit: { exitCode: 1, oomKilled: false, upMs: 10, endedAtMs: world.atMs, error: '' },
  };
  switch (step.kind) {
    case 'create':
      if (world.engine.length > 0) throw new Error('a second container beside the first');
      world.engine = [found({ phase: 'created' }, { dockerId: `made ${run}`, imageId: step.imageId })];
      return;
    case 'start_sandbox':
      world.engine = world.engine.map((each) =>
        each.sandbox?.dockerId === step.dockerId ? { ...each, sandbox: { ...each.sandbox, state: 'up' } } : each,
      );
      return;
    case 'start':
      if (world.engine.some(({ dockerId, sandbox }) => dockerId === step.dockerId && !hasNetwork(sandbox))) {
        throw new Error('a start without a network');
      }
      change(step.dockerId, luck === 'crash' ? exited : runningAs(world, run));
      return;
    case 'unpause':
      change(step.dockerId, luck === 'crash' ? exited : runningAs(world, run));
      return;
    case 'stop':
      change(step.dockerId, exited);
      return;
    case 'remove':
      world.engine = world.engine.filter(({ dockerId }) => dockerId !== step.dockerId);
      return;
    case 'limit':
      world.engine = world.engine.map((each) =>
        each.dockerId === step.dockerId ? { ...each, hasOtherLimits: false } : each,
      );
      return;
    case 'pull':
    case 'drain':
    case 'cancel_pull':
    case 'none':
    case 'wait':
    case 'fail':
      return;
  }
}

const runningAs = ({ atMs }: World, run: string): EngineState => ({
  phase: 'running',
  run,
  startedAtMs: atMs,
  health: 'none',
  addresses: [],
});

const hasNetwork = (sandbox: SandboxSeen | null): boolean => sandbox === null || sandbox.state === 'up';

const isLong = (step: Step): step is Extract<Step, { kind: 'pull' | 'stop' | 'drain' }> =>
  step.kind === 'pull' || step.kind === 'stop' || step.kind === 'drain';

/** One look, as the reconciler does it. @returns the step */
function turn(world: World, want: Wanted, luck: Luck): Step {
  const observed = observedFrom(world.engine);
  world.restart = afterLook(world.restart, {
    wanted: want,
    observed,
    nowMs: world.atMs,
    watchedSinceMs: 0,
    backoff: bounds,
  });
  describe(want, observed, world.restart);
  const step = plan(want, observed, world.restart, world.atMs);
  switch (step.kind) {
    case 'none':
      return step;
    case 'wait':
      world.atMs = step.untilMs;
      // The engine completes its own removals.
      world.engine = world.engine.filter(({ state }) => state.phase !== 'removing');
      return step;
    case 'fail':
      world.restart = settle(world.restart, step, { kind: 'failed', why: step.why }, world.atMs, bounds);
      return step;
    default: {
      if (!isLong(step)) {
        world.restart = settle(world.restart, step, act(world, step, luck), world.atMs, bounds);
        return step;
      }
      const operation: Operation =
        step.kind === 'pull'
          ? { kind: 'pull', generation: world.restart.generation, reference }
          : { kind: step.kind, generation: world.restart.generation, dockerId: step.dockerId };
      world.restart = settle(world.restart, step, { kind: 'begun', operation }, world.atMs, bounds);
      world.restart = endOperation(world.restart, step, act(world, step, luck), world.atMs, bounds);
      return step;
    }
  }
}

function settled(world: World, want: Wanted): Step[] {
  const steps: Step[] = [];
  while (steps.length < maxSteps) {
    const step = turn(world, want, 'well');
    steps.push(step);
    if (step.kind === 'none') return steps;
  }
  throw new Error(
    `no end after ${maxSteps} steps: ${steps
      .slice(-8)
      .map(({ kind }) => kind)
      .join(' ')}`,
  );
}

const seed = Number(process.env['LONGSHORE_TEST_SEED'] ?? 20_260_102);

t.test('every walk ends with nothing to do and the desired state', (t) => {
  t.comment(`seed ${seed}`);
  const distinct = fc.uniqueArray(anyFound, { maxLength: 3, selector: ({ dockerId }) => dockerId });
  const wishes = fc.array(fc.tuple(anyWanted, fc.array(anyLuck, { maxLength: 12 })), { maxLength: 4 });
  fc.assert(
    fc.property(distinct, anyRestartState, wishes, anyWanted, (engine, remembered, before, last) => {
      const world: World = { engine: [...engine], restart: remembered, atMs: nowMs, made: 0 };
      for (const [want, lucks] of before) for (const luck of lucks) turn(world, want, luck);
      settled(world, last);
      check(world, last);
    }),
    { numRuns: 5000, seed },
  );
  t.end();
});

function check(world: World, want: Wanted): void {
  const observed = observedFrom(world.engine);
  const phase = observed.kind === 'present' ? observed.found.state.phase : 'absent';
  const hasFailed = world.restart.attempt.phase === 'failed';
  const verdict = ((): boolean => {
    switch (want.want) {
      case 'running':
        return hasFailed || (phase === 'running' && observed.kind === 'present' && hasNetwork(observed.found.sandbox));
      case 'prepared':
        return hasFailed || phase === 'created' || phase === 'exited';
      case 'stopped':
        return phase !== 'running' && phase !== 'paused';
      case 'removed':
      case 'nothing':
        return observed === absent;
      case 'ignored':
        return true;
    }
  })();
  if (!verdict) throw new Error(`wanted ${want.want}, ended ${phase}`);
}

t.test('an ignored container stays as it is, whatever was observed or remembered', (t) => {
  fc.assert(
    fc.property(anyFound, anyRestartState, (each, remembered) => {
      const world: World = { engine: [each], restart: remembered, atMs: nowMs, made: 0 };
      return turn(world, { want: 'ignored' }, 'well').kind === 'none' && world.engine[0] === each;
    }),
    { numRuns: 1000, seed },
  );
  t.end();
});
