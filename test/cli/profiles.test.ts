import { chmodSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { accessOf } from '../../cli/context.ts';
import {
  profileBytesMax,
  profilePath,
  profilesMax,
  readProfiles,
  serverIn,
  writeProfiles,
} from '../../cli/profiles.ts';
import { temporaryFolder } from '../support/folder.ts';

const one = { server: 'https://longshore.example.com', token: 'a.b.c' };

t.test('the path of the file', (t) => {
  t.equal(profilePath({ HOME: '/home/ada' }), '/home/ada/.config/longshore/config.json');
  t.equal(profilePath({ HOME: '/home/ada', XDG_CONFIG_HOME: '/x' }), '/x/longshore/config.json');
  t.equal(profilePath({ HOME: '/home/ada', LONGSHORE_CONFIG: '/c.json' }), '/c.json');
  t.equal(profilePath({ HOME: '/home/ada', LONGSHORE_CONFIG: '' }), '/home/ada/.config/longshore/config.json');
  t.end();
});

t.test('a written file is read, by its owner alone', (t) => {
  const path = join(temporaryFolder(t), 'longshore', 'config.json');
  t.same(readProfiles(path), { current: null, profiles: {} });
  writeProfiles(path, { current: 'a', profiles: { a: one } });
  t.same(readProfiles(path), { current: 'a', profiles: { a: one } });
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.equal(statSync(dirname(path)).mode & 0o777, 0o700);
  t.same(readdirSync(dirname(path)), ['config.json'], 'nothing else is left');
  chmodSync(path, 0o640);
  t.throws(() => readProfiles(path), {
    name: 'Refused',
    message: `${path} has tokens in it, and others may read it: run "chmod 600 ${path}"`,
  });
  t.end();
});

t.test('a file that is none, or too large, and too many profiles', (t) => {
  const path = join(temporaryFolder(t), 'config.json');
  for (const text of ['', '{', '{"current":1,"profiles":{}}', '{"current":null,"profiles":{"a":{}}}']) {
    writeFileSync(path, text, { mode: 0o600 });
    t.throws(() => readProfiles(path), { name: 'Refused' }, text);
  }
  writeFileSync(path, ' '.repeat(profileBytesMax + 1));
  t.throws(() => readProfiles(path), /is larger than/);
  const profiles = Object.fromEntries(Array.from({ length: profilesMax + 1 }, (_, at) => [`p${at}`, one]));
  t.throws(() => writeProfiles(path, { current: null, profiles }), /remove one/);
  t.end();
});

t.test('the address of a server: without a slash at its end, and refused if it is none', (t) => {
  t.equal(serverIn('HTTPS://Longshore.example.com:443/'), one.server);
  t.equal(serverIn('http://127.0.0.1:8080/base/'), 'http://127.0.0.1:8080/base');
  for (const text of ['', 'nonsense', '127.0.0.1:8080', 'ftp://h', 'http://h?a=1'])
    t.throws(() => serverIn(text), { name: 'Refused', message: /is not the URL of a server/ }, text);
  t.end();
});

t.test('a server that is given is read as at the sign-in', (t) => {
  const path = join(temporaryFolder(t), 'config.json');
  writeProfiles(path, { current: 'a', profiles: { a: one } });
  const env = { LONGSHORE_CONFIG: path };
  t.same(accessOf({ server: `${one.server}/` }, env), one);
  t.same(accessOf({}, { ...env, LONGSHORE_SERVER: `${one.server}/` }), one);
  t.throws(() => accessOf({}, { ...env, LONGSHORE_SERVER: 'nonsense' }), /"nonsense" is not the URL of a server/);
  t.throws(() => accessOf({ server: 'https://other.example.com' }, env), /no token for https:\/\/other/);
  t.throws(() => accessOf({ profile: 'b' }, env), /there is no profile "b": "longshore profile ls"/);
  t.end();
});

t.test('a variable that is empty is not set', (t) => {
  const path = join(temporaryFolder(t), 'config.json');
  writeProfiles(path, { current: 'a', profiles: { a: one } });
  t.same(accessOf({}, { LONGSHORE_CONFIG: path, LONGSHORE_SERVER: '', LONGSHORE_TOKEN: '' }), one);
  t.end();
});

t.test('a token that no header can carry is refused, and not shown', (t) => {
  const path = join(temporaryFolder(t), 'config.json');
  const env = { LONGSHORE_CONFIG: path, LONGSHORE_SERVER: one.server };
  t.same(accessOf({}, { ...env, LONGSHORE_TOKEN: `${one.token}\r\n` }), one);
  for (const text of ['Key 1, until then:\na.b.c', 'a b', 'ü', ' '])
    t.throws(() => accessOf({}, { ...env, LONGSHORE_TOKEN: text }), {
      name: 'Refused',
      message: 'LONGSHORE_TOKEN is not a token: a token is a JWT, three parts with dots between them',
    });
  writeProfiles(path, { current: 'a', profiles: { a: { ...one, token: 'a\nb' } } });
  t.throws(() => accessOf({}, env), { message: new RegExp(`^the token for ${one.server} is not a token`) });
  t.end();
});
