import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { redisAccessOf } from '../../../gateway/configuration/redis.ts';
import { settings } from '../../../gateway/configuration/settings.ts';
import { readSettings } from '../../../lib/config.ts';
import { temporaryFolder } from '../../support/folder.ts';

t.test('the URL and the files name host, user, password and authority; no fault shows a password', (t) => {
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
    [{ REDIS_URL: 'r:6379' }, /must begin with redis/],
    [{ REDIS_URL: 'http://r' }, /must begin with redis/],
    [{ REDIS_URL: 'nonsense' }, /is not a valid URL/],
    [{ REDIS_URL: 'redis://u:hun%ter2@r' }, /^(?!.*hun).*percent-encode .* in REDIS_URL/],
    [{ REDIS_URL: 'redis://u%zz:hunter2@r' }, /^(?!.*hun).*percent-encode .* in REDIS_URL/],
    [{ REDIS_URL: 'redis://u:hun/ter2@r' }, /^(?!.*hun).*percent-encode/],
    [{ REDIS_URL: 'redis://u:12#hunter@r' }, /^(?!.*hun).*percent-encode/],
    [{ REDIS_URL: 'redis://u:12/hunter@r' }, /^(?!.*hun).*percent-encode/],
    [{ REDIS_URL: 'redis://u:12?hunter@r' }, /^(?!.*hun).*percent-encode/],
    [{ REDIS_URL: 'redis://r/x' }, /must be redis:\/\/host:port/],
    [{ REDIS_URL: 'redis://r?tls=true' }, /must be redis:\/\/host:port/],
    [{ REDIS_URL: 'redis://r', REDIS_CA_FILE: caFile }, /needs a REDIS_URL that begins with rediss/],
    [{ REDIS_URL: 'redis://:hunter2@r', ...file }, /^(?!.*hunter2).*not both/],
    [{ REDIS_URL: 'redis://u@r', REDIS_USERNAME: 'v', ...file }, /not both/],
    [{ REDIS_URL: 'redis://r', REDIS_USERNAME: 'u' }, /needs REDIS_PASSWORD_FILE/],
    [{ REDIS_URL: 'redis://r', REDIS_PASSWORD_FILE: join(folder, 'none') }, /cannot be read/],
  ] as const) {
    t.throws(() => accessOf(env), { name: 'ConfigurationError', message: fault });
  }
  t.end();
});
