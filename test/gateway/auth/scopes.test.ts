import t from 'tap';
import { isOfOperator, lackOf, scopesOf } from '../../../gateway/auth/scopes.ts';
import { routes, type Access, type Route } from '../../../schemas/routes.ts';
import { tenantScopes, type Scope } from '../../../schemas/scopes.ts';

t.test('the words of a scope about this API are its scopes', (t) => {
  t.same(scopesOf(undefined), []);
  t.same(scopesOf('openid profile'), []);
  t.same(scopesOf('openid operator:read network:office operator'), ['operator:read', 'network:office', 'operator']);
  t.same(scopesOf(`openid ${tenantScopes.join(' ')} email`), tenantScopes);
  t.same(scopesOf('operators reads Deploy'), [], 'words that are only like one');
  t.same(scopesOf('operator:misspelt'), ['operator:misspelt'], 'it opens nothing, not even the tenant’s API');
  t.same(['read', 'operator', 'network:office', 'admin'].filter(isOfOperator), ['operator', 'network:office']);
  t.end();
});

t.test('which scopes open which routes', (t) => {
  const route = (access: Access, ...scopes: Scope[]) =>
    ({ access, ...(scopes.length === 0 ? {} : { scopes: scopes as [Scope] }) }) as const;
  const rows: [string[], ReturnType<typeof route>, ReturnType<typeof lackOf>][] = [
    [['operator'], route('operator', 'operator:hosts'), undefined],
    [['operator'], route('tenant', 'admin'), undefined],
    [[], route('tenant', 'read'), undefined],
    [[], route('download', 'vpn'), undefined],
    [[], route('operator'), 'operator'],
    [[], route('operator', 'operator:read', 'operator:hosts'), 'operator:read'],
    [['operator:hosts'], route('operator', 'operator:read', 'operator:hosts'), undefined],
    [['operator:hosts'], route('operator', 'operator:tenants'), 'operator:tenants'],
    [['operator:hosts'], route('tenant', 'read', 'deploy'), 'read'],
    [['operator:hosts', 'read'], route('tenant', 'read', 'deploy'), undefined],
    [['network:office'], route('operator', 'network:'), undefined],
    [['network:lab'], route('operator', 'network:'), 'network:office'],
    [['network:'], route('operator', 'network:'), 'network:office'],
    [['network:office'], route('download', 'vpn'), 'vpn'],
    [['deploy'], route('tenant', 'read', 'deploy'), undefined],
    [['read'], route('tenant', 'deploy'), 'deploy'],
    [['exec', 'vpn'], route('tenant', 'admin'), 'admin'],
    [[...tenantScopes], route('operator', 'operator:read'), 'operator:read'],
    [['read'], route('tenant'), 'operator'],
  ];
  for (const [scopes, of, lack] of rows) {
    t.same(lackOf(scopes, of, { network: 'office' }), lack, `${scopes.join(' ')} for ${JSON.stringify(of)}`);
  }
  t.end();
});

t.test('every route that takes a token names its scopes, and each only of its kind', (t) => {
  for (const { name, method, access, scopes = [], upgrades } of routes as readonly Route[]) {
    const takesToken = access !== 'public' && access !== 'pac';
    t.equal(scopes.length > 0, takesToken, `${name}: give it \`scopes\` in schemas/routes.ts`);
    t.ok(
      scopes.every((scope) => isOfOperator(scope) === (access === 'operator')),
      `${name}: scopes of its kind`,
    );
    const reads = scopes.some((scope) => scope === 'read' || scope === 'operator:read');
    t.ok(!reads || (method === 'GET' && upgrades !== true), `${name}: to read changes nothing`);
  }
  t.end();
});
