/** To a tenant the containers of another tenant do not exist, by whatever way it tries. */
import t from 'tap';
import { routes } from '../../../schemas/routes.ts';
import { startRig } from '../support/rig.ts';

const compute = '/api/v2/compute';
const absent = '01890000-0000-7000-8000-000000000000';

t.test('one tenant cannot reach another', async (t) => {
  const rig = await startRig(t, { gateway: { VAULT_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}` } });
  const alice = await rig.client('alice');
  const mallory = await rig.client('mallory');
  const { body } = await alice.create({ name: 'private', env: { SECRET: 'alices-secret' } });
  const { id } = body.data;

  t.test('every route answers 404 for the id of another tenant’s container', async (t) => {
    for (const route of routes.filter(({ path }) => path.startsWith(`${compute}/:id`))) {
      const { method, path } = route;
      const sent = 'body' in route ? {} : undefined;
      const foreign = await mallory.call(method, path.replace(':id', id), sent);
      const none = await mallory.call(method, path.replace(':id', absent), sent);
      t.equal(foreign.status, 404, `${method} ${path}`);
      t.same(foreign.body, { error: 'not_found' });
      t.equal(none.text, foreign.text);
    }
    t.equal((await alice.get({ id })).status, 200, 'its tenant still has it');
  });

  t.test('ids in other forms reach nothing', async (t) => {
    const forms = [id.toUpperCase(), `${id}%00`, `${id}/`, `..%2f${id}`, `alice.${id}`, `${id}.x`, '*', '>', '%2e%2e'];
    for (const form of forms) {
      const { status, text } = await mallory.call('GET', `${compute}/${form}`);
      t.ok([400, 404].includes(status), `${form} → ${status}`);
      t.notMatch(text, /alices-secret/);
    }
  });

  t.test('the token alone names the tenant', async (t) => {
    const tricks = await mallory.create(
      { name: 'private', tenant_id: 'alice', tenant: 'alice' },
      { 'x-tenant-id': 'alice', 'x-forwarded-user': 'alice' },
    );
    t.equal(tricks.status, 201, 'two tenants may use the same name');
    t.equal(tricks.body.data.tenant_id, 'mallory');
    const listed = await mallory.call('GET', `${compute}?tenant=alice&tenant_id=alice`);
    t.notMatch(listed.text, /alices-secret/);
    t.notMatch((await mallory.call('GET', `${compute}/events?tenant=alice`)).text, new RegExp(id));
    t.equal((await alice.list()).body.data.length, 1);
  });

  t.test('secrets and logins of the same name are others', async (t) => {
    const secret = { value: 'alices-secret' };
    const login = { username: 'alice', password: 'alices-secret' };
    t.equal((await alice.call('PUT', `${compute}/secrets/db`, secret)).status, 201);
    t.equal((await alice.call('PUT', `${compute}/registries/docker.io`, login)).status, 201);
    for (const path of ['secrets', 'registries']) {
      const { text } = await mallory.call('GET', `${compute}/${path}`);
      t.equal(text, '{"data":[]}', path);
    }
    t.equal((await mallory.call('DELETE', `${compute}/secrets/db`)).status, 404);
    t.equal((await mallory.call('DELETE', `${compute}/registries/docker.io`)).status, 404);
    const made = await mallory.create({ name: 'thief' });
    const uses = { env: { STOLEN: 'db' } };
    const used = await mallory.call('PUT', `${compute}/${made.body.data.id}/secrets`, uses);
    t.equal(used.status, 422, 'not a secret that mallory has');
    t.match(used.body, { details: { 'env.STOLEN': [/is not a secret/] } });
    t.equal((await mallory.call('PUT', `${compute}/secrets/db`, { value: 'mallorys' })).status, 201);
    const { body: kept } = await alice.call('GET', `${compute}/secrets`);
    t.match(kept, { data: [{ name: 'db', version: 1, used_by: [] }] });
    t.notMatch(JSON.stringify(kept), /alices-secret/);
  });

  t.test('keys of another tenant do not exist, and each opens its own alone', async (t) => {
    const keys = '/api/v2/keys';
    interface Made {
      readonly data: { readonly id: string; readonly token: string };
    }
    const { body: hers } = await alice.call<Made>('POST', keys, { name: 'ci', scopes: ['read', 'admin'] });
    t.equal((await mallory.call('GET', keys)).text, '{"data":[]}');
    const foreign = await mallory.call('DELETE', `${keys}/${hers.data.id}`);
    t.equal(foreign.status, 404);
    t.equal((await mallory.call('DELETE', `${keys}/${absent}`)).text, foreign.text);
    const { body: his } = await mallory.call<Made>('POST', keys, { name: 'ci', scopes: ['read', 'admin'] });
    const list = async ({ data }: Made) => {
      const headers = { authorization: `Bearer ${data.token}` };
      return (await mallory.call<{ data: { tenant_id: string }[] }>('GET', compute, undefined, headers)).body.data;
    };
    t.ok((await list(hers)).every(({ tenant_id }) => tenant_id === 'alice'));
    t.ok((await list(his)).every(({ tenant_id }) => tenant_id === 'mallory'));
    t.equal((await alice.call('DELETE', `${keys}/${hers.data.id}`)).status, 204);
  });

  t.test('a tenant’s token opens no operator route', async (t) => {
    // Valid bodies, because an invalid one would be refused before the missing scope.
    const network = { endpoint: 'vpn.example.com', ipv4_pool: '10.86.0.0/24' };
    const bodies: Readonly<Record<string, object>> = {
      'host.create': { key: 'h2', region: 'default' },
      'network.create': { name: 'office', ...network },
      'network.put': network,
      'network.servers.put': { host_keys: ['h1'] },
    };
    for (const { name, method, path } of routes.filter(({ access }) => access === 'operator')) {
      const filled = path
        .replace(':tenant', 'alice')
        .replace(':id', id)
        .replace(':key', 'h1')
        .replace(':network', 'office');
      const body = method === 'GET' ? undefined : (bodies[name] ?? {});
      t.equal((await mallory.call(method, filled, body)).status, 403, `${method} ${path}`);
    }
  });

  t.test('an operator’s lists show a tenant nothing, not even of itself', async (t) => {
    for (const query of ['', '?tenant=alice', '?tenant=mallory', '?host=h1&status=pending', '?tenant=a.b']) {
      for (const list of ['tenants', 'containers']) {
        const { status, text } = await mallory.call('GET', `/api/v2/operator/${list}${query}`);
        // A faulty query is reported first: the list of tenants takes no such parameters.
        const isWrong = query.includes('.') || (list === 'tenants' && query !== '');
        t.equal(status, isWrong ? 422 : 403, `${list}${query}`);
        t.notMatch(text, /alices-secret|private/);
      }
    }
  });

  t.test('a tenant id with special characters of NATS subjects is refused', async (t) => {
    for (const tenant of ['*', '>', 'alice.>', 'a b', '', 'alice/../x', 'x'.repeat(65)]) {
      const trickster = await rig.client(tenant);
      t.equal((await trickster.list()).status, 401, JSON.stringify(tenant));
    }
  });

  t.test('an operation of one tenant does not exist for another', async (t) => {
    const key = { 'idempotency-key': 'shared-key' };
    const hers = await alice.create({ name: 'idem' }, key);
    const his = await mallory.create({ name: 'idem' }, key);
    t.equal(his.status, 201);
    t.not(his.body.data.id, hers.body.data.id);
  });
});
