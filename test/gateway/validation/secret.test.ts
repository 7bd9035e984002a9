import t from 'tap';
import { validateContainerSecrets, validateLogin, validateSecret } from '../../../gateway/validation/secret.ts';
import type { Validated } from '../../../gateway/validation/faults.ts';
import { limits } from '../../../schemas/limits.ts';

/** The value, or its faults by field. */
const of = <T>(valid: Validated<T>): unknown => (valid.ok ? valid.value : valid.faults);

t.test('a secret is text or base64, to the byte', (t) => {
  const bytesOf = (body: unknown) => {
    const valid = validateSecret(body);
    return valid.ok ? [valid.value.bytes.toString('latin1'), valid.value.isBinary] : valid.faults;
  };
  t.same(bytesOf({ value: 'p4ss' }), ['p4ss', false]);
  t.same(bytesOf({ value: 'ü' }), ['\xc3\xbc', false]);
  t.same(bytesOf({ value: 'a\0b' }), ['a\0b', true], 'no variable holds a NUL');
  t.same(bytesOf({ value: 'cDRzcw==', encoding: 'base64' }), ['p4ss', false]);
  t.same(bytesOf({ value: '/w==', encoding: 'base64' }), ['\xff', true]);
  const most = 'x'.repeat(limits.secretBytes);
  t.same(bytesOf({ value: most }), [most, false]);
  t.same(bytesOf({ value: Buffer.from(most).toString('base64'), encoding: 'base64' }), [most, false]);
  t.end();
});

t.test('values that a secret may not have; no fault shows them', (t) => {
  for (const [body, field, message] of [
    [{}, 'value', "can't be blank"],
    [{ value: '' }, 'value', "can't be blank"],
    [{ value: 1 }, 'value', 'must be a string'],
    [{ value: `s3cr3t${'x'.repeat(limits.secretBytes)}` }, 'value', 'must be at most 65536 bytes'],
    [{ value: 'ü'.repeat(limits.secretBytes / 2 + 1) }, 'value', 'must be at most 65536 bytes'],
    [{ value: 's3cr3t\ud800' }, 'value', /^must be valid Unicode/],
    [{ value: 's3cr3t!', encoding: 'base64' }, 'value', /^must be base64/],
    [{ value: 'cDRzcw', encoding: 'base64' }, 'value', /with padding/],
    [{ value: 'cDRz\ncw==', encoding: 'base64' }, 'value', /without line breaks/],
    [{ value: 's3cr3t', encoding: 'hex' }, 'encoding', 'must be one of base64'],
    [{ value: 's3cr3t', name: 'db' }, 'name', 'is not known'],
    ['s3cr3t', '_', 'must be an object'],
  ] as const) {
    const faults = of(validateSecret(body));
    t.match(faults, { [field]: [message] }, JSON.stringify(body).slice(0, 60));
    t.notMatch(JSON.stringify(faults), 's3cr3t');
  }
  t.end();
});

t.test('a login has a name without control characters and colons, and a password of bounded length', (t) => {
  const login = { username: 'ci', password: 's3cr3t' };
  t.same(of(validateLogin(login)), login);
  for (const [body, field, message] of [
    [{ ...login, username: '' }, 'username', "can't be blank"],
    [{ ...login, username: 'a\nb' }, 'username', /^must match/],
    [{ ...login, username: 'a:b' }, 'username', /^must match/],
    [{ ...login, username: 'x'.repeat(257) }, 'username', 'must be at most 256 characters'],
    [{ ...login, username: '\udc00' }, 'username', 'must be valid Unicode'],
    [{ username: 'ci' }, 'password', "can't be blank"],
    [{ ...login, password: 'x'.repeat(limits.registryPasswordBytes + 1) }, 'password', /^must be at most 16384/],
    [{ ...login, password: 'ü'.repeat(limits.registryPasswordBytes) }, 'password', 'must be at most 16384 bytes'],
    [{ ...login, host: 'docker.io' }, 'host', 'is not known'],
  ] as const) {
    const faults = of(validateLogin(body));
    t.match(faults, { [field]: [message] }, JSON.stringify(body).slice(0, 60));
    t.notMatch(JSON.stringify(faults), 's3cr3t');
  }
  t.end();
});

t.test('uses get their defaults', (t) => {
  t.same(of(validateContainerSecrets({})), { env: {}, files: {} });
  t.same(of(validateContainerSecrets({ env: { TOKEN: 'db' }, files: { '/run/db': { secret: 'db' } } })), {
    env: { TOKEN: 'db' },
    files: { '/run/db': { secret: 'db', mode: 0o400, uid: 0, gid: 0 } },
  });
  const file = { secret: 'db', mode: 0o440, uid: 1000, gid: 1001 };
  t.same(of(validateContainerSecrets({ files: { '/etc/ü b': file } })), { env: {}, files: { '/etc/ü b': file } });
  t.end();
});

t.test('uses that are refused, all at once', (t) => {
  const file = (path: string) => ({ files: { [path]: { secret: 'db' } } });
  const absolute = /^must be an absolute path/;
  const parts = /^must name a file/;
  const kernel = /^must not be below/;
  for (const [body, field, message] of [
    [{ env: { 'A B': 'db' } }, 'env.A B', /^must match/],
    [{ env: { A: 'no name' } }, 'env.A', /^must match/],
    [{ env: [] }, 'env', 'must be an object'],
    [file('run/db'), 'files.run/db', absolute],
    [file('/a\nb'), 'files./a\nb', absolute],
    [file(`/${'x'.repeat(256)}`), `files./${'x'.repeat(256)}`.slice(0, limits.faultFieldChars) + '…', absolute],
    [file('/'), 'files./', parts],
    [file('/run/'), 'files./run/', parts],
    [file('/run//db'), 'files./run//db', parts],
    [file('/run/../etc/passwd'), 'files./run/../etc/passwd', parts],
    [file('/run/./db'), 'files./run/./db', parts],
    [file('/proc/1/environ'), 'files./proc/1/environ', kernel],
    [file('/sys'), 'files./sys', kernel],
    [file('/dev/shm/x'), 'files./dev/shm/x', kernel],
    [{ files: { '/a': { secret: 'db' }, '/a/b': { secret: 'db' } } }, 'files./a/b', 'is below another file'],
    [{ files: { '/a': {} } }, 'files./a.secret', "can't be blank"],
    [{ files: { '/a': { secret: 'db', mode: 0o1000 } } }, 'files./a.mode', 'must be at most 511'],
    [{ files: { '/a': { secret: 'db', mode: '0400' } } }, 'files./a.mode', 'must be an integer'],
    [{ files: { '/a': { secret: 'db', uid: -1 } } }, 'files./a.uid', 'must be at least 0'],
    [{ files: { '/a': { secret: 'db', owner: 'me' } } }, 'files./a.owner', 'is not known'],
    [{ secrets: {} }, 'secrets', 'is not known'],
    [[], '_', 'must be an object'],
    [null, '_', 'must be an object'],
  ] as const) {
    t.match(of(validateContainerSecrets(body)), { [field]: [message] }, JSON.stringify(body)?.slice(0, 80));
  }
  const all = of(validateContainerSecrets({ env: { 'A B': 'db', B: '' }, files: { x: { secret: 'db' } }, more: 1 }));
  t.same(Object.keys(all as object).sort(), ['env.A B', 'env.B', 'files.x', 'more']);
  t.end();
});

t.test('a container has a bounded number of uses', (t) => {
  const many = (count: number, name: (index: number) => string, value: unknown) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [name(index), value]));
  const env = (count: number) => many(count, (index) => `V${index}`, 'db');
  const files = (count: number) => many(count, (index) => `/run/${index}`, { secret: 'db' });
  const half = limits.secretUses / 2;
  t.ok(validateContainerSecrets({ env: env(half), files: files(half) }).ok);
  t.match(of(validateContainerSecrets({ env: env(half), files: files(half + 1) })), { _: [/at most 64 uses/] });
  t.match(of(validateContainerSecrets({ env: env(1000) })), { env: ['must be at most 64 keys'] });
  t.end();
});
