import t, { type Test } from 'tap';
import { createApi } from '../../../cli/client/api.ts';
import type { Context } from '../../../cli/context.ts';
import { cannotCome, goalOf, verdictOf, type Goal, type Look, type StatusView } from '../../../cli/tenant/done.ts';
import { watchDone, type Waiting } from '../../../cli/tenant/progress.ts';
import { defaultPolicy, healthDefaults } from '../../../schemas/api/policy.ts';
import { farEnd } from '../client/server.ts';

const startedAt = '2026-11-25T12:00:00.000Z';
const startedMs = Date.parse(startedAt);

const seen = (change: Partial<StatusView> = {}): StatusView => ({
  id: '01890000-0000-7000-8000-000000000001',
  status: 'running',
  desired: 'running',
  generation: 1,
  host_key: 'h1',
  observed_status: 'running',
  observed_at: startedAt,
  reason: null,
  message: null,
  exit_code: null,
  restart_count: 0,
  next_retry_at: null,
  started_at: startedAt,
  addresses: [],
  ...change,
});
const update = (
  phase: 'preparing' | 'verifying' | 'done' | 'rolled_back',
  at = startedAt,
): NonNullable<StatusView['update']> => ({
  phase,
  from: {},
  to: {},
  reason: phase === 'rolled_back' ? 'unhealthy' : null,
  message: null,
  at,
});
const completed = { status: 'stopped', desired: 'stopped', reason: 'completed', exit_code: 0 } as const;
const failed = { status: 'failed', desired: 'stopped', reason: 'exited', exit_code: 3 } as const;
const crashLoop = { status: 'backoff', reason: 'crash_loop', exit_code: 1 } as const;

const usual = goalOf(defaultPolicy);
const job = goalOf({ ...defaultPolicy, restart: 'never' });
const check = { ...healthDefaults, tcp: { port: 80 } };
const checked = goalOf({ ...defaultPolicy, health: check });
const unchecked = goalOf({ ...defaultPolicy, health: { none: true } });
const restarted = goalOf({ ...defaultPolicy, health: { ...check, restart_unhealthy: true } });
const just: Look = { heldMs: 0, nowMs: startedMs };
const held: Look = { heldMs: 5_000, nowMs: startedMs + 5_000 };

t.test('what is done, and what can no longer be', (t) => {
  const rows: readonly (readonly [
    name: string,
    change: Partial<StatusView>,
    goal: Goal,
    look: Look,
    verdict: string,
  ])[] = [
    ['it has just come up', {}, usual, just, 'waiting'],
    ['it has stayed up', {}, usual, held, 'done'],
    ['up for a minute more than the clocks may differ', {}, usual, { heldMs: 0, nowMs: startedMs + 66_000 }, 'done'],
    ['its host has watched it', {}, usual, { ...just, isVerified: true }, 'done'],
    ['at once, as asked', {}, { ...usual, stableMs: 0 }, just, 'done'],
    ['its check passes', {}, checked, just, 'done'],
    ['its image may check, and its policy does not', {}, unchecked, just, 'waiting'],
    ['unhealthy, perhaps by the check of before', { reason: 'unhealthy' }, checked, just, 'waiting'],
    ['unhealthy', { reason: 'unhealthy' }, checked, held, 'over'],
    ['unhealthy by the check of its image', { reason: 'unhealthy' }, usual, held, 'over'],
    ['unhealthy, and it will be started again', { reason: 'unhealthy' }, restarted, held, 'waiting'],
    ['a job runs', {}, job, { heldMs: 3_600_000, nowMs: startedMs + 3_600_000 }, 'waiting'],
    ['a job with a check is a server', {}, { ...checked, isJob: true }, just, 'done'],
    ['a job has ended', completed, job, just, 'done'],
    ['one that is started again on failure has ended', completed, usual, just, 'done'],
    ['a job has failed', failed, job, just, 'over'],
    ['it was stopped', { status: 'stopped', desired: 'stopped' }, usual, just, 'over'],
    ['it has stopped, to start again', { status: 'stopped' }, usual, just, 'waiting'],
    ['it is stopping', { status: 'stopping', desired: 'stopped' }, usual, just, 'waiting'],
    ['it is being removed', { status: 'removing', desired: 'removed' }, usual, just, 'over'],
    ['it ended once', { status: 'backoff', reason: 'exited', exit_code: 1 }, usual, just, 'waiting'],
    ['it crashes again and again', crashLoop, usual, just, 'over'],
    ['its image is pulled', { status: 'pulling' }, usual, held, 'waiting'],
    ['its host is silent', { status: 'unknown' }, usual, held, 'waiting'],
    ['its update is under way', { update: update('verifying') }, usual, held, 'waiting'],
  ];
  for (const [name, change, goal, look, verdict] of rows) t.equal(verdictOf(seen(change), goal, look), verdict, name);
  t.end();
});

t.test('which status nothing but a command can bring', (t) => {
  const rows = [
    [failed, 'stopped', true],
    [failed, 'running', true],
    [failed, 'removed', false],
    [completed, 'running', true],
    [completed, 'stopped', false],
    [{ status: 'stopped', desired: 'running' }, 'running', false],
    [{ status: 'stopping', desired: 'stopped' }, 'running', true],
    [{ status: 'stopping', desired: 'stopped' }, 'stopped', false],
    [{ status: 'failed' }, 'running', true],
    [{ status: 'failed' }, 'stopped', false],
    [crashLoop, 'running', false],
    [{ status: 'removing', desired: 'removed' }, 'running', true],
    [{ status: 'running' }, 'stopped', false],
  ] as const;
  for (const [change, awaited, verdict] of rows)
    t.equal(cannotCome(seen(change), awaited), verdict, `${change.status} → ${awaited}`);
  t.end();
});

/** Each look sees the next status; the last one stays. */
async function watching(t: Test, views: readonly StatusView[], waiting: Partial<Waiting> = {}, lines: string[] = []) {
  let looks = 0;
  const { url } = await farEnd(t, (response, { path }) => {
    const data = path.includes('/logs') ? lines.map((line) => ({ line })) : views[Math.min(looks++, views.length - 1)];
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }));
  });
  const { env, stdin, stdout, stderr } = process;
  const { signal } = new AbortController();
  const told: string[] = [];
  const context: Context = {
    api: createApi({ server: url }),
    server: url,
    token: '',
    isJson: true,
    terminal: { env, stdin, stdout, stderr, signal, nowMs: () => startedMs },
    show: () => {},
    tell: (text) => void told.push(text),
  };
  const goal = { ...usual, stableMs: 0 };
  const answer = watchDone(context, { id: 'x', name: 'web' }, { goal, seconds: 10, ...waiting });
  return { told, answer };
}

t.test('it must stay up, and a new start counts from its own beginning', async (t) => {
  const goal = { ...usual, stableMs: 700 };
  const again = seen({ started_at: '2026-11-25T12:00:09.000Z', restart_count: 1 });
  const { answer, told } = await watching(t, [seen({ status: 'pending' }), seen(), again, again], { goal });
  t.match(await answer, { restart_count: 1 });
  t.same(told, ['web: pending', 'web: running']);
});

t.test('a crash loop ends the wait, with its exit code and the last lines of its log', async (t) => {
  const { answer } = await watching(t, [seen({ ...crashLoop, message: 'three times' })], {}, ['one', 'no such table']);
  await t.rejects(answer, {
    name: 'Refused',
    message:
      'web is backoff: crash_loop (three times), exit code 1; see "longshore logs web" and "longshore events web"\n' +
      'Its log ends with:\n  one\n  no such table',
  });
});

t.test('what is from before a change decides nothing', async (t) => {
  const before = seen({ ...crashLoop });
  const views = [{ ...before, generation: 2 }, seen({ generation: 2, observed_at: '2026-11-25T12:00:05.000Z' })];
  const { answer } = await watching(t, views, { before });
  t.match(await answer, { status: 'running' });
});

t.test('an update: verified by its host, or taken back', async (t) => {
  const before = seen({ update: update('rolled_back') });
  const under = seen({ generation: 2, update: update('preparing', '2026-11-25T12:01:00.000Z') });
  const done = seen({ generation: 2, update: update('done', '2026-11-25T12:02:00.000Z') });
  const goal = { ...usual, stableMs: 60_000 };
  t.match(await (await watching(t, [under, done], { before, goal })).answer, { update: { phase: 'done' } });
  const back = seen({ generation: 2, update: update('rolled_back', '2026-11-25T12:02:00.000Z') });
  await t.rejects((await watching(t, [under, back], { before })).answer, /web was rolled back: unhealthy/);
  t.match(await (await watching(t, [before], { before })).answer, { status: 'running' }, 'that of before says nothing');
});

t.test('after the time it goes on', async (t) => {
  const { answer } = await watching(t, [seen({ status: 'pulling' })], { seconds: 1 });
  await t.rejects(answer, /web is still pulling after 1 s; it goes on: "longshore wait web"/);
});
