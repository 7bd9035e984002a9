/** `secret set`, and what uses the secret. */
import t from 'tap';
import { commands, ok, type Answers } from '../support.ts';

const container = (name: string, at: number) => ({
  id: `01a20000-0000-7000-8000-00000000000${at}`,
  name,
  status: 'running',
  desired: 'running',
  generation: 1,
  reason: null,
});
const [job, web] = [container('job', 1), container('web', 2)];
const secret = (version: number, more: object = {}) => ({ name: 'key', version, used_by: [job.id, web.id], ...more });
const behind = { behind: [job.id] };
const answering = (before: object, set: object): Answers => ({
  'GET /api/v2/compute/secrets': ok([before]),
  'PUT /api/v2/compute/secrets/key': ok(set),
  'GET /api/v2/containers': ok([job, web].map((one) => ({ container: one, status: one }))),
  [`GET /api/v2/compute/${web.id}/policy`]: ok({ restart: 'always', health: null }),
  [`GET /api/v2/compute/${web.id}/status`]: ok({ ...web, generation: 2 }),
  [`GET /api/v2/compute/${web.id}/wait`]: ok({ ...web, generation: 2, outcome: 'done' }),
});
const set = ['secret', 'set', 'key', '--file', '/dev/null', '--timeout', '5'];
const kept = 'job: still with an earlier value of key: "longshore restart -d job" brings in the current one';

t.test('a run that goes on with its value is named, and not waited for', async (t) => {
  const { longshore, asked } = await commands(t, answering(secret(1), secret(2, behind)));
  const { code, err } = await longshore(...set);
  t.equal(code, 0, err);
  t.ok(err.includes(kept), err);
  t.match(err, /^restarts web$/m);
  t.notOk(asked.some(({ path }) => path.includes(job.id)));
});

t.test('it is named each time, also if the value was there before', async (t) => {
  const { longshore } = await commands(t, answering(secret(2, behind), secret(2, behind)));
  const { code, err } = await longshore(...set);
  t.equal(code, 0, err);
  t.ok(err.includes(kept), err);
  t.notMatch(err, /restarts/);
});

t.test('so is one that begins its run meanwhile', async (t) => {
  const { longshore } = await commands(t, {
    ...answering(secret(1), secret(2)),
    'GET /api/v2/compute/secrets': [ok([secret(1)]), ok([secret(2, behind)])],
    [`GET /api/v2/compute/${job.id}/policy`]: ok({ restart: 'never', health: null }),
    [`GET /api/v2/compute/${job.id}/status`]: ok(job),
  });
  const { code, err } = await longshore(...set);
  t.equal(code, 0, err);
  t.ok(err.includes(kept), err);
});
