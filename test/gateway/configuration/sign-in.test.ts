import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { linkFolderOf, sessionLifeOf, signInOf } from '../../../gateway/configuration/sign-in.ts';
import { settings } from '../../../gateway/configuration/settings.ts';
import { readSettings } from '../../../lib/config.ts';
import { temporaryFolder } from '../../support/folder.ts';

const rulesFile = join(temporaryFolder(t), 'rules.json');
const rule = { claim: 'groups', value: 'g', tenant: 'acme', scopes: ['read'] };
const whole = {
  PUBLIC_URL: 'https://longshore.test/at',
  VAULT_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
  SIGN_IN_ISSUER: 'https://login.test/realm',
  SIGN_IN_CLIENT_ID: 'longshore',
  SIGN_IN_RULES_FILE: rulesFile,
};
const read = (more: Record<string, string>, rules: unknown = [rule]) => {
  writeFileSync(rulesFile, JSON.stringify(rules));
  return signInOf(readSettings(settings, more));
};

t.test('valid settings', (t) => {
  t.equal(read({}), undefined, 'off');
  const { issuer, publicUrl, rules, clientSecret } = read(whole)!;
  t.same([issuer.href, publicUrl, clientSecret], ['https://login.test/realm', 'https://longshore.test/at', undefined]);
  t.same(rules, [{ by: 'value', ...rule, device: undefined }]);
  t.match(read(whole, [{ ...rule, device: true }])?.rules, [{ device: true }]);
  t.equal(read(whole)?.deviceLifeMs, 4 * 3_600_000);
  t.equal(read({ ...whole, SIGN_IN_SESSION: '1m' })?.deviceLifeMs, 60_000, 'no longer than in a browser');
  t.equal(read({ ...whole, SIGN_IN_DEVICE: 'off' })?.deviceLifeMs, undefined);
  const local = { PUBLIC_URL: 'http://127.0.0.1:8080', SIGN_IN_ISSUER: 'http://localhost:3000' };
  t.equal(read({ ...whole, ...local })?.issuer.protocol, 'http:');
  const operator = [{ ...rule, tenant: 'operator', scopes: ['operator', 'network:office'] }];
  t.equal(read(whole, operator)?.rules.length, 1);
  t.end();
});

t.test('settings that stop the start', (t) => {
  const without = (name: keyof typeof whole): Record<string, string> => ({ ...whole, [name]: '' });
  const settingsRefused: readonly (readonly [Record<string, string>, RegExp])[] = [
    [without('SIGN_IN_ISSUER'), /set SIGN_IN_ISSUER too/],
    [without('PUBLIC_URL'), /needs SIGN_IN_CLIENT_ID, SIGN_IN_RULES_FILE and PUBLIC_URL/],
    [without('VAULT_KEYS'), /needs VAULT_KEYS/],
    [{ ...whole, PUBLIC_URL: 'http://longshore.test' }, /PUBLIC_URL must be an https URL/],
    [{ ...whole, PUBLIC_URL: 'http://127.0.0.1.evil.test' }, /PUBLIC_URL must be an https URL/],
    [{ ...whole, SIGN_IN_ISSUER: 'http://login.test' }, /SIGN_IN_ISSUER must be an https URL/],
    [{ ...whole, SIGN_IN_ISSUER: 'login' }, /SIGN_IN_ISSUER must be an https URL/],
    [{ ...whole, SIGN_IN_SCOPES: 'email' }, /must have "openid"/],
    [{ ...whole, SIGN_IN_DEVICE: 'no' }, /SIGN_IN_DEVICE/],
    [{ ...whole, SIGN_IN_CLIENT_SECRET_FILE: '/nowhere' }, /cannot be read/],
  ];
  for (const [more, message] of settingsRefused) t.throws(() => read(more), { message });
  const rulesRefused: readonly (readonly [unknown, RegExp])[] = [
    [[], /SIGN_IN_RULES_FILE/],
    [[{ ...rule, tenant: undefined }], /rule 1 needs both/],
    [[{ ...rule, scopes: [] }], /SIGN_IN_RULES_FILE/],
    [[{ ...rule, scopes: ['raed'] }], /SIGN_IN_RULES_FILE/],
    [[{ ...rule, device: 'yes' }], /SIGN_IN_RULES_FILE/],
    [[{ ...rule, tenant: '../x' }], /SIGN_IN_RULES_FILE/],
    [[rule, { claim: 'tenants', scopes: ['operator:read'] }], /rule 2 gives "operator:read"/],
  ];
  for (const [rules, message] of rulesRefused) t.throws(() => read(whole, rules), { message });
  t.end();
});

t.test('sessions and links', (t) => {
  const of = (more: Record<string, string>) => readSettings(settings, more);
  t.equal(sessionLifeOf(of({})), 12 * 3_600_000);
  t.throws(() => sessionLifeOf(of({ SIGN_IN_SESSION: '10m', AUTH_TOKEN_LIFE_MAX: '1m' })), /longer/);
  t.equal(linkFolderOf(of({ SIGN_IN_LINK_FOLDER: '/links' })), '/links');
  t.throws(() => linkFolderOf(of({ SIGN_IN_LINK_FOLDER: '/links', NODE_ENV: 'production' })), /is for development/);
  t.end();
});
