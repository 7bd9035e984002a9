import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { readFiles, type Read } from '../../../../cli/apply/file/read.ts';
import { schemaText } from '../../../../cli/apply/file/schema.ts';
import { textOfRemark } from '../../../../cli/apply/file/tree.ts';
import { limits } from '../../../../schemas/limits.ts';
import { temporaryFolder } from '../../../support/folder.ts';

const { signal } = new AbortController();

/** Reads texts as files of one folder. */
async function read(
  t: Test,
  texts: readonly string[],
  env: NodeJS.ProcessEnv = {},
  others: Record<string, string> = {},
) {
  const folder = temporaryFolder(t);
  for (const [name, text] of Object.entries(others)) writeFileSync(join(folder, name), text);
  const paths = texts.map((text, at) => {
    const path = join(folder, `${at}.yml`);
    writeFileSync(path, text);
    return path;
  });
  const result = await readFiles(paths, { env, stdin: process.stdin, signal });
  const lines = (remarks: Read['faults']): string[] =>
    remarks.map((remark) => textOfRemark(remark).replaceAll(`${folder}/`, ''));
  return { ...result, faults: lines(result.faults), warnings: lines(result.warnings) };
}

t.test('every default is filled in, and texts stay as they are written', async (t) => {
  const text = `
name: shop
containers:
  web:
    image: ghcr.io/acme/web@sha256:${'a'.repeat(64)}
    env: &env { RATIO: 1.10, ON: true, N: 0x10, TEXT: "\${TAG:-1}" }
    policy: { health: { http: { port: 80 } } }
    labels: { tier: 1.10 }
    secrets: { files: { /a: { secret: key, mode: 0440 }, /b: { secret: key, mode: 0o400 }, /c: { secret: key } } }
  db: { image: postgres, cpu_limit: 1, mem_limit: 64Mi, env: { <<: *env, N: 2 } }
secrets: { key: { value_from: { file: key } } }
`;
  const { wanted, faults, values } = await read(t, [text], { TAG: '7' }, { key: 'bytes\n' });
  t.same(faults, []);
  const [web, db] = wanted?.containers ?? [];
  t.match(web, {
    host: undefined,
    document: {
      project: 'shop',
      labels: { tier: '1.10' },
      image: { registry: 'ghcr.io', repository: 'acme/web', tag: null, digest: /^sha256:a/ },
      env: { RATIO: '1.10', ON: 'true', N: '0x10', TEXT: '7' },
      ports: [],
      cpu_limit: '0.5',
      mem_limit: '256m',
      process: {},
      policy: {
        restart: 'always',
        stop_grace_seconds: 10,
        stop_signal: 'SIGTERM',
        health: { http: { port: 80, path: '/' }, interval: 10, restart_unhealthy: false },
      },
      secrets: { env: {}, files: { '/a': { mode: 0o440, uid: 0 }, '/b': { mode: 0o400 }, '/c': { mode: 0o400 } } },
    },
  });
  t.match(db?.document, {
    image: { tag: 'latest' },
    cpu_limit: '1.0',
    mem_limit: '64m',
    env: { RATIO: '1.10', N: '2' },
  });
  t.equal(values.secrets.get('key')?.toString(), 'bytes\n', 'byte for byte');
});

t.test('the process of a container, as in the API, with texts as they are written', async (t) => {
  const process = `
    command: [worker, --threads, 4]
    user: 1000
    tmpfs: { /tmp: 64MiB, /run: 1.5k }
    shm_size: 0.5g
    init: true
    read_only: false
    ulimits: { nofile: 1024, nproc: "64:128" }`;
  const { wanted, faults } = await read(t, [`containers:\n  web:\n   image: web\n   process:${process}`]);
  t.same(faults, []);
  t.same(wanted?.containers[0]?.document.process, {
    command: ['worker', '--threads', '4'],
    user: '1000',
    tmpfs: { '/tmp': '64m', '/run': '1536' },
    shm_size: '512m',
    init: true,
    ulimits: { nofile: '1024', nproc: '64:128' },
  });
  const wrong = `{command: worker, usr: a, working_dir: here, init: maybe, ulimits: {core: 1}}`;
  const refused = await read(t, [`containers: {web: {image: web, process: ${wrong}}}`]);
  t.match(refused.faults, [
    /process\.command: must be/,
    /process\.usr: is not known: did you mean "user"\?/,
    /process\.init: must be/,
  ]);
  const values = await read(t, ['containers: {web: {image: web, process: {working_dir: here, ulimits: {core: 1}}}}']);
  t.match(values.faults, [
    /process\.working_dir: must be an absolute path/,
    /process\.ulimits\.core: keys can't be set|process\.ulimits\.core: can't be set: data, fsize/,
  ]);
});

t.test('all faults at once, with their places and the names that were meant', async (t) => {
  const rows: readonly (readonly [text: string, faults: readonly string[]])[] = [
    ['a: [', ['0.yml:1:5: Flow sequence in block collection must be sufficiently indented and end with a ]']],
    ['containers: {web: {image: a}, web: {image: b}}', ['0.yml:1:31: Map keys must be unique']],
    ['[]', ['0.yml:1:1: must be an object']],
    ['', ['0.yml:1:1: must be an object']],
    [
      'contaners: {}\nsecrets:\n  a: {valu: x}\n',
      [
        '0.yml:1:1: contaners: is not known: did you mean "containers"?',
        '0.yml:3:7: secrets.a.valu: is not known: did you mean "value"?',
      ],
    ],
    [
      'containers:\n  web:\n    environment: {A: 1}\n    ports: ["80:80"]\n    policy: {restart: sometimes}\n',
      [
        `0.yml:2:3: containers.web.image: can't be blank`,
        '0.yml:3:5: containers.web.environment: is not known: did you mean "env"?',
        `0.yml:4:13: containers.web.ports.0: must be a port like 8080 or 53/udp; the host's port can't be chosen`,
        '0.yml:5:14: containers.web.policy.restart: must be one of always, on_failure, never',
      ],
    ],
    [
      `containers:
  "a b": {image: a}
  web:
    image: UPPER
    env: {"A B": 1, LONGSHORE_APPLY: x}
    ports: [80, 80/tcp, 99999/udp]
    cpu_limit: 0.0
    mem_limit: 1m
    policy: {health: {retries: 1}}
    secrets: {files: {a: {secret: x}}}
`,
      [
        '0.yml:2:3: containers.a b: the name must begin with a letter or digit and have at most 63 letters, digits, "_", "." and "-"',
        '0.yml:4:12: containers.web.image: its repository "library/UPPER" is not valid',
        '0.yml:5:18: containers.web.env.A B: keys must begin with a letter or "_" and have at most 128 letters, digits, "_", "." and "-"',
        '0.yml:5:38: containers.web.env.LONGSHORE_APPLY: is the mark of an earlier release: leave it out',
        '0.yml:6:17: containers.web.ports.1: must be distinct',
        '0.yml:6:25: containers.web.ports.2: must be integers from 1 to 65535, or strings like "53/udp"',
        '0.yml:7:16: containers.web.cpu_limit: must be greater than 0',
        '0.yml:8:16: containers.web.mem_limit: must be between 6m and 16384g',
        '0.yml:9:14: containers.web.policy.health: must have one of command, http, tcp and none',
        '0.yml:10:23: containers.web.secrets.files.a: the path must be absolute',
      ],
    ],
    [
      'secrets:\n  a: {value_from: {env: NONE}}\n  b: {value_from: {file: none, env: A}}\n  c: {}\n  d: {value_from: {file: none}}\n',
      [
        '0.yml:2:3: secrets.a: the variable NONE is not set: set it to the value',
        '0.yml:3:7: secrets.b.value_from: give one of env and file',
        '0.yml:3:3: secrets.b: the variable A is not set: set it to the value',
        '0.yml:4:3: secrets.c: give one of value and value_from',
      ],
    ],
    [
      'containers: {web: {image: "$NONE"}}',
      ['0.yml:1:27: the variable NONE is not set: set it, or write ${NONE:-default}'],
    ],
  ];
  for (const [text, faults] of rows) {
    const found = await read(t, [text]);
    for (const fault of faults)
      t.ok(
        found.faults.some((one) => one.startsWith(fault)),
        `${fault} in ${found.faults.join('\n')}`,
      );
    t.equal(found.wanted, undefined, text);
  }
});

t.test('values: warnings, bounds, and no value in a message', async (t) => {
  const text = 'secrets: {a: {value: hidden}}\nregistries: {ghcr.io: {username: ci, password_from: {env: P}}}';
  const { warnings, faults, values } = await read(t, [text], { P: 'of ci\n' });
  t.same(faults, []);
  t.same(warnings, [
    '0.yml:1:22: secrets.a.value: who reads the file knows it: better give value_from with env or file',
  ]);
  t.equal(values.registries.get('ghcr.io')?.toString(), 'of ci');
  const large = await read(t, ['secrets: {a: {value_from: {env: A}}}'], { A: 'x'.repeat(limits.secretBytes + 1) });
  t.match(large.faults, [/its value must be at most 65536 bytes$/]);
  t.match((await read(t, ['secrets: {a: {value_from: {env: A}}}'], { A: '' })).faults, [/its value is empty/]);
});

t.test('several files are one, and declare nothing twice', async (t) => {
  const one = 'name: one\ncontainers: {web: {image: a}}\nremoved: {secrets: [old]}';
  const two = 'name: two\ncontainers: {db: {image: a}}\nsecrets: {s: {value: x}}';
  const { wanted } = await read(t, [one, two]);
  t.match(wanted, { projects: ['one', 'two'], removed: { secrets: ['old'] } });
  t.same(
    wanted?.containers.map(({ name, document: { project } }) => [name, project]),
    [
      ['web', 'one'],
      ['db', 'two'],
    ],
  );
  t.match((await read(t, [one, one])).faults, ['1.yml:2:14: containers.web: is declared twice']);
  const both = 'secrets: {old: {value: x}}';
  t.match((await read(t, [one, both])).faults, [
    /^1\.yml:1:\d+: secrets\.old: is declared, and "removed" names it too/,
  ]);
});

t.test('options for Compose files alone', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'longshore.yml');
  writeFileSync(path, 'containers: {}');
  for (const options of [{ project: 'shop' }, { ignore: ['command'] }])
    await t.rejects(readFiles([path], { env: {}, stdin: process.stdin, signal }, options), {
      name: 'WrongUsage',
      message: /is for Compose files, and none of these is one/,
    });
});

t.test('a file that is no file, or too much', async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'folder'));
  for (const name of ['none', 'folder'])
    await t.rejects(
      readFiles([join(folder, name)], { env: {}, stdin: process.stdin, signal }),
      /can't be read: /,
      name,
    );
});

/** Each map merges the one before it twice. */
const merges = (levels: number): string =>
  Array.from({ length: levels }, (_, at) => `m${at + 1}: &m${at + 1} {<<: [*m${at}, *m${at}]}`).join('\n');

const depth = 20_000;
const expands = /^0\.yml:1:1: its aliases expand to more than 100000 values: use fewer$/;
const isDeep = /^0\.yml:1:1: it is nested deeper than 100 levels$/;
const bombs: Readonly<Record<string, readonly [text: string, fault: RegExp]>> = {
  'aliases of lists': [`a: &a [${'x,'.repeat(50)}]\nb: &b [${'*a,'.repeat(50)}]\nc: [${'*b,'.repeat(50)}]`, expands],
  'merges, where texts are kept': [`m0: &m0 {a: 1}\n${merges(40)}\ncontainers: {web: {env: *m40}}`, expands],
  'merges in a Compose file': [`m0: &m0 {a: 1}\n${merges(40)}\nservices: {web: {environment: *m40}}`, expands],
  'a map that merges itself': ['containers: &e {<<: *e}', expands],
  'a list that contains itself': ['containers: &e [*e]', expands],
  'a chain of keys': [`? &k [x]\n: 1\n? [*k]\n: 1`, /^0\.yml:\d:\d: a key must be a text$/],
  'a merge of a text': ['containers: {<<: web}', /^0\.yml:1:18: what "<<" names must be a map, or several$/],
  'a key twice': ['a: 1\na: 2', /^0\.yml:2:1: Map keys must be unique$/],
  'lists in lists': ['['.repeat(depth), isDeep],
  'lists in lists, with dashes': ['- '.repeat(depth), isDeep],
  'maps in maps': [`${'{a: '.repeat(depth)}${'}'.repeat(depth)}`, isDeep],
  'keys in keys': ['? '.repeat(depth), isDeep],
  'variables in variables': [
    `name: "${'${A:-'.repeat(depth)}${'}'.repeat(depth)}"`,
    /^0\.yml:1:7: variables are nested deeper than 16 levels$/,
  ],
};

t.test('a file that would take for ever says what is too much in it', { timeout: 60_000 }, async (t) => {
  for (const [name, [text, fault]] of Object.entries(bombs)) {
    const { faults } = await read(t, [text]);
    t.ok(
      faults.some((one) => fault.test(one)),
      `${name}: ${faults[0]}`,
    );
  }
  const many = `x: &x 1\nremoved: {secrets: [${'*x,'.repeat(5_000)}]}`;
  t.ok((await read(t, [many])).faults.length > 0, 'as many aliases as there may be');
  const doubles = Array.from({ length: 40 }, (_, at) => `A${at + 1}=$A${at}$A${at}`).join('\n');
  const env = { '.env': `A0=x\n${doubles}` };
  const compose = 'services: {web: {image: web}}';
  await t.rejects(read(t, [compose], {}, env), /\.env: line \d+: its variables are longer than 1048576 characters/);
});

t.test('merges and aliases mean what YAML says', async (t) => {
  const text = `
name: shop
containers:
  one: &one { image: 'a:1', env: &env { A: 1, B: 2.0 }, cpu_limit: 1 }
  two: { env: { B: 3, <<: *env, __proto__: 4 }, <<: *one, cpu_limit: 2 }
  three: { <<: [{ image: 'b:1' }, *one], ports: [80] }
`;
  const { wanted, faults } = await read(t, [text]);
  t.same(faults, []);
  const declared = wanted?.containers.map(({ document: { image, env, cpu_limit, ports } }) => ({
    repository: image.repository,
    env: Object.entries(env).sort().join(' '),
    cpu_limit,
    ports,
  }));
  t.same(declared, [
    { repository: 'library/a', env: 'A,1 B,2.0', cpu_limit: '1.0', ports: [] },
    { repository: 'library/a', env: 'A,1 B,3 __proto__,4', cpu_limit: '2.0', ports: [] },
    { repository: 'library/b', env: 'A,1 B,2.0', cpu_limit: '1.0', ports: [80] },
  ]);
});

t.test('the schema for editors takes what apply takes', async (t) => {
  const check = new Ajv2020({ strict: false, formats: { 'date-time': true } }).compile(
    JSON.parse(schemaText()) as object,
  );
  t.ok(check({ name: 'a', containers: { web: { image: 'a', env: { N: 1, B: true }, cpu_limit: 0.5 } } }));
  t.notOk(check({ containers: { web: { imge: 'a' } } }));
  t.notOk(check({ containers: { web: { image: 'a', ports: ['80:80'] } } }));
});

t.test('more faults than a call takes arguments', async (t) => {
  const { faults } = await read(t, ['a: b\n'.repeat(150_000)]);
  t.equal(faults.length, 149_999);
});

t.test('the token of a person is no value, wherever a file asks for it', async (t) => {
  const token = `eyJ.${'x'.repeat(40)}.y`;
  const folder = temporaryFolder(t);
  const config = join(folder, 'config.json');
  const profiles = { one: { server: 'http://a', token: 'a-token-of-a-profile' } };
  writeFileSync(config, JSON.stringify({ current: 'one', profiles }), { mode: 0o600 });
  const env = {
    LONGSHORE_CONFIG: config,
    LONGSHORE_TOKEN: token,
    OTHER: `Bearer ${token}`,
    ONE: 'a-token-of-a-profile',
  };
  const refused = /has the token that you sign in with: create another for it/;
  const web = (more: object): object => ({ containers: { web: { image: 'web:1', ...more } } });
  for (const file of [
    { secrets: { stolen: { value_from: { env: 'LONGSHORE_TOKEN' } } } },
    { secrets: { stolen: { value_from: { env: 'ONE' } } } },
    { secrets: { stolen: { value_from: { file: config } } } },
    { secrets: { stolen: { value: '${OTHER}' } } },
    { registries: { 'r.example.com': { username: 'u', password_from: { env: 'LONGSHORE_TOKEN' } } } },
    { registries: { 'r.example.com': { username: '${ONE}', password: 'x' } } },
    web({ env: { A: 'b${LONGSHORE_TOKEN}' } }),
    web({ policy: { health: { http: { port: 80, path: '/${ONE}' } } } }),
    { services: { web: { image: 'web', environment: ['LONGSHORE_TOKEN'] } } },
    { services: { web: { image: 'web', env_file: '.env' } } },
  ]) {
    const text = JSON.stringify(file);
    const { faults } = await read(t, [text], env, { '.env': 'A=$LONGSHORE_TOKEN' });
    t.ok(
      faults.some((fault) => refused.test(fault)),
      `${text}: ${faults.join()}`,
    );
    t.notMatch(faults.join(), token);
  }
  t.same((await read(t, [JSON.stringify(web({ env: { A: '${B:-x}' } }))], env)).faults, []);
});

t.test('files outside of the folder of a file are named', async (t) => {
  const outside = join(temporaryFolder(t), 'key');
  writeFileSync(outside, 'k', { mode: 0o600 });
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'in'));
  symlinkSync(outside, join(folder, 'link'));
  writeFileSync(join(folder, 'in', 'key'), 'k');
  const warningsOf = async (file: object): Promise<string[]> => {
    const path = join(folder, 'it.yml');
    writeFileSync(path, JSON.stringify(file));
    const { warnings, faults } = await readFiles([path], { env: {}, stdin: process.stdin, signal });
    t.same(faults, []);
    return warnings.map(({ message }) => message);
  };
  const secret = (file: string): object => ({ secrets: { a: { value_from: { file } } } });
  for (const file of [outside, '../'.repeat(9) + outside.slice(1), 'link'])
    t.match(await warningsOf(secret(file)), [/^reads .* outside of the folder of this file$/], file);
  for (const file of ['in/key', './in/../in/key', join(folder, 'in/key')]) t.same(await warningsOf(secret(file)), []);
  const compose = { services: { web: { image: 'web', env_file: { path: 'link', format: 'raw' } } } };
  writeFileSync(outside, 'A=b');
  t.match(await warningsOf(compose), [/^reads .* outside of the folder of this file$/]);
});
