import fc from 'fast-check';
import t from 'tap';
import {
  validateCreate,
  validateField,
  validateLabelsPatch,
  validateUpdate,
} from '../../../gateway/validation/container.ts';
import { canonicalSpec, type ContainerSpec } from '../../../schemas/api/fields/container.ts';

const hex = (length: number): string => 'a'.repeat(length);
const keysOf = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`K${at}`, 'v']));
const portFault = 'must be integers from 1 to 65535, or strings like "53/udp"';
const form = {
  name: 'must begin with a letter or digit and have only letters, digits, "_", "." and "-"',
  registry: 'must be a host with an optional port, like "ghcr.io" or "localhost:5000"',
  repository: 'must be lower-case parts joined by "/", like "library/nginx"',
  tag: 'must be a tag, like "latest" or "v1.2"',
  digest: 'must be "sha256:" and 64 lower-case hex digits, or "sha512:" and 128',
  env: 'keys must begin with a letter or "_" and have at most 128 letters, digits, "_", "." and "-"',
  cpu_limit: 'must be a number of CPUs with one to three decimals, like "0.5"',
  mem_limit: 'must be a whole number of bytes, or one with k, m or g, like "256m"',
};
const host = 'is not a host in an allocated region';
const KiB = 1024;

/**
 * A field's value in a body that is right otherwise, and the faults it must have; none where it is
 * right.
 */
const table: readonly (readonly [field: string, value: unknown, faults: readonly string[]])[] = [
  ['name', 'web', []],
  ['name', 'A.b_c-1', []],
  ['name', 'a'.repeat(63), []],
  ['name', undefined, ["can't be blank"]],
  ['name', null, ["can't be blank"]],
  ['name', '', ["can't be blank"]],
  ['name', '  ', ["can't be blank"]],
  ['name', 7, ['must be a string']],
  ['name', {}, ['must be a string']],
  ['name', 'a'.repeat(64), ['must be at most 63 characters']],
  ['name', '-web', [form.name]],
  ['name', 'we b', [form.name]],
  ['name', 'web\n', [form.name]],
  ['name', 'wéb', [form.name]],

  ['host_key', null, []],
  ['host_key', 'host-1', []],
  ['host_key', 7, ['must be a string']],
  ['host_key', '', [host]],
  ['host_key', 'Host_1', [host]],
  ['host_key', 'h.>', [host]],
  ['host_key', 'h'.repeat(64), [host]],

  ['registry', null, []],
  ['registry', 'docker.io', []],
  ['registry', 'localhost:5000', []],
  ['registry', '[::1]:5000', []],
  ['registry', 'ghcr.io/', [form.registry]],
  ['registry', '', [form.registry]],
  ['registry', 'a:99999', [form.registry]],
  ['registry', 'a:0', [form.registry]],
  ['registry', 'http://a', [form.registry]],
  ['registry', `${'a'.repeat(256)}`, ['must be at most 255 characters']],
  ['registry', 1, ['must be a string']],

  ['repository', null, []],
  ['repository', 'library/nginx', []],
  ['repository', 'a__b/c-d.e', []],
  ['repository', '', [form.repository]],
  ['repository', 'Nginx', [form.repository]],
  ['repository', 'a//b', [form.repository]],
  ['repository', '../etc', [form.repository]],
  ['repository', 'a:b', [form.repository]],
  ['repository', 'a'.repeat(256), ['must be at most 255 characters']],

  ['tag', null, []],
  ['tag', 'v1.2_3-x', []],
  ['tag', '', [form.tag]],
  ['tag', '.x', [form.tag]],
  ['tag', 'a'.repeat(128), []],
  ['tag', 'a'.repeat(129), ['must be at most 128 characters']],
  ['tag', [], ['must be a string']],

  ['digest', null, []],
  ['digest', `sha256:${hex(64)}`, []],
  ['digest', `sha512:${hex(128)}`, []],
  ['digest', `sha256:${hex(63)}`, [form.digest]],
  ['digest', `sha256:${'A'.repeat(64)}`, [form.digest]],
  ['digest', `md5:${hex(32)}`, [form.digest]],

  ['env', null, []],
  ['env', {}, []],
  ['env', { A: '', _b: 'x', 'a.b-c': '1' }, []],
  ['env', keysOf(200), []],
  ['env', keysOf(201), ['must be at most 200 keys']],
  ['env', [], ['must be a map of strings']],
  ['env', 'A=b', ['must be a map of strings']],
  ['env', { '1A': 'x' }, [form.env]],
  ['env', { '': 'x' }, [form.env]],
  ['env', { 'A=B': 'x' }, [form.env]],
  ['env', { ['A'.repeat(129)]: 'x' }, [form.env]],
  ['env', { A: 1, B: null, C: {} }, ['values must be strings']],
  ['env', { A: 'a\0b' }, ["values can't contain NUL"]],
  ['env', { A: '\ud800' }, ['values must be valid Unicode']],
  ['env', { A: '😀\n\t' }, []],
  ['env', { A: 'a'.repeat(32 * KiB) }, []],
  ['env', { A: 'a'.repeat(32 * KiB + 1) }, ['values must be at most 32768 bytes']],
  ['env', { A: 'é'.repeat(16 * KiB + 1) }, ['values must be at most 32768 bytes']],
  ['env', { A: 'a'.repeat(32 * KiB), B: 'b'.repeat(32 * KiB) }, []],
  ['env', { A: 'a'.repeat(32 * KiB), B: 'b'.repeat(32 * KiB), C: 'c' }, ['must be at most 65536 bytes in all']],
  ['env', { '1': 1, B: '\0' }, [form.env, 'values must be strings', "values can't contain NUL"]],

  ['ports', null, []],
  ['ports', [], []],
  ['ports', [80, '443/tcp', '53/udp', '53/tcp', 65535, '8080'], []],
  ['ports', Array.from({ length: 50 }, (_, at) => at + 1), []],
  ['ports', Array.from({ length: 51 }, (_, at) => at + 1), ['must be at most 50 ports']],
  ['ports', '80', ['must be a list']],
  ['ports', { '80': 8080 }, ['host bindings are not allowed']],
  ['ports', ['8080:80'], ['host bindings are not allowed']],
  ['ports', ['127.0.0.1:8080:80/tcp'], ['host bindings are not allowed']],
  ['ports', [{ host: 80, container: 80 }], ['host bindings are not allowed']],
  ['ports', [{}, '1:2', '8080:80'], ['host bindings are not allowed']],
  ['ports', [80, 80], ['must be distinct']],
  ['ports', [80, '80/tcp'], ['must be distinct']],
  ['ports', ['80', '80/tcp'], ['must be distinct']],
  ['ports', ['80/udp', 80], []],
  ['ports', [0], [portFault]],
  ['ports', [65536], [portFault]],
  ['ports', [-1], [portFault]],
  ['ports', [1.5], [portFault]],
  ['ports', [1e21], [portFault]],
  ['ports', [null], [portFault]],
  ['ports', [true], [portFault]],
  ['ports', [[80]], [portFault]],
  ['ports', ['65536/tcp'], [portFault]],
  ['ports', ['080'], [portFault]],
  ['ports', ['80/sctp'], [portFault]],
  ['ports', ['80-90'], [portFault]],
  ['ports', ['80/tcp\n'], [portFault]],
  ['ports', [0, '1:2', 80, 80], [portFault, 'host bindings are not allowed', 'must be distinct']],

  ['cpu_limit', null, []],
  ['cpu_limit', '0.5', []],
  ['cpu_limit', '999.999', []],
  ['cpu_limit', '0.0', ['must be greater than 0']],
  ['cpu_limit', '000.000', ['must be greater than 0']],
  ['cpu_limit', 0.5, ['must be a string']],
  ['cpu_limit', '1', [form.cpu_limit]],
  ['cpu_limit', '1.', [form.cpu_limit]],
  ['cpu_limit', '-1.0', [form.cpu_limit]],
  ['cpu_limit', '1.0000', [form.cpu_limit]],
  ['cpu_limit', '1e1', [form.cpu_limit]],

  ['mem_limit', null, []],
  ['mem_limit', '6m', []],
  ['mem_limit', '6M', []],
  ['mem_limit', '16384g', []],
  ['mem_limit', '6291456', []],
  ['mem_limit', '6291455', ['must be between 6m and 16384g']],
  ['mem_limit', '5m', ['must be between 6m and 16384g']],
  ['mem_limit', '16385g', ['must be between 6m and 16384g']],
  ['mem_limit', '9'.repeat(31), ['must be between 6m and 16384g']],
  ['mem_limit', '9'.repeat(400), [form.mem_limit]],
  ['mem_limit', '0m', [form.mem_limit]],
  ['mem_limit', '256mb', [form.mem_limit]],
  ['mem_limit', '1.5g', [form.mem_limit]],
  ['mem_limit', 256, ['must be a string']],
];

for (const [field, value, faults] of table) {
  const body: Record<string, unknown> = { name: 'web', [field]: value };
  const valid = validateCreate(JSON.parse(JSON.stringify(body)));
  const said = JSON.stringify(value)?.slice(0, 60) ?? 'absent';
  t.same(valid.ok ? {} : valid.faults, faults.length === 0 ? {} : { [field]: faults }, `${field}: ${said}`);
}

t.test('an update has the rules of a create for each field that it names', async (t) => {
  for (const [field, value, faults] of table) {
    if (field === 'name' || field === 'host_key' || value === undefined) continue;
    const body: unknown = JSON.parse(JSON.stringify({ [field]: value }));
    const valid = validateUpdate(body);
    const said = `${field}: ${JSON.stringify(value).slice(0, 60)}`;
    t.same(valid, faults.length === 0 ? { ok: true, value: body } : { ok: false, faults: { [field]: faults } }, said);
  }
  t.same(validateUpdate({ env: { A: null } }), { ok: true, value: { env: { A: null } } }, 'a key to remove');
  t.match(validateUpdate({ env: { A: null, '1': null } }), { faults: { env: [form.env] } });
  t.match(validateUpdate({ name: 'x', status: 'running', host_key: null }), {
    faults: { name: [/can't be changed: registry, /], status: [/can't/], host_key: [/can't/] },
  });
  for (const name of [...Object.getOwnPropertyNames(Object.prototype), '__proto__']) {
    const valid = validateUpdate(JSON.parse(`{"${name}": null}`));
    t.same(valid.ok ? [] : Object.keys(valid.faults), [name]);
  }
  for (const body of [null, [], 'x']) t.same(validateUpdate(body), { ok: false, faults: { _: ['must be an object'] } });
});

const specOf = (body: unknown): ContainerSpec => {
  const valid = validateCreate(body);
  if (!valid.ok) throw new Error(JSON.stringify(valid.faults));
  return valid.value;
};

t.test('a body that is no object', async (t) => {
  for (const body of [null, [], 'x', 7, true]) {
    t.same(validateCreate(body), { ok: false, faults: { _: ['must be an object'] } });
  }
});

t.test('all faults at once, each under its own field', async (t) => {
  const valid = validateCreate({
    name: '',
    host_key: 1,
    registry: '!',
    repository: '!',
    tag: '!',
    digest: '!',
    env: 1,
    ports: 1,
    cpu_limit: '!',
    mem_limit: '!',
  });
  t.equal(valid.ok, false);
  if (!valid.ok) t.equal(Object.keys(valid.faults).length, 10);
});

t.test('defaults', async (t) => {
  t.same(specOf({ name: 'web' }), {
    name: 'web',
    host_key: null,
    registry: 'docker.io',
    repository: null,
    tag: 'latest',
    digest: null,
    pull_policy: 'always',
    ports: [],
    env: {},
    cpu_limit: '0.5',
    mem_limit: '256m',
  });
});

t.test('pull policy: what may move is asked for, what is named exactly is not', async (t) => {
  const digest = `sha256:${hex(64)}`;
  t.match(specOf({ name: 'w', tag: 'latest' }), { pull_policy: 'always' });
  t.match(specOf({ name: 'w', tag: '1' }), { pull_policy: 'if_not_present' });
  t.match(specOf({ name: 'w', digest }), { pull_policy: 'if_not_present', tag: null, digest });
  t.match(specOf({ name: 'w', digest, tag: 'latest' }), { pull_policy: 'if_not_present', tag: 'latest' });
  t.match(specOf({ name: 'w', pull_policy: 'never' }), { pull_policy: 'always' });
});

t.test('every other key is ignored, whatever its value; keys of Object.prototype harm nothing', async (t) => {
  const plain = specOf({ name: 'web' });
  const odd = JSON.parse(
    '{"name":"web","status":7,"tenant_id":{},"id":[],"__proto__":{"registry":"!"},"constructor":1,"toString":null}',
  ) as unknown;
  t.same(specOf(odd), plain);
  t.same(specOf(JSON.parse('{"name":"other","name":"web"}')), plain, 'the last of two equal keys counts');
  const env = JSON.parse('{"name":"web","env":{"__proto__":"a","constructor":"b"}}') as unknown;
  t.equal(JSON.stringify(specOf(env).env), '{"__proto__":"a","constructor":"b"}');
});

t.test('the canonical form of a spec is blind to how it was written', async (t) => {
  const one = specOf({ name: 'w', env: { A: '1', B: '2' }, tag: null });
  const other = specOf({ env: { B: '2', A: '1' }, name: 'w', tag: 'latest', status: 'x' });
  t.equal(canonicalSpec(one), canonicalSpec(other));
  t.not(canonicalSpec(one), canonicalSpec(specOf({ name: 'w', env: { A: '1', B: '3' } })));
});

t.test('labels and project: in a create, and by themselves', async (t) => {
  const keys =
    'keys must have at most 63 letters, digits, ".", "_", "/" and "-", and begin and end with a letter or digit';
  const rows: readonly (readonly [labels: unknown, faults: Readonly<Record<string, readonly string[]>>])[] = [
    [{}, {}],
    [{ team: 'web', 'example.com/tier': '', ['k'.repeat(63)]: 'v'.repeat(256) }, {}],
    [{ '-a': '' }, { '-a': [keys] }],
    [
      { a_: '', ['k'.repeat(64)]: '', '': '' },
      { a_: [keys], ['k'.repeat(64)]: [keys], '': [keys] },
    ],
    [{ 'longshore.host': 'x' }, { 'longshore.host': ['keys that begin with "longshore." are the platform\'s'] }],
    [
      { a: 1, b: null },
      { a: ['values must be strings'], b: ['values must be strings'] },
    ],
    [{ a: 'é'.repeat(129) }, { a: ['values must be at most 256 bytes'] }],
    [{ a: '\0' }, { a: ["values can't contain NUL"] }],
    [keysOf(65), { _: ['must be at most 64 keys'] }],
  ];
  for (const [labels, faults] of rows) {
    const body: unknown = JSON.parse(JSON.stringify(labels));
    const isRight = Object.keys(faults).length === 0;
    t.same(validateField('labels')(body), isRight ? { ok: true, value: body } : { ok: false, faults });
    const created = validateCreate({ name: 'web', labels: body });
    t.same(created.ok ? {} : created.faults, isRight ? {} : { labels: [...new Set(Object.values(faults).flat())] });
  }
  t.same(validateField('labels')(['a']), { ok: false, faults: { _: ['must be an object'] } });
  t.match(validateCreate({ name: 'web', labels: ['a'] }), { faults: { labels: ['must be a map of strings'] } });
  const { labels } = specOf({ name: 'web', labels: { a: 'b' } });
  t.same(labels, { a: 'b' });
  t.notOk('labels' in specOf({ name: 'web', labels: {} }), 'the default is neither stored nor sent');
  for (const project of ['a', '1', 'shop-1', 'p'.repeat(63)])
    t.equal(specOf({ name: 'web', project }).project, project);
  for (const project of ['', 'a b', 'shop_1', 'Shop', 'a.b', '-a', 'a-', 'p'.repeat(64)])
    t.match(validateCreate({ name: 'web', project }), { faults: { project: [/^must be a DNS label/] } }, project);
  t.notOk('project' in specOf({ name: 'web', project: null }));
  t.match(validateUpdate({ labels: {} }), { faults: { labels: [/can't be changed/] } });
  t.same(validateLabelsPatch({ a: 'b', c: null }), { ok: true, value: { a: 'b', c: null } });
  t.same(validateLabelsPatch({ '-a': null, b: 1 }), {
    ok: false,
    faults: { '-a': [keys], b: ['values must be strings'] },
  });
  t.same(validateLabelsPatch(null), { ok: false, faults: { _: ['must be an object'] } });
  const text = (labels: object): string => canonicalSpec(specOf({ name: 'web', labels }));
  t.equal(text({ a: '1', b: '2' }), text({ b: '2', a: '1' }));
  t.not(text({ a: '1' }), text({ a: '2' }));
  t.equal(
    text({}),
    '["web",null,"docker.io",null,"latest",null,"always",[],[],"0.5","256m"]',
    'as in the last release',
  );
});

t.test('any JSON: a spec of eleven fields, or faults with words', async (t) => {
  const fieldNames = table.map(([field]) => field);
  const likely = fc.dictionary(fc.constantFrom(...fieldNames, '__proto__', 'x'), fc.jsonValue());
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), likely), (body) => {
      const valid = validateCreate(JSON.parse(JSON.stringify(body)));
      if (valid.ok) {
        t.equal(Object.keys(valid.value).length, 11);
        // An accepted body with its defaults filled in is accepted again.
        t.same(validateCreate(JSON.parse(JSON.stringify(valid.value))), valid);
        return;
      }
      for (const messages of Object.values(valid.faults)) if (messages.length === 0) throw new Error('no words');
    }),
    { numRuns: 2000 },
  );
});
