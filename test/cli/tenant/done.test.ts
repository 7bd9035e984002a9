import t, { type Test } from 'tap';
import { Output } from '../../../cli/terminal/output.ts';
import { createApi } from '../../../cli/client/api.ts';
import type { Context } from '../../../cli/context.ts';
import type { StatusView } from '../../../cli/client/wait.ts';
import { cannotCome, goalOf } from '../../../cli/tenant/done.ts';
import { watchDone, type Waiting } from '../../../cli/tenant/progress.ts';
import { defaultPolicy, healthDefaults } from '../../../schemas/api/policy.ts';
import { limits } from '../../../schemas/limits.ts';
import { farEnd } from '../client/server.ts';

const startedAt = '2026-11-25T12:00:00.000Z';

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
const completed = { status: 'stopped', desired: 'stopped', reason: 'completed', exit_code: 0 } as const;
const failed = { status: 'failed', desired: 'stopped', reason: 'exited', exit_code: 3 } as const;
const crashLoop = { status: 'backoff', reason: 'crash_loop', exit_code: 1 } as const;

const check = { ...healthDefaults, tcp: { port: 80 } };

t.test('the goal of a wait, by the policy', (t) => {
  const stableSeconds = limits.cliStableSeconds;
  t.same(goalOf(defaultPolicy), { isJob: false, stableSeconds });
  t.same(goalOf(defaultPolicy, 0), { isJob: false, stableSeconds: 0 });
  t.same(goalOf({ ...defaultPolicy, health: check }), { isJob: false, stableSeconds: 0 }, 'the check says it');
  t.same(goalOf({ ...defaultPolicy, health: { none: true } }), { isJob: false, stableSeconds });
  t.same(goalOf({ ...defaultPolicy, restart: 'never' }), { isJob: true, stableSeconds });
  t.match(goalOf({ ...defaultPolicy, restart: 'never', health: check }), { isJob: false }, 'a server');
  t.match(goalOf({ ...defaultPolicy, restart: 'on_failure' }, 5, true), { isJob: true }, 'a job of a Compose file');
  t.end();
});

t.test('statuses that only another command can bring', (t) => {
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
    [{ status: 'failed', reason: 'image_auth' }, 'running', false],
    [{ status: 'failed' }, 'stopped', false],
    [crashLoop, 'running', false],
    [{ status: 'removing', desired: 'removed' }, 'running', true],
    [{ status: 'running' }, 'stopped', false],
  ] as const;
  for (const [change, awaited, verdict] of rows)
    t.equal(cannotCome(seen(change), awaited), verdict, `${change.status} → ${awaited}`);
  t.end();
});

type Answer = (Partial<StatusView> & { readonly outcome?: string }) | undefined;

/**
 * A server: each look gets the next status and, after the looks, each wait the next answer; the
 * last one stays. `undefined` is the timeout of a wait.
 */
async function watching(t: Test, views: readonly StatusView[], answers: readonly Answer[], more = {}) {
  let looks = 0;
  const asked: URLSearchParams[] = [];
  const { url } = await farEnd(t, (response, { path }) => {
    const say = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (path.includes('/logs')) return say(200, { data: [{ line: 'one' }, { line: 'no such table' }] });
    const last = views.at(-1);
    if (!path.includes('/wait')) return say(200, { data: views[looks++] ?? last });
    const answer = answers[Math.min(asked.length, answers.length - 1)];
    asked.push(new URL(path, 'http://x').searchParams);
    const answerLater = (): unknown => {
      if (looks < views.length) return setTimeout(answerLater, 10);
      return answer === undefined ? say(504, { error: 'timeout' }) : say(200, { data: { ...last, ...answer } });
    };
    return answerLater();
  });
  const { env, stdin } = process;
  const [stdout, stderr] = [new Output(process.stdout), new Output(process.stderr)];
  const { signal } = new AbortController();
  const told: string[] = [];
  const context: Context = {
    api: createApi({ server: url }),
    server: url,
    token: '',
    format: 'json',
    isJson: true,
    terminal: { env, stdin, stdout, stderr, signal, nowMs: Date.now },
    show: () => {},
    tell: (text) => void told.push(String(text)),
  };
  const waiting: Waiting = { goal: goalOf(defaultPolicy, 3), seconds: 10, ...more };
  return { told, asked, answer: watchDone(context, { id: 'x', name: 'web' }, waiting) };
}

t.test('each change is told once, until the server says that it is done', async (t) => {
  const views = [seen({ status: 'pending', generation: 4 }), seen({ status: 'pulling' }), seen()];
  const { answer, told, asked } = await watching(t, views, [{ outcome: 'done', restart_count: 1 }]);
  t.match(await answer, { restart_count: 1 });
  t.same(told, ['web: pending', 'web: pulling', 'web: running']);
  const { timeout, ...query } = Object.fromEntries(asked[0] ?? []);
  t.same(query, { until: 'settled', generation: '4', stable_seconds: '3', job: 'false' });
  t.ok(Number(timeout) <= 10);
});

t.test('a failure ends the wait, with the exit code and the last lines of the log', async (t) => {
  const crashLoop = { status: 'backoff', reason: 'crash_loop', exit_code: 1, message: 'three times' } as const;
  const { answer } = await watching(t, [seen()], [{ ...crashLoop, outcome: 'failed' }]);
  await t.rejects(answer, {
    name: 'Refused',
    message:
      'web is backoff: crash_loop (three times), exit code 1; see "longshore logs web" and "longshore events web"\n' +
      'Its log ends with:\n  one\n  no such table',
  });
  for (const outcome of ['stopped', 'removed'])
    await t.rejects((await watching(t, [seen()], [{ outcome }])).answer, { name: 'Refused' }, outcome);
});

t.test('an update that was taken back, and one that another came after', async (t) => {
  const of = { generation: 1, last_generation: 1, from: {}, to: {}, at: startedAt };
  const update = { ...of, phase: 'rolled_back', reason: 'unhealthy', message: null } as const;
  const back = await watching(t, [seen()], [{ outcome: 'rolled_back', update }]);
  await t.rejects(back.answer, /web was rolled back: unhealthy/);
  const { answer, asked } = await watching(
    t,
    [seen()],
    [{ outcome: 'superseded', generation: 3 }, { outcome: 'done' }],
  );
  await answer;
  t.same(
    asked.map((query) => query.get('generation')),
    ['1', '3'],
    'what the newest becomes counts',
  );
});

t.test('the command waits for the change that it made', async (t) => {
  const { answer, asked, told } = await watching(
    t,
    [seen({ generation: 9 })],
    [{ outcome: 'superseded', generation: 9 }, { outcome: 'done' }],
    { generation: 4 },
  );
  await answer;
  t.same(
    asked.map((query) => query.get('generation')),
    ['4', '9'],
  );
  t.ok(told.includes('web: another change came after this one, and is waited for'), told.join('\n'));
});

t.test('after the time it goes on', async (t) => {
  const { answer } = await watching(t, [seen({ status: 'pulling' })], [undefined], { seconds: 1 });
  await t.rejects(answer, /web is still pulling after 1 s; it goes on: "longshore wait web"/);
});
