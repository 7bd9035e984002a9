import t from 'tap';
import { lackOf, powersOf } from '../../../gateway/auth/scopes.ts';
import type { Access, OperatorScope } from '../../../schemas/routes.ts';

t.test('the words of a scope about the operator API are its powers', (t) => {
  t.same(powersOf(undefined), []);
  t.same(powersOf('openid profile'), []);
  t.same(powersOf('openid operator:read network:office operator'), ['operator:read', 'network:office', 'operator']);
  t.same(powersOf('operators'), [], 'a word that only begins like one');
  t.same(powersOf('operator:misspelt'), ['operator:misspelt'], 'it opens nothing, not even the tenant’s API');
  t.end();
});

t.test('which powers open which routes', (t) => {
  const route = (access: Access, ...scopes: OperatorScope[]) =>
    ({ access, ...(scopes.length === 0 ? {} : { scopes: scopes as [OperatorScope] }) }) as const;
  const rows: [string[], ReturnType<typeof route>, ReturnType<typeof lackOf>][] = [
    [['operator'], route('operator', 'operator:hosts'), undefined],
    [['operator'], route('tenant'), undefined],
    [[], route('tenant'), undefined],
    [[], route('operator'), { scope: 'operator' }],
    [[], route('operator', 'operator:read', 'operator:hosts'), { scope: 'operator:read' }],
    [['operator:hosts'], route('operator', 'operator:read', 'operator:hosts'), undefined],
    [['operator:hosts'], route('operator', 'operator:tenants'), { scope: 'operator:tenants' }],
    [['operator:hosts'], route('tenant'), 'tenant'],
    [['network:office'], route('operator', 'network:'), undefined],
    [['network:lab'], route('operator', 'network:'), { scope: 'network:office' }],
    [['network:'], route('operator', 'network:'), { scope: 'network:office' }],
    [['network:office'], route('download'), 'tenant'],
  ];
  for (const [powers, of, lack] of rows) {
    t.same(lackOf(powers, of, { network: 'office' }), lack, `${powers.join(' ')} for ${JSON.stringify(of)}`);
  }
  t.end();
});
