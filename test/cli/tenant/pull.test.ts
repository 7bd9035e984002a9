/** `update --pull` and `describe`: another look at what a tag names. */
import t from 'tap';
import { commands, ok, type Answers } from '../support.ts';

const web = { id: '01a20000-0000-7000-8000-000000000001', name: 'web', status: 'running', tag: '1' };
const [one, two] = [`sha256:${'1'.repeat(64)}`, `sha256:${'2'.repeat(64)}`];
const policy = { restart: 'always', health: null };
const document = { name: 'web', env: {}, mem_limit: '16m', process: {}, policy, secrets: { env: {}, files: {} } };
const status = (more: object = {}) => ({ ...web, desired: 'running', generation: 1, reason: null, ...more });
const image = (digest: string) => ({ image: { digest, resolved_at: '2026-01-01T00:00:00.000Z' } });

const answering = (before: object, after: object): Answers => ({
  'GET /api/v2/compute': { status: 200, body: { data: [web] } },
  [`GET /api/v2/compute/${web.id}`]: ok(web),
  [`GET /api/v2/compute/${web.id}/status`]: [ok(status(before)), ok(status(after))],
  [`GET /api/v2/compute/${web.id}/policy`]: ok(policy),
  [`GET /api/v2/compute/${web.id}/wait`]: ok({ ...status(after), outcome: 'done' }),
  [`GET /api/v2/containers/${web.id}/spec`]: ok(document),
  [`PUT /api/v2/containers/${web.id}/spec`]: ok({}, { 'longshore-generation': '2' }),
});
const running = image(one);

for (const [name, before, after, text] of [
  ['moved', running, { ...image(two), update: { phase: 'done' } }, `web: its tag names ${two} now`],
  [
    'not moved',
    running,
    { ...running, update: { phase: 'done', unmoved: true } },
    `web: its tag has not moved: it runs ${one} as before`,
  ],
  [
    'not moved, and something else changed',
    running,
    { ...running, update: { phase: 'done' } },
    `web: its tag has not moved: it names ${one}, as before`,
  ],
  ['unknown', {}, { update: { phase: 'done' } }, 'web: its host does not say which image its tag names'],
] as const) {
  t.test(`update --pull: ${name}`, async (t) => {
    const { longshore, asked } = await commands(t, answering(before, after));
    const { code, err } = await longshore('update', 'web', '--pull');
    t.equal(code, 0);
    t.ok(err.includes(text), err);
    t.ok(asked.some(({ method, path }) => method === 'PUT' && path.endsWith('/spec?pull=always')));
  });
}

t.test('update --pull: what is stopped looks when it starts', async (t) => {
  const stopped = { desired: 'stopped', status: 'stopped' };
  const { longshore } = await commands(t, answering(stopped, stopped));
  t.match(await longshore('update', 'web', '--pull'), { code: 0, err: /web does not run: its host looks/ });
});
