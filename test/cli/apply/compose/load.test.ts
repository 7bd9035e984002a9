import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { projectIn } from '../../../../cli/apply/compose/project.ts';
import { readFiles, readText, type ReadOptions } from '../../../../cli/apply/file/read.ts';
import { textOfRemark } from '../../../../cli/apply/file/tree.ts';
import { resolveValues } from '../../../../cli/apply/file/values.ts';
import { limits } from '../../../../schemas/limits.ts';
import { temporaryFolder } from '../../../support/folder.ts';

type Files = Readonly<Record<string, string>>;

function folderOf(t: Test, files: Files): string {
  const folder = join(temporaryFolder(t), 'shop');
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  return folder;
}

/** Reads `compose.yml` of a folder. */
function read(t: Test, files: Files, env: NodeJS.ProcessEnv = {}, options: ReadOptions = {}) {
  const folder = folderOf(t, files);
  const result = readText('compose.yml', files['compose.yml'] ?? '', { folder, env, ...options });
  const { wanted, valueOf } = result;
  const faults = result.faults.map(textOfRemark);
  const warnings = result.warnings.map(textOfRemark).filter((warning) => !warning.includes('reach each other'));
  const services = Object.fromEntries(wanted?.containers.map((one) => [one.name.replace('shop-', ''), one]) ?? []);
  const envOf = (name: string) => services[name]?.document.env;
  return { folder, wanted, valueOf, faults, warnings, services, envOf };
}

t.test('extends: a service of the same file, which may extend another', (t) => {
  const text = `services:
  base: {image: busybox, environment: {TZ: utc, PORT: 80}, ports: [80], restart: always}
  common: {extends: {service: base}, image: common, environment: [MORE=1, UNSET]}
  cli:
    extends: common
    environment: {PORT: 8080, OWN: 1.10}
    ports: ["80:80", 81]
`;
  const { faults, services, envOf } = read(t, { 'compose.yml': text });
  t.same(faults, []);
  t.match(services['cli'], {
    document: { image: { repository: 'library/common' }, ports: [80, 81], policy: { restart: 'always' } },
  });
  t.same(envOf('cli'), { TZ: 'utc', PORT: '8080', MORE: '1', OWN: '1.10' });
  t.same(envOf('common'), { TZ: 'utc', PORT: '80', MORE: '1' });
  t.same(envOf('base'), { TZ: 'utc', PORT: '80' });
  t.end();
});

t.test('extends: a service of another file, whose paths and services are its own', (t) => {
  const { faults, warnings, services, envOf } = read(
    t,
    {
      'compose.yml': 'services: {web: {extends: {file: common/base.yml, service: web}, env_file: own.env}}',
      'common/base.yml': `services:
  web: {extends: {file: deep/more.yml, service: root}, env_file: [base.env], environment: {A: "$A"}}
  other: {image: not-this}
`,
      'common/deep/more.yml': 'services: {root: {image: root, env_file: {path: root.env}, healthcheck: {test: a}}}',
      'common/base.env': 'FROM=base\nBASE=1',
      'common/deep/root.env': 'FROM=root\nROOT=1',
      'own.env': 'OWN=1',
    },
    { A: 'shell' },
  );
  t.same([faults, warnings], [[], []]);
  t.same(Object.keys(services), ['web'], 'no other services');
  t.match(services['web'], { document: { image: { repository: 'library/root' }, policy: { health: { retries: 3 } } } });
  t.same(envOf('web'), { FROM: 'base', BASE: '1', ROOT: '1', OWN: '1', A: 'shell' });
  t.end();
});

t.test('values that a service takes over are merged by the rules of their keys', (t) => {
  const text = `services:
  base:
    image: a
    env_file: a.env
    environment: {A: 1, B: 2}
    labels: [x=1, y]
    depends_on: [db]
    secrets: [s]
    healthcheck: {test: [CMD, old], interval: 5s, retries: 2}
    deploy: {resources: {limits: {cpus: 1}}}
    profiles: [one]
  web:
    extends: base
    env_file: [{path: b.env}, a.env]
    environment: [B=3, A]
    labels: {y: 2}
    depends_on: {db: {condition: service_completed_successfully}, cache: }
    secrets: [{source: other, target: s}]
    healthcheck: {test: [CMD, new, "1"], retries: 4}
    deploy: {resources: {limits: {memory: 64m}}}
    profiles: [two]
    image: null
  db: {image: db}
  cache: {image: cache}
secrets: {s: {environment: S}, other: {environment: S}}
`;
  const files = { 'compose.yml': text, 'a.env': 'E=a\nF=a', 'b.env': 'E=b' };
  const { faults, services, wanted, envOf } = read(t, files, { COMPOSE_PROFILES: 'two' });
  t.same(faults, []);
  t.match(services['web'], {
    document: {
      image: { repository: 'library/a' },
      labels: { x: '1', y: '2' },
      cpu_limit: '1.0',
      mem_limit: '64m',
      policy: { health: { command: ['new', '1'], interval: 5, retries: 4 } },
      secrets: { files: { '/run/secrets/s': { secret: 'shop-other' } } },
    },
  });
  t.same(envOf('web'), { E: 'b', F: 'a', B: '3' }, 'of files each once, and a variable that is left unset');
  t.equal(services['db']?.isJob, true);
  t.same(
    wanted?.containers.map(({ name }) => name),
    ['shop-db', 'shop-cache', 'shop-web'],
  );
  t.end();
});

t.test('extends: what is wrong is named where it is', (t) => {
  for (const [body, fault, more = {}] of [
    ['web: {extends: none}', 'compose.yml:1:27: services.web.extends: names "none", which is no service'],
    [
      'web: {extends: {file: b.yml, service: none}}',
      'compose.yml:1:18: services.web.extends: names "none", which is no service of b.yml',
      { 'b.yml': 'services: {a: {image: a}}' },
    ],
    ['web: {extends: {file: none.yml, service: a}}', 'compose.yml:1:18: there is no file none.yml'],
    [
      'web: {extends: {file: "https://example.com/a.yml", service: a}}',
      'compose.yml:1:18: https://example.com/a.yml is not on this machine: Longshore reads no remote files',
    ],
    [
      'web: {extends: {file: b.yml}}',
      'compose.yml:1:18: services.web.extends: must be the name of a service, or a map',
    ],
    ['web: {extends: web}', 'compose.yml:1:27: services.web.extends: goes in a circle'],
    ['web: {extends: b}, b: {extends: web}', 'services.web.extends: goes in a circle'],
    [
      'web: {extends: {file: b.yml, service: a}}',
      'b.yml:2:21: services.web.deploy.resources.limits.cpus: must be a number of CPUs',
      { 'b.yml': 'services: {a: {image: a, deploy: {resources: {limits: {\n              cpus: two}}}}}' },
    ],
    [
      'web: {extends: {file: b.yml, service: a}}',
      'b.yml:1:1: the variable NONE is not set: set it',
      { 'b.yml': '"${NONE:?set it}"' },
    ],
    [
      'web: {extends: {file: b.yml, service: a}}',
      'b.yml:1:18: Map keys must be unique',
      { 'b.yml': 'services: {a: 1, a: 2}' },
    ],
    [
      'web: {extends: b, ports: 80}, b: {image: a, ports: [80]}',
      "compose.yml:1:37: services.web.ports: can't be merged with what it overrides: write both",
    ],
    [
      'web: {extends: b, environment: [{A: 1}]}, b: {image: a, environment: {B: 1}}',
      "compose.yml:1:30: services.web.environment: can't be merged with what it overrides: write both",
    ],
  ] as const) {
    const { faults } = read(t, { 'compose.yml': `services: {${body}}`, ...more });
    t.ok(
      faults.some((one) => one.includes(fault)),
      `${fault} in ${faults.join('\n')}`,
    );
  }
  t.end();
});

t.test('include: services and secrets of another file, with variables of their own', (t) => {
  const { folder, faults, warnings, wanted, valueOf, services, envOf } = read(
    t,
    {
      'compose.yml': `include: [db/compose.yml, {path: [cache/compose.yml, cache/more.yml], env_file: [one.env, two.env]}]
services: {web: {image: "a:$TAG", depends_on: [db], environment: [WHO, TAG]}}
`,
      '.env': 'TAG=main\n',
      'db/compose.yml': `name: not-this
services: {db: {image: "db:$TAG", environment: [WHO, "TAG"], env_file: db.env, secrets: [pw, key]}}
secrets: {pw: {environment: PW}, key: {file: key.txt}}
`,
      'db/.env': 'WHO=db\nTAG=db\nPW=of db\n',
      'db/db.env': 'FILE=1',
      'db/key.txt': 'the key',
      'cache/compose.yml': `services: {cache: {image: "cache:1", environment: {WHO: , A: base}, secrets: [pw2]}}
secrets: {pw2: {environment: PW}}
`,
      'cache/more.yml': 'services: {cache: {environment: {A: more}, image: "cache:$TWO"}}',
      'cache/.env': 'WHO=not-this',
      'one.env': 'WHO=one\nBASE=1\nPW=of cache',
      'two.env': 'TWO=${BASE}2\n',
    },
    {},
  );
  t.same([faults, warnings], [[], []]);
  t.same(
    wanted?.containers.map(({ name, document: { image } }) => [name, image.tag]),
    [
      ['shop-db', 'main'],
      ['shop-web', 'main'],
      ['shop-cache', '12'],
    ],
    'what the including file has wins over what the included one has',
  );
  t.same(envOf('web'), { TAG: 'main' });
  t.same(envOf('db'), { WHO: 'db', TAG: 'main', FILE: '1' });
  t.same(envOf('cache'), { WHO: 'one', A: 'more' });
  t.match(services['db']?.document.secrets.files, { '/run/secrets/pw': { secret: 'shop-pw' } });
  const values = { registries: new Map<string, Buffer>(), secrets: new Map<string, Buffer>() };
  if (wanted !== undefined) resolveValues(wanted, folder, valueOf, values, { faults: [], warnings: [] });
  t.same(
    [...values.secrets].map(([name, value]) => [name, value.toString()]),
    [
      ['shop-pw', 'of db'],
      ['shop-key', 'the key'],
      ['shop-pw2', 'of cache'],
    ],
  );
  t.end();
});

t.test('include: within included files, and with services of the including file over theirs', (t) => {
  const { faults, services, envOf } = read(t, {
    'compose.yml': `include: [{path: a/one.yml, project_directory: .}]
services: {web: {environment: [B=own]}, own: {extends: two}}
`,
    'a/one.yml': 'include: [a/b/two.yml]\nservices: {web: {image: web, environment: {A: 1, B: 1}, env_file: here.env}}',
    'a/b/two.yml': 'services: {two: {image: two}}',
    'here.env': 'C=1',
  });
  t.same(faults, []);
  t.same(envOf('web'), { A: '1', B: 'own', C: '1' });
  t.same(Object.keys(services).sort(), ['own', 'two', 'web']);
  t.equal(services['own']?.document.image.repository, 'library/two');
  t.same(read(t, { 'compose.yml': 'include: [b.yml]', 'b.yml': 'services: {b: {image: b}}' }).faults, [], 'alone');
  t.end();
});

t.test('include: what is wrong is named where it is', (t) => {
  for (const [text, fault, more = {}] of [
    ['include: other.yml', 'compose.yml:1:10: include: must be a list'],
    ['include: [none.yml]', 'compose.yml:1:11: there is no file none.yml'],
    ['include: [oci://example.com/a]', 'compose.yml:1:11: oci://example.com/a is not on this machine'],
    ['include: [{project_directory: .}]', 'compose.yml:1:11: include.0: must be a path, or a map with path'],
    ['include: [{path: b.yml, what: 1}]', 'compose.yml:1:31: include.0.what: is not known', { 'b.yml': '{}' }],
    ['include: [{path: b.yml, env_file: n.env}]', 'compose.yml:1:35: there is no file n.env', { 'b.yml': '{}' }],
    [
      'include: [b.yml]',
      'b.yml:1:11: include.0: goes in a circle: compose.yml → b.yml → compose.yml',
      { 'b.yml': 'include: [compose.yml]' },
    ],
    [
      'include: [b.yml]',
      'b.yml:2:5: services.b.pid: is not supported',
      { 'b.yml': 'services: {b: {image: b,\n    pid: a}}' },
    ],
    ['include: [b.yml]', 'b.yml:1:1: what: is not supported', { 'b.yml': 'what: 1' }],
  ] as const) {
    const { faults } = read(t, { 'compose.yml': `${text}\nservices: {web: {image: a}}`, ...more });
    t.ok(
      faults.some((one) => one.includes(fault)),
      `${fault} in ${faults.join('\n')}`,
    );
  }
  t.end();
});

t.test('files that are merged over another: lists grow, maps are joined, texts and commands replaced', (t) => {
  const over = (text: string, more: Files = {}) => {
    const files = {
      'compose.yml': `name: shop
services:
  web:
    image: web:1
    ports: [80]
    environment: {A: 1, B: 1}
    labels: {x: "1"}
    depends_on: [db]
    healthcheck: {test: [CMD, a], interval: 5s}
    restart: always
  db: {image: db}
`,
      'over.yml': text,
      ...more,
    };
    const folder = folderOf(t, files);
    const { wanted, faults } = readText('compose.yml', files['compose.yml'], {
      folder,
      env: {},
      overrides: [join(folder, 'over.yml')],
    });
    const services = Object.fromEntries(wanted?.containers.map((one) => [one.name.replace('shop-', ''), one]) ?? []);
    return { services, faults: faults.map(textOfRemark).map((line) => line.replace(/^\/.*\//, '')) };
  };
  t.match(
    over(`services:
  web: {image: "web:2", ports: ["53:53/udp"], environment: [B=2], healthcheck: {test: [CMD, b]}, depends_on: {new: {condition: service_healthy}}}
  new: {image: new}
`),
    {
      faults: [],
      services: {
        web: {
          document: {
            image: { tag: '2' },
            ports: [80, '53/udp'],
            env: { A: '1', B: '2' },
            policy: { restart: 'always', health: { command: ['b'], interval: 5 } },
          },
        },
        new: {},
      },
    },
  );
  const reset = over(`services:
  web: {ports: !reset [], environment: {A: !reset null}, labels: !override {y: "2"}, restart: !reset "", healthcheck: !reset {}}
  db: !reset null
`);
  t.match(reset.faults, [/^compose\.yml:8:5: services\.web\.depends_on: names "db", which is no service$/]);
  const replaced = over(`services:
  web: {ports: !override [81], environment: {A: !reset null}, labels: !override {y: "2"}, restart: !reset "", healthcheck: !reset {}, depends_on: !reset []}
  db: !reset null
`);
  t.same(replaced.faults, []);
  t.same(Object.keys(replaced.services), ['web']);
  t.match(replaced.services['web'], {
    document: { ports: [81], env: { B: '1' }, policy: { restart: 'never', health: null } },
  });
  t.same(replaced.services['web']?.document.labels, { y: '2' });
  t.match(over('services: [').faults, [/^over\.yml:1:/]);
  t.match(over('services: {web: {image: {a: b}}}').faults, [/^over\.yml:1:18: services\.web\.image: must be/]);
  t.match(over('services: {web: {pid: a}}').faults, [/^over\.yml:1:18: services\.web\.pid: is not supported/]);
  t.match(over('services: {web: !unknown {}}').faults, [/^over\.yml:1:17: Unresolved tag: !unknown$/]);
  const file = readText('longshore.yml', 'containers: !reset {}', { folder: '/', env: {} });
  t.match(file.faults, [{ message: 'Unresolved tag: !reset' }], 'of Compose files alone');
  t.end();
});

t.test('files outside of the folder are read, and named', (t) => {
  const { faults, warnings } = read(t, {
    'compose.yml': 'include: [../b.yml]\nservices: {a: {extends: {file: ../b.yml, service: b}}}',
    '../b.yml': 'services: {b: {image: b}}',
  });
  t.same(faults, []);
  t.match(warnings, [/^compose\.yml:1:11: reads .*\/b\.yml, which is outside of the folder of this file$/]);
  t.end();
});

t.test('files that name too many files, or too much', (t) => {
  const names = Array.from({ length: limits.applyNamedFiles + 1 }, (_, at) => `f${at}.yml`);
  const many = Object.fromEntries(names.map((name) => [name, '{}']));
  t.match(read(t, { 'compose.yml': `include: [${names.join(', ')}]`, ...many }).faults, [
    /^compose\.yml:1:\d+: is one of more than 64 files: use fewer$/,
  ]);
  const chain = Array.from({ length: 200 }, (_, at) => `  s${at}: {extends: s${at + 1}}`);
  t.match(read(t, { 'compose.yml': `services:\n${chain.join('\n')}\n  s200: {image: a}` }).faults, [
    /services\.s101\.extends: is one of more than 100 in a row/,
  ]);
  const variables = Array.from({ length: 5000 }, (_, at) => `A${at}: 1`).join(', ');
  const services = Array.from({ length: 50 }, (_, at) => `  s${at}: {extends: base}`).join('\n');
  const large = `services:\n  base: {image: a, environment: {${variables}}}\n${services}`;
  t.match(read(t, { 'compose.yml': large }).faults, [/with all that it extends and includes it has more than/]);
  t.end();
});

t.test('the process of a service in two files: commands and limits are replaced, file systems are added', (t) => {
  const web = (body: string): string => `services: {web: {image: web, ${body}}}`;
  const files = {
    'compose.yml': web('command: a b, entrypoint: [c], tmpfs: /a, ulimits: {nofile: 1, nproc: 2}, user: "1"'),
    'over.yml': web('command: null, entrypoint: d, tmpfs: [/b], ulimits: {nofile: {soft: 3, hard: 4}}'),
  };
  const folder = folderOf(t, files);
  const surroundings = { folder, env: {}, overrides: [join(folder, 'over.yml')] };
  const { wanted, faults } = readText('compose.yml', files['compose.yml'], surroundings);
  t.same(faults, []);
  t.same(wanted?.containers[0]?.document.process, {
    entrypoint: ['d'],
    user: '1',
    tmpfs: { '/a': '256m', '/b': '256m' },
    ulimits: { nofile: '3:4', nproc: '2' },
  });
  t.end();
});

t.test('several files of -f are one project, merged in their order', async (t) => {
  const folder = folderOf(t, {
    'compose.yml': 'services: {web: {image: web, ports: [80], environment: {A: 1}, env_file: a.env}}',
    'prod/over.yml': 'name: prod\nservices: {web: {image: "web:2", ports: [81], environment: {A: 2}}, db: {image: db}}',
    'prod/more.yml': 'volumes: {data: }',
    'peers.yml': 'peers: {phone: {}}',
    'a.env': 'B=here',
    'prod/a.env': 'B=there',
  });
  const input = { env: {}, stdin: process.stdin, signal: new AbortController().signal };
  const names = ['compose.yml', 'peers.yml', 'prod/over.yml', 'prod/more.yml'];
  const { wanted, faults } = await readFiles(
    names.map((name) => join(folder, name)),
    input,
  );
  t.same(faults, []);
  t.same(wanted?.projects, ['prod'], 'the last name counts');
  t.same(
    wanted?.containers.map(({ name, document: { image, ports, env } }) => [name, image.tag, ports, env]),
    [
      ['prod-web', '2', [80, 81], { B: 'here', A: '2' }],
      ['prod-db', 'latest', [], {}],
    ],
    'paths are relative to the folder of the first one',
  );
  t.match(wanted?.peers, [{ name: 'phone' }], 'what is no Compose file stands by itself');
});

t.test('the first of several files is the first, also one that has no services', async (t) => {
  const folder = folderOf(t, {
    'net/compose.yml': 'networks: {back: {driver: bridge}}',
    'net/a.env': 'A=here',
    'web/compose.yml': 'services: {web: {image: web, networks: [back], env_file: a.env}}',
    'web/a.env': 'A=there',
    'peers.yml': 'peers: {phone: {}}',
  });
  const input = { env: {}, stdin: process.stdin, signal: new AbortController().signal };
  const [peers, net, web] = ['peers.yml', 'net/compose.yml', 'web/compose.yml'].map((name) => join(folder, name));
  const ofFiles = await readFiles([peers ?? '', net ?? '', web ?? ''], input);
  // As of COMPOSE_FILE.
  const ofVariable = await readFiles([net ?? ''], input, { overrides: [web ?? ''] });
  for (const { wanted, faults } of [ofFiles, ofVariable]) {
    t.same(faults, []);
    t.same(wanted?.projects, ['net']);
    t.match(wanted?.containers, [{ name: 'net-web', document: { env: { A: 'here' } } }]);
  }
  t.match(ofFiles.wanted?.peers, [{ name: 'phone' }]);
  const textsOf = async (name: string): Promise<string[]> => (await readFiles([name], input)).faults.map(textOfRemark);
  t.same(await textsOf(net ?? ''), [
    `${net}:1:1: is a part of a Compose file: give the file that has its services, too`,
  ]);
  writeFileSync(net ?? '', 'volumes: {data: null}\nsecrets: {a: {file: b}}\nx-a: 1');
  t.match(await textsOf(net ?? ''), [/:1:1: is a part of a Compose file/]);
  writeFileSync(net ?? '', 'containers: {web: {image: web}}\nnetworks: {back: null}');
  t.match(await textsOf(net ?? ''), [/:2:1: networks: is not known/]);
});

t.test('several YAML documents of a Compose file are merged, as several files are', async (t) => {
  const text = `---
services: {web: {image: web, environment: {A: "1"}}}
---
name: blog
services:
  web: {environment: {B: "2"}, ports: [80]}
---
`;
  const { wanted, faults } = read(t, { 'compose.yml': text });
  t.same(faults, []);
  t.match(wanted?.containers, [{ name: 'blog-web', document: { env: { A: '1', B: '2' }, ports: [80] } }]);
  const wrong = read(t, { 'compose.yml': `${text}services: {web: {pid: host}}` });
  t.match(wrong.faults, [/^compose\.yml:8:18: services\.web\.pid: is not supported/], 'at its place');
  const broken = read(t, {
    'compose.yml': 'services: {web: {image: web}}\n---\nservices: {web: {image: a, image: b}}',
  });
  t.match(broken.faults, [/^compose\.yml:3:\d+: Map keys must be unique/]);
  const included = read(t, { 'compose.yml': 'include: [b.yml]', 'b.yml': 'services: {}\n---\nservices: {}' });
  t.match(included.faults, [/^b\.yml:2:1: has several YAML documents: write a file for each/]);
  const many = Array.from({ length: limits.applyNamedFiles + 1 }, (_, at) => `services: {s${at}: {image: a}}`);
  t.match(read(t, { 'compose.yml': many.join('\n---\n') }).faults, [/has several YAML documents/]);
  const own = readText('longshore.yml', 'containers: {}\n---\ncontainers: {}', { folder: '/', env: {} });
  t.match(own.faults, [{ place: { line: 3 }, message: 'has several YAML documents: write a file for each' }]);
});

t.test('a command finds the containers of services that are included or extended', (t) => {
  const folder = folderOf(t, {
    'compose.yml': 'include: [b.yml]\nservices: {a: {extends: {file: b.yml, service: base}}}',
    'b.yml': 'services: {b: {image: b}, base: {image: b, container_name: "$NAME"}}',
  });
  const project = projectIn({ folder, env: { NAME: 'exact' } });
  t.same(
    ['a', 'b', 'c'].map((name) => project?.containerOf(name)),
    ['exact', 'shop-b', undefined],
  );
  t.end();
});
