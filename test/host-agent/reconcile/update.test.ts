/** The update of a container in place (ADR 35): which copy runs, and when the phase changes. */
import t from 'tap';
import { specHash } from '../../../host-agent/spec/create-body.ts';
import type { Declared, Updating } from '../../../host-agent/desired/wanted.ts';
import type { DesiredContainer } from '../../../schemas/wire/host.ts';
import { defaultPolicy, type Policy } from '../../../schemas/api/policy.ts';
import type { EngineState, Found } from '../../../host-agent/docker/observed.ts';
import { describe } from '../../../host-agent/reconcile/describe.ts';
import { blank, type RestartState } from '../../../host-agent/reconcile/restart/restart-state.ts';
import {
  advance,
  begun,
  lookAtVersions,
  planOther,
  planVersions,
  preparationOf,
  rolesOf,
  unverifiedMs,
} from '../../../host-agent/reconcile/update.ts';
import {
  container,
  created,
  down,
  found,
  image,
  nowMs,
  paused,
  restartState,
  up,
  wanted,
} from '../support/decisions.ts';

const old = container();
const next = container({ tag: '2', generation: 4 });
const updating = {
  ...(wanted('running', { tag: '2', generation: 4 }) as Declared),
  update: { since: 4, previous: { container: old, spec: specHash(old) } },
} satisfies Declared & Updating;

const oldCopy = (state: EngineState): Found => found(state, { dockerId: 'old' });
const newCopy = (state: EngineState): Found => found(state, { dockerId: 'new', spec: specHash(next) });
const stray = found(up, { dockerId: 'stray', spec: 'third' });
const at = (phase: NonNullable<RestartState['update']>['phase'], changes: Partial<RestartState> = {}): RestartState =>
  restartState({ generation: 4, update: { since: 4, phase, why: null }, ...changes });
const rolesIn = (restart: RestartState, ...copies: readonly Found[]) => rolesOf(updating, copies, restart);
const idOf = (roles: ReturnType<typeof rolesOf>) =>
  roles.observed.kind === 'absent' ? 'absent' : roles.observed.found.dockerId;

t.test('the copy that runs in each phase', (t) => {
  for (const [phase, active, other] of [
    ['preparing', 'old', 'new'],
    ['verifying', 'new', 'old'],
    ['done', 'new', 'old'],
    ['rolled_back', 'old', 'new'],
  ] as const) {
    const roles = rolesIn(at(phase), newCopy(created), stray, oldCopy(up));
    t.equal(idOf(roles), active, phase);
    t.equal(roles.other?.dockerId, other, phase);
    t.match(roles.observed, { extra: [{ dockerId: 'stray' }] }, 'what belongs to neither goes');
    t.match(roles.wanted, { container: { tag: active === 'old' ? '1' : '2' } }, phase);
  }
  t.test('without an update, what was made for the declaration', (t) => {
    const roles = rolesOf(wanted('running', { tag: '2' }), [oldCopy(up), newCopy(down())], blank);
    t.match(roles, { observed: { found: { dockerId: 'new' }, extra: [{ dockerId: 'old' }] }, other: undefined });
    t.end();
  });
  t.end();
});

t.test('an update begins, and is forgotten when its owner knows the end', (t) => {
  const before = restartState({ image });
  const restart = begun(before, updating);
  t.match(restart, { update: { since: 4, phase: 'preparing' }, image: null });
  t.equal(begun(restart, updating), restart);
  t.equal(begun(restart, { want: 'ignored' }), restart, 'nothing is known: nothing ends');
  t.equal(begun(restart, wanted('running', { tag: '2' })).update, null);
  t.match(begun(at('verifying'), { ...updating, update: { ...updating.update, since: 5 } }), {
    update: { since: 5, phase: 'preparing' },
  });
  const same = { ...updating, update: { since: 4, previous: { container: old, spec: updating.spec } } };
  t.match(begun(before, same), { update: { phase: 'done' } }, 'both would be one copy');
  t.end();
});

t.test('preparing', (t) => {
  const phaseAfter = (copies: readonly Found[], preparation: Partial<RestartState> = {}) => {
    const restart = at('preparing', { failures: 7, restarts: 7, countedRun: 'x', disk: null });
    const progress = { roles: rolesIn(restart, ...copies), next, preparation: { ...blank, ...preparation } };
    return advance(restart, { ...progress, nowMs, verifyMs: 60_000 });
  };
  t.equal(phaseAfter([oldCopy(up)]).update?.phase, 'preparing');
  const pulling = { operation: { kind: 'pull', generation: 4, reference: 'x' } } as const;
  t.equal(phaseAfter([oldCopy(up)], pulling).update?.phase, 'preparing');
  t.match(phaseAfter([oldCopy(up), newCopy(created)], { image }), {
    update: { phase: 'verifying' },
    image,
    failures: 0,
    restarts: 0,
    countedRun: null,
  });
  t.equal(phaseAfter([newCopy(up)]).update?.phase, 'verifying', 'killed between the swap and the word on disk');
  t.equal(phaseAfter([]).update?.phase, 'verifying', 'on a host that never had the old one');
  t.equal(phaseAfter([oldCopy(down())]).update?.phase, 'preparing', 'the old one crashes: it starts again');
  const why = { reason: 'image_not_found', message: 'no such tag', exitCode: null } as const;
  t.match(phaseAfter([oldCopy(up)], { attempt: { phase: 'failed' }, why }).update, { phase: 'rolled_back', why });
  t.equal(phaseAfter([oldCopy(up)], { failures: 4, why }).update?.phase, 'preparing');
  t.match(phaseAfter([oldCopy(up)], { failures: 5, why }).update, { phase: 'rolled_back', why });
  t.match(preparationOf(updating), { want: 'prepared', container: { tag: '2' } });
  t.end();
});

t.test('another look at a tag', (t) => {
  const again = (changes: Partial<DesiredContainer> = {}) => container({ repull: 4, generation: 4, ...changes });
  const after = (version: DesiredContainer, pulled: RestartState['image'], copy = oldCopy(up)) => {
    const previous = { container: container({ generation: 4 }), spec: specHash(old) };
    const declared = { ...updating, container: version, spec: specHash(version), update: { since: 4, previous } };
    const restart = at('preparing');
    const roles = rolesOf(declared, [copy], restart);
    const progress = { roles, next: version, preparation: { ...blank, image: pulled }, nowMs, verifyMs: 60_000 };
    return advance(restart, progress).update;
  };
  const same = { reference: image.reference, id: oldCopy(up).imageId };
  t.match(after(again(), same), { phase: 'rolled_back', why: null, unmoved: true }, 'the tag names what runs');
  t.match(after(again(), null), { phase: 'preparing' }, 'it is not pulled yet');
  t.match(after(again(), { ...same, id: 'sha256:two' }), { phase: 'preparing' }, 'it has moved');
  t.match(after(again({ env: { A: '1' } }), same), { phase: 'preparing' }, 'something else changes, too');
  t.match(after(again({ policy: { ...defaultPolicy, restart: 'never' } }), same), { phase: 'preparing' });
  t.match(after(again(), same, oldCopy(down())), { phase: 'preparing' }, 'it starts again first');
  const paired = { ...updating, container: again(), spec: specHash(again()) };
  const restart = at('preparing', { update: { since: 4, phase: 'rolled_back', why: null, unmoved: true } });
  t.same(planVersions(rolesOf(paired, [oldCopy(up)], restart), restart, nowMs), { kind: 'none' });
  t.end();
});

t.test('a second update: what runs of the first runs on until the new version is made', (t) => {
  const first = found(up, { dockerId: 'first', spec: 'first' });
  const stepOf = (restart: RestartState, ...copies: readonly Found[]) =>
    planVersions(rolesIn(restart, ...copies), restart, nowMs);
  const preparing = at('preparing');
  const roles = rolesIn(preparing, oldCopy(down()), first, newCopy(created), { ...stray, state: created });
  t.match(roles, { isInterim: true, observed: { found: { dockerId: 'first' }, extra: [{ dockerId: 'stray' }] } });
  t.equal(roles.other?.dockerId, 'new');
  t.same(stepOf(preparing, oldCopy(down()), first), { kind: 'none' });
  t.match(
    stepOf(preparing, oldCopy(down()), { ...first, state: down() }),
    { kind: 'drain', dockerId: 'first' },
    'it has ended: what ran before both starts again',
  );
  t.match(stepOf(preparing, oldCopy(down())), { kind: 'start', dockerId: 'old' });
  const elsewhere = { ...first, placement: 2 };
  t.match(stepOf(preparing, elsewhere), { kind: 'stop', dockerId: 'first' }, 'not a copy of another placement');
  for (const phase of ['verifying', 'rolled_back'] as const) {
    const drained = at(phase, { drainedBeside: 'old' });
    t.match(stepOf(drained, oldCopy(down()), first, newCopy(created)), { kind: 'stop', dockerId: 'first' }, phase);
  }
  t.end();
});

t.test('whatever version is up, in any phase, it is stopped where the container should not run', (t) => {
  const copies = { old: oldCopy(up), new: newCopy(up), interim: found(up, { dockerId: 'first', spec: 'first' }) };
  for (const phase of ['preparing', 'verifying', 'done', 'rolled_back'] as const) {
    for (const desired of ['running', 'stopped'] as const) {
      for (const [name, copy] of Object.entries(copies)) {
        // Desired running and to be stopped: the host is cut off or fenced.
        const container = { ...updating.container, desired };
        const stopped = { ...updating, container, want: 'stopped' } as const;
        const restart = at(phase);
        const roles = rolesOf(stopped, [copy], restart);
        const row = `${name}, ${phase}, desired ${desired}`;
        t.match(planVersions(roles, restart, nowMs), { kind: 'stop', dockerId: copy.dockerId }, row);
      }
    }
  }
  t.end();
});

t.test('a job', (t) => {
  const policy = (restart: Policy['restart']): Policy => ({ ...defaultPolicy, restart });
  const job = (restart: Policy['restart']) => {
    const [one, two] = [container({ policy: policy(restart) }), container({ ...next, policy: policy(restart) })];
    const declared = wanted('running', two) as Declared;
    return { ...declared, update: { since: 4, previous: { container: one, spec: specHash(one) } } };
  };
  const why = { reason: 'exited', message: 'exited with code 1', exitCode: 1 } as const;
  const after = (restart: Policy['restart'], before: RestartState, ...copies: readonly Found[]) => {
    const roles = rolesOf(job(restart), copies, before);
    const progress = { roles, next, preparation: { ...blank, image }, nowMs, verifyMs: 60_000 };
    return advance(before, progress).update?.phase;
  };
  const ended = { attempt: { phase: 'ended' }, why } as const;
  for (const [restart, phase] of [
    ['never', 'done'],
    ['on_failure', 'rolled_back'],
  ] as const) {
    const copies = [oldCopy(down()), newCopy(down())];
    t.equal(after(restart, at('verifying', ended), ...copies), phase, `${restart}: whether the old one runs again`);
    t.equal(after(restart, at('verifying', { failures: 3, why }), ...copies), phase, restart);
    t.equal(after(restart, at('preparing'), oldCopy(up), newCopy(created)), 'verifying', restart);
    t.equal(
      after(restart, at('preparing', ended), oldCopy(down()), newCopy(created)),
      'preparing',
      'the old version has run to its end: the new one needs a start',
    );
  }
  t.end();
});

t.test('a second update of a job: the end of what runs of the first is that of the container', (t) => {
  const job = (restart: Policy['restart']) => {
    const policy: Policy = { ...defaultPolicy, restart };
    const [one, two] = [container({ policy, generation: 4 }), container({ ...next, policy })];
    const declared = wanted('running', two) as Declared;
    return { ...declared, update: { since: 4, previous: { container: one, spec: specHash(one) } } };
  };
  const exited = (run: string, exitCode: number): EngineState =>
    ({ ...down({ exitCode }), run }) as Extract<EngineState, { phase: 'exited' }>;
  const looked = (restart: Policy['restart'], exitCode: number, more: Partial<RestartState> = {}) => {
    const declared = job(restart);
    const before = at('preparing', { want: 'running', stopped: ['old:1'], seenUpAtMs: nowMs, ...more });
    const copies = [
      found(exited('old:1', 0), { dockerId: 'old', spec: declared.update.previous.spec }),
      found(exited('first:1', exitCode), { dockerId: 'first', spec: 'first' }),
    ];
    const watch = { nowMs, watchedSinceMs: nowMs - 1000, backoff: { minMs: 1000, maxMs: 1000 } };
    const both = { restart: before, preparation: blank };
    const { restart: after, roles } = lookAtVersions(both, declared, copies, { ...watch, verifyMs: 60_000 });
    return { after, step: planVersions(roles, after, nowMs), report: describe(roles.wanted, roles.observed, after) };
  };
  for (const more of [{}, { seenUpAtMs: null }, { stopped: [] }]) {
    const { after, step, report } = looked('on_failure', 0, more);
    t.match(after, { attempt: { phase: 'ended' }, why: { reason: 'completed' }, update: { phase: 'preparing' } });
    t.same(step, { kind: 'none' }, 'nothing runs it again, in no version');
    t.match(report, { ended: true, observation: { status: 'stopped', reason: 'completed', exit_code: 0 } });
  }
  for (const [row, exitCode, more] of [
    ['it failed', 1, {}],
    ['the agent stopped it', 0, { stopped: ['old:1', 'first:1'] }],
  ] as const) {
    const { after, step } = looked('on_failure', exitCode, more);
    t.equal(after.attempt.phase, 'clear', row);
    t.match(step, { kind: 'drain', dockerId: 'first' }, `${row}: what ran before both starts again`);
  }
  t.match(looked('always', 0).step, { kind: 'drain', dockerId: 'first' });
  t.end();
});

t.test('verifying', (t) => {
  const why = { reason: 'exited', message: 'exited with code 1', exitCode: 1 } as const;
  const after = (state: EngineState | undefined, changes: Partial<RestartState> = {}) => {
    const restart = at('verifying', { startedAtMs: nowMs - 90_000, why, ...changes });
    const copies = [oldCopy(down({ exitCode: 0 })), ...(state === undefined ? [] : [newCopy(state)])];
    const progress = { roles: rolesIn(restart, ...copies), next, preparation: blank, nowMs, verifyMs: 60_000 };
    return advance(restart, progress);
  };
  const short = { ...up, startedAtMs: nowMs - 59_999 };
  t.equal(after(short).update?.phase, 'verifying', 'not long enough');
  t.equal(after(up, { startedAtMs: nowMs - 59_999 }).update?.phase, 'verifying', "not by the engine's clock alone");
  t.equal(after(up).update?.phase, 'done');
  t.equal(after(up, { startedAtMs: null }).update?.phase, 'done', 'the agent has started since');
  t.equal(after({ ...up, health: 'healthy' }).update?.phase, 'done');
  t.equal(after({ ...up, health: 'starting' }).update?.phase, 'verifying', 'its health is not known');
  t.equal(after(down()).update?.phase, 'verifying', 'it is down, and may come up');
  t.match(after({ ...short, health: 'unhealthy' }), { update: { phase: 'rolled_back', why: { reason: 'unhealthy' } } });
  t.equal(after(down(), { failures: 2 }).update?.phase, 'verifying');
  t.match(after(down(), { failures: 3 }), {
    update: { phase: 'rolled_back', why },
    failures: 0,
    why: null,
    countedRun: 'd1:1',
  });
  t.match(after(created, { attempt: { phase: 'failed' } }).update, { phase: 'rolled_back', why });
  t.end();
});

t.test('only one of the two is up', (t) => {
  const step = (phase: 'preparing' | 'verifying' | 'rolled_back' | 'done', other: EngineState, mine: EngineState) => {
    const restart = at(phase);
    const isOldUp = phase === 'preparing' || phase === 'rolled_back';
    const copies = isOldUp ? [oldCopy(mine), newCopy(other)] : [newCopy(mine), oldCopy(other)];
    return planOther(rolesIn(restart, ...copies), restart);
  };
  t.equal(step('preparing', created, up), undefined);
  t.same(step('verifying', up, created), { kind: 'stop', dockerId: 'old' });
  t.same(step('verifying', paused, created), { kind: 'unpause', dockerId: 'old' });
  t.same(
    step('verifying', down(), created),
    { kind: 'drain', dockerId: 'old', isBeside: true },
    'its last lines come first',
  );
  t.equal(step('verifying', down(), up), undefined, 'its owner has not heard of the end: it stays');
  t.same(step('rolled_back', up, down()), { kind: 'stop', dockerId: 'new' });
  t.equal(step('done', down(), up), undefined);
  const drained = at('verifying', { drainedBeside: 'old' });
  t.equal(planOther(rolesIn(drained, newCopy(created), oldCopy(down())), drained), undefined);
  const stopped = { ...updating, want: 'stopped' as const };
  const isolated = at('verifying', { want: 'stopped' });
  t.equal(planOther(rolesOf(stopped, [newCopy(down()), oldCopy(down())], isolated), isolated), undefined);
  t.end();
});

t.test('the time of the next look', (t) => {
  const left = (restart: RestartState, copy: Found) => unverifiedMs(restart, rolesIn(restart, copy), nowMs, 90_000);
  t.equal(left(at('verifying'), newCopy(up)), 30_000);
  t.equal(left(at('verifying'), newCopy({ ...up, startedAtMs: nowMs - 100_000 })), 0);
  t.equal(left(at('verifying'), newCopy(down())), undefined);
  t.equal(left(at('preparing'), oldCopy(up)), undefined);
  t.end();
});
