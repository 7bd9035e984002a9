import t from 'tap';
import { grantsOf, lacksClaims, type Rule } from '../../../gateway/sign-in/mapping.ts';
import type { TenantId } from '../../../schemas/ids.ts';

const [acme, beta] = ['acme', 'beta'] as TenantId[] as [TenantId, TenantId];
const device = undefined;
const rules: readonly Rule[] = [
  { by: 'value', claim: 'groups', value: 'developers', tenant: beta, scopes: ['read', 'deploy'], device },
  { by: 'value', claim: 'groups', value: 'admins', tenant: beta, scopes: ['read', 'admin'], device },
  { by: 'value', claim: 'email', value: 'a@b.test', tenant: acme, scopes: ['read'], device },
  { by: 'name', claim: 'tenants', scopes: ['read'], device },
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
    const found = Object.fromEntries(grantsOf(rules, claims, 'browser').map(({ tenant, scopes }) => [tenant, scopes]));
    t.same(found, expected, name);
  }
  const ordered = grantsOf(rules, { groups: 'admins', tenants: ['acme'] }, 'browser').map(({ tenant }) => tenant);
  t.same(ordered, [acme, beta], 'by name');
  t.end();
});

t.test('the rules for a command line', (t) => {
  const of = (scopes: readonly string[], device?: boolean): readonly string[] | undefined => {
    const rule: Rule = { by: 'value', claim: 'groups', value: 'g', tenant: acme, scopes, device };
    t.same(grantsOf([rule], { groups: 'g' }, 'browser')[0]?.scopes, scopes);
    return grantsOf([rule], { groups: 'g' }, 'device')[0]?.scopes;
  };
  t.same(of(['read', 'operator', 'network:office', 'operator:read']), ['read'], 'nothing of the operator');
  t.same(of(['operator']), undefined, 'no grant, for one without scopes would open everything');
  t.same(of(['operator', 'read'], true), ['operator', 'read'], 'unless the rule says so');
  t.same(of(['read'], false), undefined);
  t.end();
});

t.test('the userinfo endpoint is asked for what the ID token lacks', (t) => {
  t.equal(lacksClaims(rules, { groups: [], email: 'x', tenants: [] }), false);
  t.equal(lacksClaims(rules, { groups: [], email: 'x' }), true);
  t.end();
});
