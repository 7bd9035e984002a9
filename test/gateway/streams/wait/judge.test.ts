import t from 'tap';
import { judgeWait, type Goal } from '../../../../gateway/streams/wait/judge.ts';
import { okData, refusal, statusView } from '../../support.ts';

const until = (...statuses: string[]): Goal => ({ until: 'status', statuses });
const settled = (generation?: number): Goal => ({ until: 'settled', generation, stableMs: 5000 });
type Seen = Parameters<typeof judgeWait>[2];

function stepOf(goal: Goal, outcome: ReturnType<typeof refusal>, last?: Seen, upMs = 0): string {
  const step = judgeWait(goal, outcome, last, () => upMs);
  if (step.kind !== 'answer') return step.kind;
  const { code, body } = step.outcome;
  const { data } = JSON.parse(String(body) || '{}') as { data?: { outcome?: string } };
  return data?.outcome ?? code;
}

t.test('a status ends a wait, keeps it waiting or refuses it', (t) => {
  const view = statusView('i', 'pending') as never;
  const is = (status: string) => okData({ ...statusView('i', status), host_key: 'h' });
  t.equal(stepOf(until('running'), is('running')), 'ok');
  t.equal(stepOf(until('running'), is('pending')), 'wait');
  t.equal(stepOf(until('running'), is('failed')), 'wait', 'its host may not have heard of a start yet');
  t.equal(stepOf(until('running'), is('removing')), 'conflict');
  t.equal(stepOf(until('removing'), is('removing')), 'ok');
  t.equal(stepOf(until('removed'), is('removing')), 'wait');
  t.equal(stepOf(until('removed'), refusal('not_found')), 'absent', 'this gateway never saw it');
  t.equal(stepOf(until('removed'), refusal('not_found'), view), 'ok');
  t.equal(stepOf(until('running'), refusal('not_found'), view), 'not_found');
  t.equal(stepOf(until('running'), refusal('unavailable'), view), 'wait');
  t.end();
});

t.test('a wait ends when its status can not come any more', (t) => {
  const at = (status: string, desired: string, observed = 3, reason = 'image_not_found') =>
    okData({
      ...statusView('i', status),
      desired,
      generation: 3,
      host_key: 'h',
      reason: status === 'failed' ? reason : null,
      observed_generation: observed,
    });
  for (const [status, desired, wanted, step] of [
    ['failed', 'running', 'running', 'conflict'],
    ['failed', 'running', 'stopped', 'wait'],
    ['failed', 'stopped', 'stopped', 'conflict'],
    ['stopped', 'stopped', 'failed', 'conflict'],
    ['stopped', 'stopped', 'running', 'conflict'],
    ['stopped', 'stopped', 'stopped', 'ok'],
    ['stopped', 'stopped', 'removed', 'wait'],
    ['running', 'stopped', 'running', 'ok'],
    ['stopping', 'stopped', 'running', 'conflict'],
    ['stopping', 'stopped', 'stopped', 'wait'],
    ['backoff', 'running', 'running', 'wait'],
    ['unknown', 'running', 'running', 'wait'],
  ] as const)
    t.equal(stepOf(until(wanted), at(status, desired)), step, `${wanted} of what is ${status} and to be ${desired}`);
  t.equal(stepOf(until('running'), at('failed', 'running', 2)), 'wait', 'what failed is about to be tried again');
  const several: readonly (readonly [string, readonly string[], string])[] = [
    ['stopped', ['running', 'stopped'], 'ok'],
    ['stopped', ['running', 'removed'], 'wait'],
    ['stopped', ['running', 'failed'], 'conflict'],
  ];
  for (const [status, wanted, step] of several)
    t.equal(stepOf(until(...wanted), at(status, 'stopped')), step, `${wanted.join(' or ')} of what is ${status}`);
  t.equal(stepOf(until('running'), at('failed', 'running', 3, 'image_auth')), 'wait', 'until a login has access');
  t.end();
});

t.test('a declaration is settled by what became of it', (t) => {
  const of = (fields: object) =>
    okData({ ...statusView('i', 'running'), generation: 3, host_key: 'h', observed_generation: 3, ...fields });
  const update = (phase: string, generation = 3) => ({ update: { phase, generation, last_generation: generation } });
  const move = (phase: string, generation: number) => ({ move: { phase, generation } });
  const backWith = (last_generation: number) => ({ update: { phase: 'rolled_back', generation: 2, last_generation } });
  const ended = { status: 'stopped', desired: 'stopped', generation: 4, reason: 'completed', exit_code: 0 };
  const crashed = { status: 'failed', desired: 'stopped', generation: 4, reason: 'exited', exit_code: 3 };
  for (const [name, fields, upMs, outcome] of [
    ['just up', {}, 1000, 'wait'],
    ['up for long enough', {}, 5000, 'done'],
    ['the run before', { observed_generation: 2 }, 9000, 'wait'],
    ['unhealthy, for a moment', { reason: 'unhealthy' }, 4000, 'wait'],
    ['unhealthy, and it stays so', { reason: 'unhealthy' }, 5000, 'failed'],
    ['unhealthy before the change', { reason: 'unhealthy', observed_generation: 2 }, 9000, 'wait'],
    ['its host is away', { reason: 'engine_unavailable' }, 9000, 'wait'],
    ['a job that runs', { restart_policy: 'never' }, 9000, 'wait'],
    ['a job at its clean end', { restart_policy: 'never', ...ended }, 0, 'done'],
    ['a job at another end', { restart_policy: 'never', ...crashed }, 0, 'failed'],
    ['no image', { status: 'failed', reason: 'image_not_found' }, 0, 'failed'],
    ['no image before the change', { status: 'failed', observed_generation: 2 }, 0, 'wait'],
    ['a crash', { status: 'backoff', reason: 'exited' }, 0, 'wait'],
    ['a crash loop', { status: 'backoff', reason: 'crash_loop' }, 0, 'failed'],
    ['a second end', { status: 'backoff', reason: 'oom_killed', failures: 2 }, 0, 'wait'],
    ['killed for its memory, three times', { status: 'backoff', reason: 'oom_killed', failures: 3 }, 0, 'failed'],
    ['a third start that failed', { status: 'backoff', reason: 'start_failed', failures: 3 }, 0, 'failed'],
    ['ended a third time for its health', { status: 'backoff', reason: 'unhealthy', failures: 3 }, 0, 'failed'],
    ['a third pull that failed', { status: 'backoff', reason: 'image_pull', failures: 3 }, 0, 'wait'],
    ['three ends, and up again', { failures: 3 }, 5000, 'done'],
    [
      'a third end before the change',
      { status: 'backoff', reason: 'start_failed', failures: 3, observed_generation: 2 },
      0,
      'wait',
    ],
    ['a crash loop before the change', { status: 'backoff', reason: 'crash_loop', observed_generation: 2 }, 0, 'wait'],
    ['stopping', { status: 'running', desired: 'stopped' }, 9000, 'wait'],
    ['stopped', { status: 'stopped', desired: 'stopped' }, 0, 'stopped'],
    ['being removed', { status: 'removing', desired: 'removed' }, 0, 'removed'],
    ['an update that is made', update('preparing'), 9000, 'wait'],
    ['an update that is verified', update('verifying'), 9000, 'wait'],
    ['a verified update', update('done'), 0, 'done'],
    ['rolled back', { generation: 4, ...update('rolled_back') }, 0, 'rolled_back'],
    ['an update that failed', { status: 'backoff', reason: 'exited', ...update('failed') }, 0, 'failed'],
    ['another update', { generation: 4, ...update('preparing', 4) }, 0, 'superseded'],
    ['an update before it', update('done', 2), 0, 'wait'],
    [
      'a change while an update is made',
      { update: { phase: 'preparing', generation: 2, last_generation: 3 } },
      9000,
      'wait',
    ],
    ['rolled back with a change that came meanwhile', backWith(3), 9000, 'rolled_back'],
    ['rolled back before the change', backWith(2), 9000, 'done'],
    ['a move that was asked for', move('preparing', 3), 9000, 'wait'],
    ['a move by the platform', { move: { phase: 'preparing' } }, 9000, 'done'],
    ['a move that failed', move('failed', 3), 9000, 'failed'],
    ['a move that failed before the change', move('failed', 2), 9000, 'done'],
    ['stopped after a move that failed', { ...move('failed', 3), status: 'stopped', desired: 'stopped' }, 0, 'stopped'],
    ['a silent host', { status: 'unknown', reason: 'host_silent' }, 9000, 'wait'],
  ] as const)
    t.equal(stepOf(settled(3), of(fields), undefined, upMs), outcome, name);
  const job = (isJob: boolean) => ({ ...settled(3), isJob }) as Goal;
  t.equal(stepOf(job(true), of({}), undefined, 9000), 'wait', 'a job by the word of the client');
  t.equal(stepOf(job(false), of({ restart_policy: 'never' }), undefined, 9000), 'done', 'none by its word');
  t.equal(stepOf(settled(), of({ generation: 4, ...update('preparing', 4) })), 'wait', 'the newest, if none is named');
  t.equal(stepOf(settled(3), refusal('not_found'), statusView('i', 'removing') as never), 'removed');
  t.end();
});
