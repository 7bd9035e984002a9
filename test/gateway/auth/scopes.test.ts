import t from 'tap';
import {
  isOfOperator,
  isScope,
  firstMissing,
  findMissingScope,
  scopesOf,
  type ScopeRules,
} from '../../../gateway/auth/scopes.ts';
import { routes, type Access, type Route } from '../../../schemas/routes.ts';
import { tenantScopes, type Scope } from '../../../schemas/scopes.ts';

t.test('claims of a token that limit it', (t) => {
  const usual = { claim: undefined, ignore: [] };
  const rows: [claims: Record<string, unknown>, scopes: readonly string[] | undefined, rules?: ScopeRules][] = [
    [{}, []],
    [{ scope: '', scp: [], scopes: null }, []],
    [{ scope: 'openid profile email offline_access address phone' }, []],
    [{ scope: 'openid operator:read network:office operator' }, ['operator:read', 'network:office', 'operator']],
    [{ scope: `openid ${tenantScopes.join(' ')} email` }, tenantScopes],
    [{ scope: 'READ' }, ['READ']],
    [{ scope: 'read,vpn' }, ['read,vpn']],
    [{ scope: 'vpn\tx' }, ['vpn\tx']],
    [{ scope: 'operator:misspelt' }, ['operator:misspelt']],
    [{ scope: ['read', 'vpn'] }, ['read', 'vpn']],
    [{ scope: ['read vpn'] }, ['read vpn']],
    [{ scp: 'vpn' }, ['vpn']],
    [{ scp: ['openid', 'vpn'] }, ['vpn']],
    [{ scopes: 'vpn exec' }, ['vpn', 'exec']],
    [{ scope: 'openid', scp: ['read'], scopes: ['read', 'vpn'] }, ['read', 'vpn']],
    [{ scope: 5 }, undefined],
    [{ scp: { read: true } }, undefined],
    [{ scopes: ['read', 5] }, undefined],
    [{ scope: 'roles vpn' }, ['vpn'], { claim: undefined, ignore: ['roles'] }],
    [{ scope: 'roles' }, [], { claim: undefined, ignore: ['roles'] }],
    [{ scope: 'billing', permissions: ['read'] }, ['read'], { claim: 'permissions', ignore: [] }],
    [{ scope: 'read' }, [], { claim: 'constructor', ignore: [] }],
    [{ scope: 'read', permissions: [] }, [''], { claim: 'permissions', ignore: [] }],
    [{ permissions: '' }, [''], { claim: 'permissions', ignore: [] }],
    [{ permissions: null }, [''], { claim: 'permissions', ignore: [] }],
    [{ permissions: ['roles'] }, [], { claim: 'permissions', ignore: ['roles'] }],
  ];
  for (const [claims, scopes, rules = usual] of rows) t.same(scopesOf(claims, rules), scopes, JSON.stringify(claims));
  t.same(['read', 'network:office', 'operator'].filter(isScope), ['read', 'network:office', 'operator']);
  t.same(['READ', 'operators', 'operator:misspelt', 'network:', 'xread', 'reads'].filter(isScope), []);
  t.equal(firstMissing(['READ'], ['read']), 'read', 'what opens nothing passes nothing on');
  t.equal(firstMissing([''], ['read']), 'read');
  t.same(['read', 'operator', 'network:office', 'admin'].filter(isOfOperator), ['operator', 'network:office']);
  t.end();
});

t.test('routes that each scope opens', (t) => {
  const route = (access: Access, ...scopes: Scope[]) =>
    ({ access, ...(scopes.length === 0 ? {} : { scopes: scopes as [Scope] }) }) as const;
  const rows: [string[], ReturnType<typeof route>, ReturnType<typeof findMissingScope>][] = [
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
    [['READ'], route('tenant', 'read'), 'read'],
    [[''], route('tenant', 'read'), 'read'],
    [['READ', 'deploy'], route('tenant', 'read', 'deploy'), undefined],
  ];
  for (const [scopes, of, lack] of rows) {
    t.same(findMissingScope(scopes, of, { network: 'office' }), lack, `${scopes.join(' ')} for ${JSON.stringify(of)}`);
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
