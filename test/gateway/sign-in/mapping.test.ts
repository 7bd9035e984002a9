import t from 'tap';
import { grantsOf, lacksClaims, type Rule } from '../../../gateway/sign-in/mapping.ts';
import type { TenantId } from '../../../schemas/ids.ts';

const [acme, beta] = ['acme', 'beta'] as TenantId[] as [TenantId, TenantId];
const rules: readonly Rule[] = [
  { by: 'value', claim: 'groups', value: 'developers', tenant: beta, scopes: ['read', 'deploy'] },
  { by: 'value', claim: 'groups', value: 'admins', tenant: beta, scopes: ['read', 'admin'] },
  { by: 'value', claim: 'email', value: 'a@b.test', tenant: acme, scopes: ['read'] },
  { by: 'name', claim: 'tenants', scopes: ['read'] },
];

t.test('claims → tenants and scopes', (t) => {
  const cases: readonly (readonly [string, Record<string, unknown>, Record<string, readonly string[]>])[] = [
    ['nothing', {}, {}],
    ['a text', { groups: 'developers' }, { beta: ['read', 'deploy'] }],
    ['several rules add up', { groups: ['x', 'developers', 'admins'] }, { beta: ['read', 'deploy', 'admin'] }],
    ['a part of a value', { groups: ['developers2', 'develop'] }, {}],
    ['values that are no texts', { groups: [1, null, { developers: 1 }] }, {}],
    ['an address that is verified', { email: 'a@b.test', email_verified: true }, { acme: ['read'] }],
    ['one that is not', { email: 'a@b.test', email_verified: false }, {}],
    ['one that is verified in words', { email: 'a@b.test', email_verified: 'true' }, {}],
    ['one of which nothing is said', { email: 'a@b.test' }, {}],
    ['names of tenants', { tenants: ['beta', 'acme'] }, { acme: ['read'], beta: ['read'] }],
    ['names that no tenant has', { tenants: ['a.b', '*', '', '../x', 'x'.repeat(65)] }, {}],
    ['a claim that is inherited', Object.create({ groups: 'developers' }) as Record<string, unknown>, {}],
  ];
  for (const [name, claims, expected] of cases) {
    const found = Object.fromEntries(grantsOf(rules, claims).map(({ tenant, scopes }) => [tenant, scopes]));
    t.same(found, expected, name);
  }
  const ordered = grantsOf(rules, { groups: 'admins', tenants: ['acme'] }).map(({ tenant }) => tenant);
  t.same(ordered, [acme, beta], 'by name');
  t.end();
});

t.test('the userinfo endpoint is asked for what the ID token lacks', (t) => {
  t.equal(lacksClaims(rules, { groups: [], email: 'x', tenants: [] }), false);
  t.equal(lacksClaims(rules, { groups: [], email: 'x' }), true);
  t.end();
});
