import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { issuersOf } from '../../../gateway/configuration/issuers.ts';
import { settings } from '../../../gateway/configuration/settings.ts';
import { readSettings } from '../../../lib/config.ts';

t.test('one issuer comes from settings, several from a file', (t) => {
  const folder = t.testdir();
  const read = (env: Record<string, string>) => issuersOf(readSettings(settings, env));
  const single = { AUTH_ISSUER: 'i', AUTH_AUDIENCE: 'a' };
  t.match(read({ ...single, AUTH_JWKS_URL: 'https://x/jwks', AUTH_TENANT_CLAIM: 'org' }), [
    {
      issuer: 'i',
      audience: 'a',
      algorithms: ['EdDSA', 'ES256', 'RS256'],
      tenantClaim: 'org',
      source: { kind: 'url' },
    },
  ]);
  t.match(read({ ...single, AUTH_JWKS_FILE: '/x', AUTH_ALGORITHMS: 'ES256' }), [{ algorithms: ['ES256'] }]);
  t.throws(() => read({}), /set AUTH_ISSUERS_FILE, or AUTH_ISSUER/);
  t.throws(() => read(single), /either a JWKS URL or a JWKS file/);
  t.throws(() => read({ ...single, AUTH_JWKS_URL: 'https://x', AUTH_JWKS_FILE: '/x' }), /either/);
  t.throws(() => read({ ...single, AUTH_JWKS_FILE: '/x', AUTH_ALGORITHMS: 'HS256' }), /one or more of EdDSA/);
  const file = join(folder, 'issuers.json');
  const entry = { issuer: 'i', audience: 'a', algorithms: ['EdDSA'], jwks_file: '/x' };
  const write = (content: unknown): Record<string, string> => {
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
    return { AUTH_ISSUERS_FILE: file };
  };
  t.match(read(write([entry])), [{ issuer: 'i', tenantClaim: 'tenant_id', tenants: ['*'], operators: true }]);
  const other = { ...entry, issuer: 'j', tenant_claim: 'org', tenants: ['a', 'b-*'], operators: false };
  t.match(read(write([{ ...entry, tenants: ['*'], operators: true }, other])), [
    { issuer: 'i', tenants: ['*'], operators: true },
    { issuer: 'j', tenantClaim: 'org', tenants: ['a', 'b-*'], operators: false },
  ]);
  t.throws(() => read(write([entry, other])), /each entry needs "tenants".*i lacks one/);
  for (const tenants of [['*a'], ['a*b'], ['a.b'], ['']])
    t.throws(() => read(write([{ ...entry, tenants }])), /tenants/);
  t.match(read({ ...single, AUTH_JWKS_FILE: '/x' }), [{ scopes: { claim: undefined, ignore: [] } }]);
  t.match(read({ ...single, AUTH_JWKS_FILE: '/x', AUTH_SCOPES_CLAIM: 'c', AUTH_SCOPES_IGNORED: 'a, b' }), [
    { scopes: { claim: 'c', ignore: ['a', 'b'] } },
  ]);
  t.match(read(write([{ ...entry, scopes: { ignore: ['roles'] } }])), [{ scopes: { ignore: ['roles'] } }]);
  for (const word of ['read', 'operator', 'operator:typo', 'network:office'])
    t.throws(() => read(write([{ ...entry, scopes: { ignore: [word] } }])), /ignores the scope .* one of Longshore/);
  t.throws(() => read(write([{ ...entry, scopes: { claims: 'c' } }])), /AUTH_ISSUERS_FILE/);
  t.throws(() => read(write('{')), /AUTH_ISSUERS_FILE/);
  t.throws(() => read(write([])), /AUTH_ISSUERS_FILE/);
  t.throws(() => read(write([other, other])), /two entries/);
  t.throws(() => read(write([{ ...entry, algorithms: ['none'] }])), /AUTH_ISSUERS_FILE/);
  t.throws(() => read({ AUTH_ISSUERS_FILE: join(folder, 'nope') }), /cannot be read/);
  t.end();
});
