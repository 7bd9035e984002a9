/** `GET /:id/wait?until=settled`: what became of a declaration, on real servers and programs. */
import t from 'tap';
import type { Container, WaitedStatusView } from '../../../schemas/api/container.ts';
import { steady } from '../../host-agent/support/rig.ts';
import { eventually } from '../support/eventually.ts';
import { imageRunning } from '../support/images.ts';
import { sharedStack } from '../support/stack.ts';

t.setTimeout(300_000);
const compute = '/api/v2/compute';
const limits = { cpu_limit: '0.1', mem_limit: '16m' };

t.test('outcomes of a declaration', async (t) => {
  const rig = await sharedStack(t);
  const acme = await rig.client(rig.tenant('settled'));
  const settled = async ({ id }: { id: string }, query = '') => {
    const path = `${compute}/${id}/wait?until=settled&timeout=120${query}`;
    const { status, body, text } = await acme.call<{ data: WaitedStatusView }>('GET', path);
    if (status !== 200) throw new Error(`${status} ${text}`);
    return body.data;
  };
  const declare = async (name: string, script: string, policy?: object): Promise<Container> => {
    const body = { name, ...(await imageRunning(rig, script)), ...limits };
    const { data } = (await acme.call<{ data: Container }>('POST', `${compute}?start=false`, body)).body;
    if (policy !== undefined) await acme.call('PUT', `${compute}/${data.id}/policy`, policy);
    await acme.start(data);
    return data;
  };
  const change = async ({ id }: { id: string }, body: object): Promise<number> => {
    const headers = { 'content-type': 'application/merge-patch+json' };
    const { status, text } = await acme.call('PATCH', `${compute}/${id}`, body, headers);
    if (status !== 200) throw new Error(`${status} ${text}`);
    return (await acme.status({ id })).body.data.generation;
  };
  /** The next version comes only when this one has gone: they share a host. */
  const remove = async (container: { id: string }): Promise<void> => {
    await acme.remove(container);
    t.equal((await acme.wait(container, 'removed')).status, 200);
  };

  await t.test('done, superseded, rolled back, stopped, removed', async (t) => {
    const web = await declare('web', steady);
    const up = await settled(web);
    t.match(up, { outcome: 'done', status: 'running', restart_policy: 'always' });
    t.ok(Date.now() - Date.parse(up.started_at ?? '') >= 5000, 'it has been up for five seconds');

    const first = await change(web, { env: { A: '1' } });
    const second = await change(web, { env: { A: '2' } });
    t.match(await settled(web, `&generation=${first}`), { outcome: 'superseded' });
    t.match(await settled(web, `&generation=${second}`), { outcome: 'done', update: { phase: 'done' } });

    const crashing = await imageRunning(rig, 'exit 3');
    const third = await change(web, { tag: crashing.tag });
    t.match(await settled(web, `&generation=${third}`), {
      outcome: 'rolled_back',
      update: { phase: 'rolled_back', generation: third },
    });

    const late = acme.call('GET', `${compute}/${web.id}/wait?status=failed&timeout=60`);
    t.match(await settled(web), { outcome: 'done', status: 'running' }, 'the version of before');
    await acme.stop(web);
    t.match(await settled(web), { outcome: 'stopped', status: 'stopped' });
    t.match(await late, {
      status: 409,
      body: { error: 'conflict', reason: 'not_running', message: /is stopped already/ },
    });
    t.match(await acme.wait(web, 'running'), { status: 409, body: { message: /only after a start/ } });

    await acme.remove(web);
    t.match(await settled(web), { outcome: 'removed' });
    t.equal((await acme.wait(web, 'removed')).status, 200);
    t.match(await settled(web), { outcome: 'removed' }, 'also when it is gone');
  });

  await t.test('jobs', async (t) => {
    const job = await declare('job', 'sleep 1; echo done', { restart: 'never' });
    t.match(await settled(job, '&stable_seconds=0'), { outcome: 'done', status: 'stopped', exit_code: 0 });
    const broken = await declare('broken', 'exit 7', { restart: 'never' });
    t.match(await settled(broken), { outcome: 'failed', status: 'failed', exit_code: 7 });
    const server = await declare('server', steady, { restart: 'never' });
    t.match(await settled(server, '&job=false&stable_seconds=1'), { outcome: 'done', status: 'running' });
    await Promise.all([job, broken, server].map(remove));
  });

  await t.test('failed: no image, a crash loop, no program, unhealthy for good', async (t) => {
    const lost = (await acme.create({ name: 'lost', ...(await imageRunning(rig, steady)), tag: 'none', ...limits }))
      .body;
    t.match(await settled(lost.data), { outcome: 'failed', status: 'failed', reason: 'image_not_found' });
    t.match(await acme.wait(lost.data, 'running'), { status: 409 });
    const crashing = await declare('crashing', 'exit 3');
    t.match(await settled(crashing), { outcome: 'failed', status: 'backoff', reason: 'crash_loop' });
    const body = { name: 'no-program', image: await imageRunning(rig, steady), ...limits };
    const process = { entrypoint: ['/nosuchprogram'] };
    const made = await acme.call<{ data: Container }>('POST', '/api/v2/containers', { ...body, process });
    const unstarted = made.body.data;
    t.match(await settled(unstarted), { outcome: 'failed', status: 'backoff', reason: 'start_failed', failures: 3 });
    const check = { command: ['false'], interval: 1, timeout: 1, retries: 1, start_period: 0 };
    const ill = await declare('ill', steady, { health: { ...check, restart_unhealthy: false } });
    t.match(await settled(ill), { outcome: 'failed', status: 'running', reason: 'unhealthy' });
    await Promise.all([lost.data, crashing, unstarted, ill].map(remove));
  });

  await t.test('of what it has never seen, and of others', async (t) => {
    const path = `${compute}/01890000-0000-7000-8000-000000000001/wait?until=settled&timeout=1`;
    t.equal((await acme.call('GET', path)).status, 404);
    const mine = await declare('mine', steady);
    const other = await rig.client(rig.tenant('others'));
    t.equal((await other.call('GET', `${compute}/${mine.id}/wait?until=settled&timeout=1`)).status, 404);
    const job = await acme.call('GET', `${compute}/${mine.id}/wait?until=settled&job=true&timeout=1`);
    t.match(job, { status: 504, body: { message: /was not settled within the timeout/ } });
    await eventually(
      'it runs',
      () => acme.status(mine),
      ({ body }) => body.data.status === 'running',
    );
    await remove(mine);
  });
});
