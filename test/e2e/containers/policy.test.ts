/** Policies over HTTP, on real servers and programs (ADR 36). */
import t from 'tap';
import type { Container } from '../../../schemas/api/container.ts';
import type { Event } from '../../../schemas/api/event.ts';
import { defaultPolicy, type Policy } from '../../../schemas/api/policy.ts';
import type { Client } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { imageRunning } from '../support/images.ts';
import { sharedStack } from '../support/stack.ts';

t.setTimeout(300_000);
const compute = '/api/v2/compute';
const limits = { cpu_limit: '0.1', mem_limit: '16m' };

const put = (client: Client, { id }: { id: string }, policy: object) =>
  client.call<{ data: Policy }>('PUT', `${compute}/${id}/policy`, policy);

const statusIs = async (client: Client, container: { id: string }, status: string, reason: string | null) => {
  const { body } = await eventually(
    `${status}, ${reason}`,
    () => client.status(container),
    (answer) => answer.status === 200 && answer.body.data.status === status && answer.body.data.reason === reason,
  );
  return body.data;
};

t.test('policies', async (t) => {
  const rig = await sharedStack(t);
  const acme = await rig.client(rig.tenant('acme'));
  const declare = async (name: string, script: string, policy: object): Promise<Container> => {
    const body = { name, ...(await imageRunning(rig, script)), ...limits };
    const made = await acme.call<{ data: Container }>('POST', `${compute}?start=false`, body);
    t.equal(made.status, 201, JSON.stringify(made.body));
    const { data } = made.body;
    t.equal((await put(acme, data, policy)).status, 200);
    t.equal((await acme.call('POST', `${compute}/${data.id}/start`)).status, 200);
    return data;
  };

  await t.test('a job: it completes, and stays so until it is started', async (t) => {
    const job = await declare('job', 'echo done', { restart: 'on_failure' });
    t.match(await statusIs(acme, job, 'stopped', 'completed'), { desired: 'stopped', exit_code: 0 });
    t.equal((await acme.call('GET', `${compute}/${job.id}/wait?status=stopped`)).status, 200);
    const events = async () => (await acme.call<{ data: Event[] }>('GET', `${compute}/${job.id}/events`)).body.data;
    const ends = async () => (await events()).filter(({ reason }) => reason === 'completed').length;
    t.equal(await ends(), 1);
    await Promise.all([rig.actors.kill9(), rig.agent.kill9()]);
    await Promise.all([rig.actors.start(), rig.agent.start()]);
    t.match(await statusIs(acme, job, 'stopped', 'completed'), { exit_code: 0 });
    await acme.call('POST', `${compute}/${job.id}/start`);
    await eventually('it has run a second time', ends, (count) => count === 2);
    t.equal((await events()).filter(({ type }) => type === 'start_requested').length, 2);
  });

  await t.test('one that runs once, and fails', async (t) => {
    const once = await declare('once', 'exit 7', { restart: 'never' });
    t.match(await statusIs(acme, once, 'failed', 'exited'), { desired: 'stopped', exit_code: 7, restart_count: 0 });
    t.equal((await acme.call('DELETE', `${compute}/${once.id}`)).status, 202);
  });

  await t.test('health: unhealthy, started again, and healthy', async (t) => {
    const script = `mkdir -p /tmp/w; echo ok > /tmp/w/up; (sleep 4; rm /tmp/w/up) & httpd -f -p 8080 -h /tmp/w`;
    const http = { port: 8080, path: '/up' };
    const health = { http, interval: 1, retries: 1, start_period: 30, restart_unhealthy: true };
    const web = await declare('web', script, { health, stop_grace_seconds: 1 });
    await statusIs(acme, web, 'running', null);
    const again = await eventually(
      'it was started again',
      () => acme.status(web),
      ({ body }) => body.data.status === 'running' && body.data.restart_count > 0,
    );
    t.equal(again.status, 200);
    const { body } = await acme.call<{ data: Event[] }>('GET', `${compute}/${web.id}/events`);
    t.match(body.data.find(({ reason }) => reason === 'unhealthy')?.message, /GET \/up on port 8080 answered 404/);
    t.equal((await acme.call('DELETE', `${compute}/${web.id}`)).status, 202);
  });

  await t.test('the policy itself', async (t) => {
    const [plain] = await acme.createRunning([
      { name: 'plain', ...(await imageRunning(rig, 'sleep 1000')), ...limits },
    ]);
    if (plain === undefined) throw new Error('no container');
    const path = `${compute}/${plain.id}/policy`;
    t.match(await acme.call('GET', path), { status: 200, body: { data: defaultPolicy } });
    t.match(await put(acme, plain, { restart: 'maybe' }), {
      status: 422,
      body: { details: { restart: ['must be one of always, on_failure, never'] } },
    });
    const other = await rig.client(rig.tenant('globex'));
    t.equal((await other.call('GET', path)).status, 404, 'another tenant’s container is not there');
    t.equal((await put(other, plain, {})).status, 404);
    t.equal((await put(other, plain, { restart: 'maybe' })).status, 404);
    const { restart_count, started_at } = (await acme.status(plain)).body.data;
    t.equal((await put(acme, plain, { restart: 'on_failure', stop_grace_seconds: 1 })).status, 200);
    t.match(await statusIs(acme, plain, 'running', null), { restart_count, started_at }, 'it runs on');
    const answer = await put(acme, plain, { health: { command: ['true'], interval: 1 } });
    t.match(answer, { status: 200, body: { data: { health: { command: ['true'], timeout: 5 } } } });
    await eventually(
      'the update to the new command is over',
      () => acme.status(plain),
      ({ body }) => body.data.update?.phase === 'done' && body.data.status === 'running',
    );
    t.match((await acme.status(plain)).body.data.update, {
      from: { health: null },
      to: { health: { command: ['true'] } },
    });
    t.equal((await acme.get(plain)).status, 200);
    t.equal(Object.keys((await acme.get(plain)).body.data).length, 16);
  });
});
