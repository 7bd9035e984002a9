/** Sealing of a tenant's values by a gateway, over decisions of the owner (ADR 37). */
import t from 'tap';
import { secretRoutes } from '../../../gateway/secrets/routes.ts';
import { Vault } from '../../../gateway/vault/vault.ts';
import { validateLogin, validateSecret } from '../../../gateway/validation/secret.ts';
import type { Outcome, Question } from '../../../lib/rpc/partition-client.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { acme } from '../../actors/support/records.ts';
import { secretWorld } from '../../actors/support/secrets.ts';
import { callOf, servicesWith } from '../calls.ts';

const vault = new Vault([{ id: 'k1', key: Buffer.alloc(32, 1) }]);
const value = 's3cr3t-v4lue';

function stage(keys: Vault | undefined = vault, before: (question: Question) => void = () => {}) {
  const world = secretWorld();
  const services = servicesWith((question): Outcome => {
    before(question);
    const { reply } = 'op' in question ? world.write(question) : { reply: world.read(question as never) };
    return { code: reply.code, body: String(reply.body) };
  });
  const handlers = secretRoutes({ ...services, vault: keys });
  const put = async (name: string, text: string, more: object = {}, stage = false) => {
    const valid = validateSecret({ value: text, ...more });
    if (!valid.ok) throw new Error('not valid');
    return handlers['secret.put'](
      callOf('secret.put', { params: { secret: name }, query: { stage }, body: valid.value }),
    );
  };
  const login = async (host: string, password: string, username = 'ci') => {
    const valid = validateLogin({ username, password });
    if (!valid.ok) throw new Error('not valid');
    return handlers['registry.put'](callOf('registry.put', { params: { registry: host }, body: valid.value }));
  };
  const types = () => services.asked.splice(0).map(({ question }) => question.type);
  return { world, services, handlers, put, login, types };
}

t.test('a value is sealed for its version, and leaves only sealed', async (t) => {
  const { world, put, services, types } = stage();
  t.match(await put('db', value), { code: 'created', body: /"version":1/ });
  const record = world.state.tenant(acme).secrets.values.get('db')?.get(1);
  t.equal(vault.open({ of: 'secret', tenant: acme, name: 'db', version: 1 }, record!.sealed), value);
  t.throws(() => vault.open({ of: 'secret', tenant: acme, name: 'db', version: 2 }, record!.sealed));
  const said = JSON.stringify(services.asked);
  for (const text of [value, Buffer.from(value).toString('base64'), Buffer.from(value).toString('hex')])
    t.notMatch(said, text);
  t.same(types(), ['secret.material', 'secret.put']);
});

t.test('the same value changes nothing; another is the next version', async (t) => {
  const { put, types } = stage();
  await put('db', value);
  types();
  t.match(await put('db', value), { code: 'ok', body: /"version":1/ });
  t.match(await put('db', Buffer.from(value).toString('base64'), { encoding: 'base64' }), { body: /"version":1/ });
  t.same(types(), ['secret.material', 'secret.material'], 'it only reads');
  t.match(await put('db', `${value}2`), { code: 'ok', body: /"version":2/ });
});

t.test('a value that does not open is replaced', async (t) => {
  const { world, put } = stage();
  await put('db', value);
  const other = new Vault([{ id: 'k2', key: Buffer.alloc(32, 2) }]);
  const handlers = secretRoutes({
    ...servicesWith((question): Outcome => {
      const { reply } = 'op' in question ? world.write(question) : { reply: world.read(question as never) };
      return { code: reply.code, body: String(reply.body) };
    }),
    vault: other,
  });
  const body = { bytes: Buffer.from(value), isBinary: false };
  const result = await handlers['secret.put'](callOf('secret.put', { params: { secret: 'db' }, body }));
  t.match(result, { code: 'ok', body: /"version":2/ });
});

t.test('a value is staged, and the same one without that is staged no longer', async (t) => {
  const { put, types } = stage();
  await put('db', 'one');
  t.match(await put('db', value, {}, true), { body: /"version":2.*"staged":true/ });
  types();
  t.match(await put('db', value, {}, true), { body: /"version":2.*"staged":true/ });
  t.same(types(), ['secret.material'], 'it only reads');
  const { body } = (await put('db', value)) as { body: string };
  t.match(body, /"version":2/);
  t.notMatch(body, /staged/);
  t.same(types(), ['secret.material', 'secret.put']);
});

t.test('of two puts at the same time, the second is sealed again for the version after', async (t) => {
  let races = 1;
  const { world, put, types } = stage(vault, (question) => {
    if (question.type === 'secret.put' && races-- > 0) world.put('db');
  });
  t.match(await put('db', value), { code: 'ok', body: /"version":2/ });
  t.same(types(), ['secret.material', 'secret.put', 'secret.material', 'secret.put']);
  const always = stage(vault, (question) => {
    if (question.type === 'secret.put') always.world.put('db');
  });
  t.match(await always.put('db', value), { code: 'conflict', body: /at the same time/ }, 'not for ever');
});

t.test('a login: its password is sealed, its registry has one spelling', async (t) => {
  const { world, login, services, types } = stage();
  t.match(await login('Registry.Example:443', value), { code: 'created', body: /"host":"registry.example"/ });
  t.match(await login('index.docker.io', value), { code: 'created', body: /"host":"docker.io"/ });
  const record = world.state.tenant(acme).secrets.logins.get('registry.example');
  const place = { of: 'login', tenant: acme, registry: 'registry.example', version: 1 } as const;
  t.equal(vault.open(place, record!.sealed), value);
  t.notMatch(JSON.stringify(services.asked), value);
  types();
  await login('registry.example', value);
  t.same(types(), ['login.material'], 'the same login changes nothing');
  await login('registry.example', value, 'other');
  t.same(types(), ['login.material', 'login.put'], 'another name is another login');
});

t.test('the path must have a valid name', async (t) => {
  const { put, login, services } = stage();
  for (const name of ['a b', 'ü', 'a.b', 'x'.repeat(65), ''])
    t.match(await put(name, value), { code: 'invalid', body: /"name":\["must match/ }, name);
  for (const host of ['a b', 'a_b.example', '-x.example', 'x'.repeat(300), 'https:', 'x:70000000'])
    t.match(await login(host, value), { code: 'invalid', body: /"registry":\["must be a registry/ }, host);
  t.same(services.asked, []);
});

t.test('without vault keys nothing is put, and the rest is answered', async (t) => {
  const { handlers } = stage();
  const none = secretRoutes({ ...servicesWith(), vault: undefined });
  const body = { bytes: Buffer.from(value), isBinary: false };
  const refused = { code: 'unavailable', body: /VAULT_KEYS/ };
  t.match(await none['secret.put'](callOf('secret.put', { params: { secret: 'db' }, body })), refused);
  const loginBody = { username: 'ci', password: value };
  const params = { registry: 'docker.io' };
  t.match(await none['registry.put'](callOf('registry.put', { params, body: loginBody })), refused);
  t.match(await handlers['secret.list'](callOf('secret.list')), { code: 'ok', body: '{"data":[]}' });
});

t.test('the tenant is the token’s', async (t) => {
  const { services, handlers } = stage();
  await handlers['secret.list'](callOf('secret.list'));
  await handlers['registry.remove'](callOf('registry.remove', { params: { registry: 'Docker.io' } }));
  t.match(
    services.asked.map(({ question }) => question),
    [
      { type: 'secret.list', tenant: 'acme' as TenantId },
      { type: 'login.remove', tenant: 'acme' as TenantId, registry: 'docker.io' },
    ],
  );
});
