/** `run --job`: its log, its exit code, and what is left of it. */
import t from 'tap';
import { commands, ok, type Answers } from '../support.ts';
import type { Reaction } from '../client/server.ts';

const id = '01a213e1-a50e-7666-936f-479459dfedcf';
const container = { id, name: 'job', status: 'pending', ports: [], env: {} };
const of = `/api/v2/compute/${id}`;
const view = {
  id,
  status: 'running',
  desired: 'running',
  generation: 1,
  reason: null,
  message: null,
  exit_code: null,
  restart_count: 0,
  addresses: [],
};
const entry = (seq: number, line: string, stream = 'stdout') => ({ ts: 'now', stream, line, seq });
const entries = [entry(1, 'one'), entry(2, 'two', 'stderr')];
const frames = entries.map((one) => `id: ${one.seq}\nevent: log\ndata: ${JSON.stringify(one)}\n\n`).join('');

/** Open until the container is gone. */
const stream: Reaction = (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  return response.write(frames);
};

const ended = (end: object): Answers => ({
  'POST /api/v2/containers': { ...ok(container, { 'longshore-generation': '1' }), status: 201 },
  [`GET ${of}/status`]: ok(view),
  [`GET ${of}/logs`]: ok(entries.slice(-1)),
  [`GET ${of}/logs/stream`]: stream,
  [`GET ${of}/wait`]: [ok({ ...view, ...end }), ok({ ...view, status: 'removed' })],
  [`DELETE ${of}`]: { ...ok(container), status: 202 },
});
const done = { status: 'stopped', reason: 'completed', exit_code: 0, outcome: 'done' };
const failed = { status: 'failed', reason: 'exited', exit_code: 3, outcome: 'failed' };

t.test('a job that ends: all of its log, its exit code, and nothing left', async (t) => {
  for (const [end, code] of [
    [done, 0],
    [failed, 3],
  ] as const) {
    for (const option of ['--job', '--rm']) {
      const { longshore, asked } = await commands(t, ended(end));
      const ran = await longshore('run', option, 'team/migrate:1', '--', 'migrate', '--all');
      t.match(ran, { code, out: 'one\n', err: /^two$/m }, `${option}, ${code}`);
      t.equal(asked.filter(({ method }) => method === 'DELETE').length, 1);
      const body = JSON.parse(asked.find(({ method }) => method === 'POST')?.body ?? '') as { readonly name: string };
      t.match(body, { policy: { restart: 'never' }, process: { command: ['migrate', '--all'] } });
      t.match(body.name, /^migrate-[0-9a-f]{6}$/, 'jobs of one image have names that differ');
    }
  }
});

t.test('a job that never ran says why', async (t) => {
  const missing = { status: 'failed', reason: 'image_not_found', message: 'no such tag', outcome: 'failed' };
  const { longshore } = await commands(t, ended(missing));
  t.match(await longshore('run', '--job', 'web'), {
    code: 1,
    err: /job is failed: image_not_found \(no such tag\)\n$/,
  });
});

t.test('--keep leaves it', async (t) => {
  const { longshore, asked } = await commands(t, ended(failed));
  t.match(await longshore('run', '--job', '--keep', '--name', 'job', 'web'), { code: 3, out: 'one\n' });
  t.notOk(asked.some(({ method }) => method === 'DELETE'));
});

t.test('Ctrl-C says what goes on, and removes nothing', async (t) => {
  const { longshore, asked } = await commands(t, ended(done), { interruptedBy: `GET ${of}/wait` });
  const { code, err } = await longshore('run', '--job', 'web');
  t.equal(code, 130);
  t.match(err, /job goes on: "longshore logs -f job" shows its log, and "longshore rm job" removes it\n$/);
  t.notOk(asked.some(({ method }) => method === 'DELETE'));
});

t.test('an option that does not fit a job is refused', async (t) => {
  const { longshore, asked } = await commands(t, {});
  for (const [args, words] of [
    [['--job', '-d'], /--detach: leave out --job/],
    [['--job', '--restart', 'always'], /a job ends; give never or on_failure/],
    [['--job', '--health-tcp', '80'], /leave out the health check/],
    [['--keep'], /give it with --job/],
  ] as const)
    t.match(await longshore('run', ...args, 'web'), { code: 2, err: words }, args.join(' '));
  t.same(asked, []);
});
