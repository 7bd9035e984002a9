/** Updates in place over HTTP, on real servers and programs (ADR 35). */
import { randomUUID } from 'node:crypto';
import t from 'tap';
import { pushTestImage } from '../../../dev/servers/registry.ts';
import type { Container, ContainerVersion } from '../../../schemas/api/container.ts';
import type { Event } from '../../../schemas/api/event.ts';
import type { QuotaAmounts } from '../../../schemas/api/tenant.ts';
import type { Client } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { hostKey } from '../support/hosts.ts';
import { imageRunning } from '../support/images.ts';
import { sharedStack } from '../support/stack.ts';

t.setTimeout(300_000);
const compute = '/api/v2/compute';
const limits = { cpu_limit: '0.1', mem_limit: '16m' };
const serving = `trap 'exit 0' TERM; mkdir -p /tmp/w; echo "$VERSION" > /tmp/w/index.html; httpd -p 8080 -h /tmp/w; while :; do sleep 1 & wait $!; done`;

const patch = (client: Client, { id }: { id: string }, body: object, headers: Record<string, string> = {}) =>
  client.call<{ data: Container }>('PATCH', `${compute}/${id}`, body, {
    'content-type': 'application/merge-patch+json',
    ...headers,
  });

/** The update has reached its end, and the container runs. */
const ended = async (client: Client, container: { id: string }) => {
  const { body } = await eventually(
    'the end of the update',
    () => client.status(container),
    ({ status, body }) =>
      status === 200 &&
      (body.data.update?.phase === 'done' || body.data.update?.phase === 'rolled_back') &&
      body.data.status === 'running',
  );
  return body.data;
};

const page = async (address: string | undefined): Promise<string> =>
  (await (await fetch(`http://${address}/`, { signal: AbortSignal.timeout(5000) })).text()).trim();

/** A container that runs may not listen yet. */
const saying = (address: string | undefined, version: string) =>
  eventually(
    `version ${version}`,
    () => page(address),
    (said) => said === version,
  );

const eventsOf = async (client: Client, { id }: { id: string }) =>
  (await client.call<{ data: Event[] }>('GET', `${compute}/${id}/events`)).body.data;

t.test('updates', async (t) => {
  const rig = await sharedStack(t);
  const acme = await rig.client(rig.tenant('acme'));
  const one = await imageRunning(rig, serving);
  const two = await imageRunning(rig, `true; ${serving}`);
  const crashing = await imageRunning(rig, 'echo about to crash; exit 3');
  const body = { name: 'web', ...one, ...limits, ports: [8080], env: { VERSION: 'one', OLD: 'x' } };
  const [web] = await acme.createRunning([body]);
  if (web === undefined) throw new Error('no container');
  const addressOf = async () => (await acme.status(web)).body.data.addresses[0]?.address;
  const address = await addressOf();

  await t.test('a new tag and environment: same id, name, host, address and port', async (t) => {
    const answer = await patch(acme, web, { tag: two.tag, env: { VERSION: 'two', OLD: null } });
    t.equal(answer.status, 200);
    t.match(answer.body.data, { id: web.id, name: 'web', tag: two.tag, env: { VERSION: 'two' }, host_key: hostKey });
    t.equal(Object.keys(answer.body.data).length, 16);
    const done = await ended(acme, web);
    t.match(done, { generation: 3, addresses: [{ address }] });
    t.match(done.update, {
      phase: 'done',
      from: { tag: one.tag, env: { VERSION: 'one', OLD: 'x' } },
      to: { tag: two.tag, env: { VERSION: 'two' } },
      reason: null,
    });
    await saying(address, 'two');
    await eventually(
      'the old copy goes',
      () => rig.engine.containers(web.id),
      (all) => all.length === 1,
    );
    const types = (await eventsOf(acme, web)).map(({ type }) => type);
    t.same(types.filter((type) => type !== 'status').slice(-2), ['update_requested', 'updated']);
  });

  await t.test('If-Match: only what has been read is changed', async (t) => {
    const read = await acme.get(web);
    const etag = read.headers.get('etag') ?? 'none';
    const first = await patch(acme, web, { env: { A: '1' } }, { 'if-match': etag });
    t.equal(first.status, 200);
    t.not(first.headers.get('etag'), etag);
    const second = await patch(acme, web, { env: { A: '2' } }, { 'if-match': etag });
    t.match(second, { status: 412, body: { error: 'precondition_failed' } });
    const third = await patch(acme, web, { env: { A: '3' } }, { 'if-match': first.headers.get('etag') ?? 'none' });
    t.equal(third.status, 200);
    t.equal((await ended(acme, web)).update?.phase, 'done');
  });

  await t.test('another look at a tag that has been pushed again, and at one that has not', async (t) => {
    const tag = `moving-${randomUUID()}`;
    const push = (version: string) => {
      const cmd = ['sh', '-c', `VERSION=${version}; ${serving}`];
      return pushTestImage(rig.image.registry, { repository: two.repository, tag, cmd });
    };
    await push('first');
    await patch(acme, web, { tag });
    const first = await ended(acme, web);
    t.match(first.image, { digest: /^sha256:/, resolved_at: String });
    await saying(address, 'first');
    const pull = () => acme.call('PATCH', `${compute}/${web.id}?pull=always`, {});
    const runs = async () => (await rig.engine.containers(web.id)).map(({ Id }) => Id);
    const [copy] = await runs();

    t.equal((await pull()).status, 200);
    const same = await ended(acme, web);
    t.match(same, {
      image: first.image,
      update: { phase: 'done', unmoved: true, message: /names the image that runs/ },
    });
    t.match(await runs(), [copy], 'what ran runs on');

    await push('second');
    await patch(acme, web, {});
    await saying(address, 'first');
    t.equal((await pull()).status, 200);
    const moved = await ended(acme, web);
    t.notOk(moved.update?.unmoved);
    t.not(moved.image?.digest, first.image?.digest);
    await saying(address, 'second');

    const { body } = await acme.call<{ data: ContainerVersion[] }>('GET', `${compute}/${web.id}/versions`);
    const version = body.data.find(({ digest }) => digest === first.image?.digest)?.version;
    await acme.call('POST', `${compute}/${web.id}/rollback`, { version });
    t.match(await ended(acme, web), { image: { digest: first.image?.digest } });
    await saying(address, 'first');
    await patch(acme, web, { tag: two.tag, digest: null });
    await ended(acme, web);
  });

  for (const [name, changes, reason] of [
    ['one that crashes', { tag: crashing.tag }, /exited|crash_loop/],
    ['an image that is not there', { tag: 'nosuch' }, /image_not_found/],
  ] as const) {
    await t.test(`${name} is rolled back`, async (t) => {
      const { status, body } = await patch(acme, web, { ...changes, cpu_limit: '0.2' });
      t.equal(status, 200, JSON.stringify(body));
      const quota = async () =>
        (await acme.call<{ data: { usage: QuotaAmounts } }>('GET', `${compute}/quota`)).body.data;
      const back = await ended(acme, web);
      t.equal(back.update?.phase, 'rolled_back');
      t.match(back.update?.reason, reason);
      t.match((await acme.get(web)).body.data, { tag: two.tag, cpu_limit: '0.1' });
      t.equal((await quota()).usage.cpu_millis, 100);
      await saying(await addressOf(), 'two');
      t.match((await eventsOf(acme, web)).findLast(({ type }) => type === 'update_failed')?.reason, reason);
    });
  }

  await t.test('actors and agent killed in the middle', async (t) => {
    await patch(acme, web, { env: { VERSION: 'four' } });
    await Promise.all([rig.actors.kill9(), rig.agent.kill9()]);
    const up = (await rig.engine.containers(web.id)).filter(({ State }) => State.Running);
    t.ok(up.length <= 1, 'no two run');
    await Promise.all([rig.actors.start(), rig.agent.start()]);
    t.equal((await ended(acme, web)).update?.phase, 'done');
    await saying(await addressOf(), 'four');
  });

  await t.test("an operator's change of what runs is an update", async (t) => {
    const operator = await rig.client('ops', 'operator');
    const path = `/api/v2/operator/tenants/${rig.tenant('acme')}/containers/${web.id}`;
    const config_files = [{ path: '/etc/motd', content: 'hello' }];
    t.equal((await operator.call('PATCH', path, { config_files })).status, 200);
    t.match((await ended(acme, web)).update, { phase: 'done', from: {}, to: {} });
  });

  await t.test('refused', async (t) => {
    const other = await rig.client(rig.tenant('other'));
    t.equal((await patch(other, web, { tag: '2' })).status, 404, 'of another tenant');
    t.equal((await patch(other, web, { tag: 7 })).status, 404, 'a 404 comes before a 422');
    const wrong = await patch(acme, web, { name: 'other', tag: 7, env: { '1': 'x' }, ports: ['80:80'] });
    t.equal(wrong.status, 422);
    t.match(wrong.body, {
      error: 'invalid',
      details: {
        name: [/can't be changed/],
        tag: ['must be a string'],
        env: [/keys must begin/],
        ports: ['host bindings are not allowed'],
      },
    });
    t.match(await patch(acme, web, { cpu_limit: '100.0' }), {
      status: 403,
      body: { error: 'over_quota', detail: { dimension: 'cpu_millis', max: 8000 } },
    });
    t.equal((await patch(acme, web, [])).status, 422);
    t.equal((await acme.remove(web)).status, 202);
    t.match((await patch(acme, web, { tag: '2' })).status, /404|409/);
  });
});
