import t from 'tap';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { issuersOf } from '../../../gateway/configuration/issuers.ts';
import { settings } from '../../../gateway/configuration/settings.ts';
import { settings as agentSettings } from '../../../host-agent/settings.ts';
import { ConfigurationError, readSettings } from '../../../lib/config.ts';
import { temporaryFolder } from '../../support/folder.ts';

t.test('a URL with a password is refused if the URL is logged or handed on', (t) => {
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
