import t from 'tap';
import type { RestartState } from '../../../host-agent/reconcile/restart/restart-state.ts';
import { absent, type Observed, type SandboxSeen } from '../../../host-agent/docker/observed.ts';
import { plan } from '../../../host-agent/reconcile/plan.ts';
import type { Wanted } from '../../../host-agent/desired/wanted.ts';
import {
  created,
  down,
  found,
  image,
  restartState,
  nowMs,
  paused,
  reference,
  seen,
  up,
  wanted,
} from '../support/decisions.ts';
import type { Step } from '../../../host-agent/reconcile/step.ts';

const overDisk = {
  attempt: { phase: 'failed' },
  why: { reason: 'disk_limit', message: 'it wrote too much', exitCode: null },
} as const;
const running = wanted('running');
const stopped = wanted('stopped');
const isolated: Wanted = { ...wanted('running'), want: 'stopped' } as Wanted;
const prepared = wanted('prepared');
const removed = wanted('removed');
const always = wanted('running', { pull_policy: 'always' });
const orphan: Wanted = { want: 'nothing' };
const ignored: Wanted = { want: 'ignored' };

const none: Step = { kind: 'none' };
const pull: Step = { kind: 'pull', reference, policy: 'if_not_present' };
const create: Step = { kind: 'create', reference, imageId: 'sha256:one' };
const start = (changes: Partial<Extract<Step, { kind: 'start' }>> = {}): Step => ({
  kind: 'start',
  dockerId: 'd1',
  prepare: false,
  again: false,
  ...changes,
});
const stop: Step = { kind: 'stop', dockerId: 'd1' };
const drain: Step = { kind: 'drain', dockerId: 'd1' };
const remove: Step = { kind: 'remove', dockerId: 'd1' };
const startSandbox: Step = { kind: 'start_sandbox', dockerId: 's1' };
const inSandbox = (state: SandboxSeen['state']): SandboxSeen => ({ dockerId: 's1', state });
const limit: Step = { kind: 'limit', dockerId: 'd1' };
const unpause: Step = { kind: 'unpause', dockerId: 'd1' };
const fails = (reason: string): object => ({ kind: 'fail', why: { reason } });

const pulling: Partial<RestartState> = { operation: { kind: 'pull', generation: 3, reference } };
const stopping: Partial<RestartState> = { operation: { kind: 'stop', generation: 3, dockerId: 'd1' } };
const waiting = (ms: number): Partial<RestartState> => ({
  attempt: { phase: 'waiting', untilMs: nowMs + ms },
  failures: 1,
});
const failed: Partial<RestartState> = { attempt: { phase: 'failed' } };

const table: readonly [string, Wanted, Observed, Partial<RestartState>, object][] = [
  // From nothing to running
  ['declared, image unknown → pull', running, absent, {}, pull],
  ['image present → create', running, absent, { image }, create],
  ['image of another tag present → pull', running, absent, { image: { ...image, reference: 'other:1' } }, pull],
  ['image present, a pull is due → pull', running, absent, { image, pullDue: true }, pull],
  ['created → prepare and start', running, seen(created), {}, start({ prepare: true })],
  ['up → none', running, seen(up), {}, none],
  ['up with its health check failing → none', running, seen({ ...up, health: 'unhealthy' }), {}, none],
  ['limits changed by hand → those declared', running, seen(up, { hasOtherLimits: true }), {}, limit],
  ['limits changed, and it is down → start', running, seen(down(), { hasOtherLimits: true }), {}, start()],
  ['limits changed, and it is to stop → stop', stopped, seen(up, { hasOtherLimits: true }), {}, stop],
  ['limits could not be set → wait', running, seen(up, { hasOtherLimits: true }), waiting(1), { kind: 'wait' }],
  ['paused by hand → unpause', running, seen(paused), {}, unpause],

  // Containers that cannot run
  ['no repository → fail', wanted('running', { repository: null }), absent, {}, fails('image_missing')],
  ['malformed tag → fail', wanted('running', { tag: 'a b' }), absent, {}, fails('image_invalid')],
  ['malformed digest → fail', wanted('running', { digest: 'sha256:1' }), absent, {}, fails('image_invalid')],
  ['not admitted → fail', wanted('running', {}, false), absent, {}, fails('rejected')],
  ['not admitted but here → stays up', wanted('running', {}, false), seen(up), {}, none],
  ['failed → none', running, absent, failed, none],
  ['failed with an exited container → none', running, seen(down()), failed, none],

  // Crashes
  ['exited, back-off over → start again', running, seen(down()), { failures: 1 }, start({ again: true })],
  ['exited, in back-off → wait', running, seen(down()), waiting(500), { kind: 'wait', untilMs: nowMs + 500 }],
  ['back-off just over → start', running, seen(down()), waiting(0), start({ again: true })],
  ['pull failed, in back-off → wait', running, absent, waiting(500), { kind: 'wait', untilMs: nowMs + 500 }],
  ['dead in the engine → remove', running, seen({ phase: 'dead' }), {}, remove],

  // Work in flight
  ['pulling → none', running, absent, pulling, none],
  ['deleted while pulling → cancel the pull', removed, absent, pulling, { kind: 'cancel_pull' }],
  ['stopped while pulling → cancel the pull', stopped, absent, pulling, { kind: 'cancel_pull' }],
  ['started while stopping → none until it is down', running, seen(up), stopping, none],
  ['deleted while stopping → none until it is down', removed, seen(up), stopping, none],

  // Another container in its place
  ['other placement, up → stop', running, seen(up, { placement: 7 }), {}, stop],
  ['other placement, down → drain', running, seen(down(), { placement: 7 }), {}, drain],
  ['other placement, drained → remove', running, seen(down(), { placement: 7 }), { drained: 'd1' }, remove],
  ['other placement, never ran → remove', running, seen(created, { placement: 7 }), {}, remove],
  ['other spec, up → stop', running, seen(up, { spec: 'x' }), {}, stop],
  ['other spec, paused → unpause before the stop', running, seen(paused, { spec: 'x' }), {}, unpause],

  // Sandboxes
  ['its sandbox is up → none', running, seen(up, { sandbox: inSandbox('up') }), {}, none],
  ['up, its sandbox is down → stop', running, seen(up, { sandbox: inSandbox('down') }), {}, stop],
  ['up, its sandbox is gone → made again: stop', running, seen(up, { sandbox: inSandbox('gone') }), {}, stop],
  ['down, its sandbox is gone → drain', running, seen(down(), { sandbox: inSandbox('gone') }), {}, drain],
  [
    'down with its sandbox → the sandbox first',
    running,
    seen(down(), { sandbox: inSandbox('down') }),
    {},
    startSandbox,
  ],
  [
    'never ran, its sandbox is down → the same',
    running,
    seen(created, { sandbox: inSandbox('down') }),
    {},
    startSandbox,
  ],
  ['down, its sandbox is up → start', running, seen(down(), { sandbox: inSandbox('up') }), {}, start()],
  [
    'crashed, in back-off → wait with its sandbox',
    running,
    seen(down(), { sandbox: inSandbox('down') }),
    waiting(500),
    { kind: 'wait' },
  ],
  ['stopped with its sandbox → none', stopped, seen(down(), { sandbox: inSandbox('down') }), {}, none],
  [
    'stopped, its sandbox is gone → none until it starts',
    stopped,
    seen(down(), { sandbox: inSandbox('gone') }),
    {},
    none,
  ],

  // Over the disk limit
  ['over its disk limit, up → stop', running, seen(up), overDisk, stop],
  ['over its disk limit, paused → unpause', running, seen(paused), overDisk, { kind: 'unpause' }],
  ['over its disk limit, down → stays', running, seen(down()), overDisk, none],
  ['over its disk limit, and not made → none', running, absent, overDisk, none],
  [
    'over its disk limit, its last run, up → stop',
    running,
    seen(up),
    { ...overDisk, attempt: { phase: 'ended' } },
    stop,
  ],
  ['over its disk limit, on an isolated host → stays', isolated, seen(down()), overDisk, none],
  ['over its disk limit, to be deleted → drain', removed, seen(down()), overDisk, drain],

  // pull_policy always
  ['always: start pressed → pull first', always, seen(down()), { pullDue: true }, { ...pull, policy: 'always' }],
  ['always: same image → start', always, seen(down()), { image }, start()],
  ['always: newer image → drain the old', always, seen(down()), { image: { ...image, id: 'sha256:two' } }, drain],
  ['always: crashed → start without a pull', always, seen(down()), { failures: 1 }, start({ again: true })],

  // Stop
  ['stop, up → stop', stopped, seen(up), {}, stop],
  ['stop, paused → unpause', stopped, seen(paused), {}, unpause],
  ['stop, down → none', stopped, seen(down()), {}, none],
  ['stop, never ran → none', stopped, seen(created), {}, none],
  ['stop, absent → none', stopped, absent, {}, none],
  ['stop, other placement down → left until it starts', stopped, seen(down(), { placement: 7 }), {}, none],
  ['stop failed a moment ago → wait', stopped, seen(up), waiting(500), { kind: 'wait', untilMs: nowMs + 500 }],

  // Made and not started
  ['prepare, image unknown → pull', prepared, absent, {}, pull],
  ['prepare, image present → create', prepared, absent, { image }, create],
  ['prepare, not admitted → fail', wanted('prepared', {}, false), absent, { image }, fails('rejected')],
  ['prepare, a pull is under way → none', prepared, absent, pulling, none],
  ['prepared → none', prepared, seen(created), {}, none],
  ['prepared, in a sandbox that is down → none', prepared, seen(created, { sandbox: inSandbox('down') }), {}, none],
  ['prepared for an earlier placement → made again', prepared, seen(created, { placement: 7 }), {}, remove],
  ['prepare, up → stop', prepared, seen(up), {}, stop],
  ['prepare failed → none', prepared, absent, failed, none],
  ['prepared, and released → start', running, seen(created), {}, start({ prepare: true })],

  // Removal
  ['delete, up → stop', removed, seen(up), {}, stop],
  ['delete, down → drain', removed, seen(down()), {}, drain],
  ['delete, another was drained → drain', removed, seen(down()), { drained: 'd0' }, drain],
  ['delete, drained → remove', removed, seen(down()), { drained: 'd1' }, remove],
  ['delete, never ran → remove', removed, seen(created), {}, remove],
  ['delete, engine removes it → look later', removed, seen({ phase: 'removing' }), {}, { kind: 'wait' }],
  ['delete, absent → none', removed, absent, {}, none],
  ['delete of what failed → goes all the same', removed, seen(created), failed, remove],

  // Orphans and ignored containers
  ['orphan, up → stop', orphan, seen(up), {}, stop],
  ['orphan, drained → remove', orphan, seen(down()), { drained: 'd1' }, remove],
  ['orphan, absent → none', orphan, absent, {}, none],
  ['ignored, up → none', ignored, seen(up), {}, none],
  ['ignored, down → none', ignored, seen(down()), {}, none],
  [
    'a second container with the same id, up → stop it',
    running,
    seen(up, {}, [found(up, { dockerId: 'd2' })]),
    {},
    { kind: 'stop', dockerId: 'd2' },
  ],
];

for (const [name, want, observed, changes, step] of table) {
  t.test(name, (t) => {
    t.match(plan(want, observed, restartState(changes), nowMs), step);
    t.end();
  });
}
