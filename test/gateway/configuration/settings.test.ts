import t from 'tap';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { issuersOf, publicUrlOf, redisAccessOf, settings } from '../../../gateway/configuration/settings.ts';
import { settings as agentSettings } from '../../../host-agent/settings.ts';
import { ConfigurationError, readSettings } from '../../../lib/config.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { linksOf } from '../../../gateway/vpn/render/links.ts';
import { subjectWith } from '../vpn/support.ts';

t.test('every public URL that is taken can be written into files', (t) => {
  const taken: Readonly<Record<string, string>> = {
    'https://vpn.example.com': 'https://vpn.example.com',
    'https://VPN.example.com:443/': 'https://vpn.example.com',
    'http://10.0.0.1:8080/a/b_c~d.e-f//': 'http://10.0.0.1:8080/a/b_c~d.e-f',
    'https://[2001:DB8::1]/x/../y': 'https://[2001:db8::1]/y',
    'https://büro.example': 'https://xn--bro-hoa.example',
  };
  for (const [given, url] of Object.entries(taken)) {
    t.equal(publicUrlOf({ PUBLIC_URL: given }), url, given);
    t.match(linksOf({ ...subjectWith(), baseUrl: url }).p12, url);
  }
  t.equal(publicUrlOf({ PUBLIC_URL: undefined }), undefined);
  t.end();
});

t.test('what no file could name is refused at the start', (t) => {
  for (const given of [
    'vpn.example.com',
    'ftp://vpn.example.com',
    'https://user@vpn.example.com',
    'https://:secret@vpn.example.com',
    'https://vpn.example.com/?a',
    'https://vpn.example.com/#a',
    'https://vpn.example.com/a%20b',
    'https://vpn.example.com/a//b',
    'https://my_host/',
    "https://vpn.example.com/a'b",
  ]) {
    t.throws(() => publicUrlOf({ PUBLIC_URL: given }), { name: 'ConfigurationError' }, given);
  }
  t.end();
});

t.test('where Redis is, and as whom', (t) => {
  const folder = temporaryFolder(t);
  const [passwordFile, caFile] = [join(folder, 'password'), join(folder, 'ca.pem')];
  writeFileSync(passwordFile, 'p:w@/\n');
  writeFileSync(caFile, 'authority');
  const accessOf = (env: Record<string, string>) => redisAccessOf(readSettings(settings, env));
  const file = { REDIS_PASSWORD_FILE: passwordFile };
  t.equal(accessOf({}), undefined);
  t.same(accessOf({ REDIS_URL: 'redis://r' }), { host: 'r', port: 6379, database: 0 });
  t.same(accessOf({ REDIS_URL: 'redis://[::1]:7/2' }), { host: '::1', port: 7, database: 2 });
  const secured = { REDIS_URL: 'rediss://r:1', REDIS_CA_FILE: caFile, REDIS_USERNAME: 'u', ...file };
  const known = { host: 'r', port: 1, database: 0, username: 'u', password: 'p:w@/', tls: { ca: 'authority' } };
  t.same(accessOf(secured), known);
  t.match(accessOf({ REDIS_URL: 'rediss://u:a%40b@r' }), { username: 'u', password: 'a@b', tls: {} });
  for (const [env, fault] of [
    [{ REDIS_URL: 'r:6379' }, /must begin redis/],
    [{ REDIS_URL: 'http://r' }, /must begin redis/],
    [{ REDIS_URL: 'nonsense' }, /is no URL/],
    [{ REDIS_URL: 'redis://u:hun%ter2@r' }, /^(?!.*hun).*REDIS_URL must be percent-encoded/],
    [{ REDIS_URL: 'redis://u%zz:hunter2@r' }, /^(?!.*hun).*REDIS_URL must be percent-encoded/],
    [{ REDIS_URL: 'redis://u:hun/ter2@r' }, /^(?!.*hun).*percent-encoded/],
    [{ REDIS_URL: 'redis://u:12#hunter@r' }, /^(?!.*hun).*percent-encoded/],
    [{ REDIS_URL: 'redis://u:12/hunter@r' }, /^(?!.*hun).*percent-encoded/],
    [{ REDIS_URL: 'redis://u:12?hunter@r' }, /^(?!.*hun).*percent-encoded/],
    [{ REDIS_URL: 'redis://r/x' }, /must be redis:\/\/host:port/],
    [{ REDIS_URL: 'redis://r?tls=true' }, /must be redis:\/\/host:port/],
    [{ REDIS_URL: 'redis://r', REDIS_CA_FILE: caFile }, /goes with rediss/],
    [{ REDIS_URL: 'redis://:hunter2@r', ...file }, /^(?!.*hunter2).*not both/],
    [{ REDIS_URL: 'redis://u@r', REDIS_USERNAME: 'v', ...file }, /not both/],
    [{ REDIS_URL: 'redis://r', REDIS_USERNAME: 'u' }, /needs REDIS_PASSWORD_FILE/],
    [{ REDIS_URL: 'redis://r', REDIS_PASSWORD_FILE: join(folder, 'none') }, /cannot be read/],
  ] as const) {
    t.throws(() => accessOf(env), { name: 'ConfigurationError', message: fault });
  }
  t.end();
});

t.test('URLs that are logged or handed on hold no password', (t) => {
  const faultOf = (env: Record<string, string>): string => {
    try {
      const configuration = readSettings({ ...agentSettings, ...settings }, { ...env, AUTH_AUDIENCE: 'a' });
      issuersOf(configuration);
      return '';
    } catch (error) {
      return error instanceof ConfigurationError ? error.message : `not a fault of the configuration: ${String(error)}`;
    }
  };
  const file = join(temporaryFolder(t), 'issuers.json');
  const issuers = (jwks_url: string): Record<string, string> => {
    const entry = { issuer: 'i', audience: 'a', algorithms: ['EdDSA'], jwks_url };
    writeFileSync(file, JSON.stringify([entry]));
    return { AUTH_ISSUERS_FILE: file };
  };
  const jwks = { AUTH_ISSUER: 'i', AUTH_JWKS_URL: 'https://i.example/jwks' };
  for (const env of [
    jwks,
    issuers('https://i.example/jwks'),
    { ...jwks, LONGSHORE_URL: 'https://api.example:8443/' },
    { ...jwks, NATS_URLS: 'nats://127.0.0.1:4222,tls://n1.example.net:4222,n2.example.net,n3:4222' },
    { ...jwks, NATS_URLS: '::1,[::1]:4222,nats://[fd00::1]:4222' },
  ]) {
    t.equal(faultOf(env), '', JSON.stringify(env));
  }
  for (const [name, urls] of [
    [
      'AUTH_JWKS_URL',
      ['https://u:hunter2@i.example/', 'https://u:hun%ter2@i.example/', 'https://hunter2 x', 'ftp://i'],
    ],
    ['LONGSHORE_URL', ['https://u:hunter2@g.example', 'http://hunter2@g', 'hunter2 x', 'hunter2.example']],
    [
      'NATS_URLS',
      ['nats://u:hunter2@n', 'u:hun%ter2@n:1', 'nats://n,nats://hunter2@n', 'nats://hunter2 x', 'n:hunter2'],
    ],
  ] as const) {
    for (const url of urls) {
      const fault = faultOf({ ...jwks, [name]: url });
      t.match(fault, /^configuration: (?!.*hun).*without user and password/, `${name}=${url}`);
      t.match(fault, name === 'AUTH_JWKS_URL' ? 'AUTH_ISSUER' : name);
    }
  }
  t.match(faultOf(issuers('https://u:hunter2@i.example/')), /^configuration: AUTH_ISSUERS_FILE(?!.*hun).*without user/);
  t.end();
});
