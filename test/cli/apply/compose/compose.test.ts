import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { readText, type ReadOptions } from '../../../../cli/apply/file/read.ts';
import { textOfRemark, type Remark } from '../../../../cli/apply/file/tree.ts';
import { temporaryFolder } from '../../../support/folder.ts';

const files = { '.env': '' } as Readonly<Record<string, string>>;

const sorted = (remarks: readonly Remark[]): string[] =>
  remarks.map(textOfRemark).sort((one, other) => one.localeCompare(other, 'en', { numeric: true }));

function read(
  t: Test,
  text: string,
  env: NodeJS.ProcessEnv = {},
  beside: Readonly<Record<string, string>> = {},
  options: ReadOptions = { project: 'shop' },
) {
  const folder = temporaryFolder(t);
  for (const [name, content] of Object.entries({ ...files, ...beside })) writeFileSync(join(folder, name), content);
  const { wanted, faults, warnings, valueOf } = readText('compose.yml', text, { folder, env, ...options });
  return { wanted, valueOf, faults: sorted(faults), warnings: sorted(warnings) };
}

const envOf = ({ wanted }: ReturnType<typeof read>, at = 0): Record<string, string> => {
  const env = wanted?.containers[at]?.document.env ?? {};
  return env;
};

const service = (body: string): string => `services:\n  web: {image: web, ${body}}\n`;

t.test('a key that changes what runs is a fault, unless its author says that it may be left out', (t) => {
  const text = `services:
  web:
    image: web
    pid: host
    userns_mode: host
    volumes: [data:/data]
    networks: {default: {ipv4_address: 10.0.0.2}}
    privileged: true
    cap_drop: [ALL]
    deploy: {replicas: 2}
  other: {image: web, network_mode: host, scale: 3}
`;
  const keys = ['pid', 'userns_mode', 'volumes', 'ipv4_address', 'privileged', 'cap_drop', 'deploy.replicas'];
  const { faults } = read(t, text);
  const fault = (place: string, field: string, key: string) =>
    `compose.yml:${place}: ${field}: is not supported, and changes what runs: take it out, or leave it out with "--ignore ${key}"`;
  const rows = [
    ['4:5', 'services.web.pid'],
    ['5:5', 'services.web.userns_mode'],
    ['6:5', 'services.web.volumes'],
    ['7:26', 'services.web.networks.default.ipv4_address'],
    ['8:5', 'services.web.privileged'],
    ['9:5', 'services.web.cap_drop'],
    ['10:14', 'services.web.deploy.replicas'],
    ['11:23', 'services.other.network_mode'],
    ['11:43', 'services.other.scale'],
  ] as const;
  t.same(
    faults,
    rows.map(([place, field]) => fault(place, field, field.split('.').at(-1) ?? '')),
  );
  t.same(read(t, `${service('pid: a')}`, {}, {}, { project: 'shop', ignore: ['pid'] }).faults, []);
  const shorter = text.split('\n').slice(0, 10).join('\n');
  const ignored = read(t, shorter, {}, {}, { project: 'shop', ignore: keys });
  t.same(ignored.faults, []);
  t.same(ignored.warnings, [
    'compose.yml:4:5: left out, as asked, although it changes what runs: pid (web), userns_mode (web), ' +
      'privileged (web), cap_drop (web), networks.default.ipv4_address (web), deploy.replicas (web), volumes (web)',
  ]);
  for (const [where, left] of [
    [`x-longshore-ignore: [pid]\n${service('pid: a')}`, 0],
    [service('pid: a, x-longshore-ignore: pid'), 0],
    [`${service('pid: a')}  db: {image: db, pid: b, x-longshore-ignore: [pid]}`, 1],
    [`x-longshore-ignore: [services.db.pid]\n${service('pid: a')}`, 1],
  ] as const)
    t.equal(read(t, where).faults.length, left, where);
  for (const [body, place] of [
    ['depends_on: {db: {condition: service_started, restart: true}}', 'depends_on.db.restart'],
    ['pids_limit: 100', 'pids_limit'],
    ['deploy: {resources: {limits: {pids: 100}}}', 'deploy.resources.limits.pids'],
    ['memswap_limit: 1g', 'memswap_limit'],
    ['mem_limit: 1g, memswap_limit: 2g', 'memswap_limit'],
    ['memswap_limit: -1', 'memswap_limit'],
    ['label_file: a.labels', 'label_file'],
    ['security_opt: ["seccomp:unconfined"]', 'security_opt'],
    ['security_opt: ["no-new-privileges:false"]', 'security_opt'],
    ['security_opt: [no-new-privileges, "label=disable"]', 'security_opt'],
    ['security_opt: no-new-privileges', 'security_opt'],
  ] as const) {
    const key = place.split('.').at(-1) ?? '';
    const one = `${service(body)}  db: {image: db}`;
    t.match(read(t, one).faults, [new RegExp(`services\\.web\\.${place}: is not supported`)], body);
    t.same(read(t, one, {}, {}, { project: 'shop', ignore: [key] }).faults, [], body);
  }
  for (const body of [
    'depends_on: {db: {restart: false}}',
    'pids_limit: -1, deploy: {resources: {limits: {pids: 0}}}',
    'mem_limit: 1g, memswap_limit: 1024m',
    'memswap_limit: 0',
    // As all containers have it.
    'security_opt: [no-new-privileges]',
    'security_opt: ["no-new-privileges:true", "no-new-privileges=true"]',
  ])
    t.same(read(t, `${service(body)}  db: {image: db}`).faults, [], body);
  const same = 'command: null, read_only: false, volumes: [], networks: [default], deploy: {replicas: 1}, scale: 1';
  t.same(read(t, service(`${same}, network_mode: bridge, tty: false, privileged: false`)).faults, [], 'as without');
  t.end();
});

t.test('a service is found by its name, and by its aliases in any of its networks', (t) => {
  const aliasesIn = (body: string, name = 'web') => {
    const { wanted, faults } = read(t, `services:\n  ${name}: {image: web, ${body}}\nnetworks: {back: null}\n`);
    return { faults, aliases: wanted?.containers[0]?.document.aliases };
  };
  const both = 'networks: {default: {aliases: [db, database]}, back: {aliases: [db, pg]}}';
  t.same(aliasesIn(both), { faults: [], aliases: ['web', 'db', 'database', 'pg'] });
  for (const one of ['default: {priority: 1}', 'default: null', ''])
    t.same(aliasesIn(`networks: {${one}}`).aliases, ['web']);
  t.same(aliasesIn('container_name: web').aliases, [], 'which is the name of the container');
  t.same(aliasesIn('', 'Web').aliases, ['web'], 'as DNS has it');
  t.match(aliasesIn('networks: {default: {aliases: db}}').faults, [/networks\.default\.aliases: must be a list/]);
  t.same(aliasesIn('networks: {back: {aliases: [DB, db]}}').aliases, ['web', 'db'], 'as DNS has it');
  for (const alias of ['-db', 'xmpp.meet.jitsi', 'a_b', `d${'b'.repeat(63)}`, '""']) {
    const text = `services:\n  web: {image: web, networks: {default: {aliases: [db, ${alias}]}}}\n`;
    const fault = `services.web.networks.default.aliases.1: ${alias === '""' ? alias : `"${alias}"`} is no DNS label, and other services would not find it by that name: take it out, or leave it out with "--ignore aliases"`;
    t.same(read(t, text).faults, [`compose.yml:2:56: ${fault}`], 'no name of a host');
    const { faults, wanted } = read(t, text, {}, {}, { project: 'shop', ignore: ['aliases'] });
    t.same([faults, wanted?.containers[0]?.document.aliases], [[], ['web', 'db']], `--ignore aliases: ${alias}`);
  }
  t.match(aliasesIn('networks: [front]').faults, [/services\.web\.networks: names "front", which is no network/]);
  const unknown = read(t, 'services: {a_b: {image: web}}');
  t.same([unknown.faults, unknown.wanted?.containers[0]?.document.aliases], [[], []]);
  t.match(unknown.warnings, [/services\.a_b: DNS knows no such name as "a_b"/]);
  t.end();
});

t.test('networks: all services are in one, and what that changes is said', (t) => {
  const file = (networks: string, services = 'a: {image: i, networks: [one]}') =>
    `services: {${services}}\nnetworks: {${networks}}\n`;
  const three =
    'a: {image: i, networks: [one]}, b: {image: i, networks: {one: null, two: null}}, c: {image: i, networks: [two]}';
  const apart = read(t, file('one: null, two: null', three));
  t.same(apart.faults, []);
  t.same(apart.warnings, [
    'compose.yml:2:1: containers of a tenant are in one network: these services reach each other, also those that share no network in Compose: a (one), c (two)',
  ]);
  const fine = [
    file('one: null'),
    file('one: {driver: bridge, external: false, internal: "false"}'),
    file('one: {driver: default}, other: {internal: true, driver: macvlan}'),
    // Hosts are one network as in a swarm.
    file('one: {driver: overlay}'),
    file('', 'a: {image: i}, b: {image: i, networks: [default]}'),
    file('one: null', 'a: {image: i, networks: [one]}, b: {image: i, network_mode: bridge, networks: [one]}'),
  ];
  for (const text of fine) {
    const { faults, warnings } = read(t, text);
    t.same([faults, warnings], [[], []], text);
  }
  t.match(read(t, file('one: {name: x, ipam: {config: []}, enable_ipv6: true}')).warnings, [
    /left out, which changes nothing that runs: networks\.one\.name, networks\.one\.ipam, networks\.one\.enable_ipv6/,
  ]);
  for (const [key, value] of Object.entries({ driver: 'macvlan', external: true, internal: true, attachment: 1 })) {
    const text = file(`one: {${key}: ${value}}`);
    t.match(read(t, text).faults, { 0: new RegExp(`networks\\.one\\.${key}: is not supported`), length: 1 });
    t.same(read(t, text, {}, {}, { project: 'shop', ignore: [key] }).faults, [], `--ignore ${key}`);
  }
  t.end();
});

t.test('a link gives its service another name, which leads to it alone', (t) => {
  const linked = (links: string, db = '') =>
    read(t, `services:\n  web: {image: web, links: ${links}}\n  db: {image: db, ${db}}\n  api: {image: api}\n`);
  const aliasesOf = ({ wanted }: ReturnType<typeof read>, name = 'shop-db') =>
    wanted?.containers.find((one) => one.name === name)?.document.aliases;
  const one = linked('[db:database, db, "db:db", "api:Backend"]');
  t.same([one.faults, one.warnings], [[], []]);
  t.same(aliasesOf(one), ['db', 'database']);
  t.same(aliasesOf(one, 'shop-api'), ['api', 'backend'], 'as DNS has it');
  t.same(aliasesOf(one, 'shop-web'), ['web']);
  t.same(aliasesOf(linked('[db:database, db:database]', 'networks: {default: {aliases: [database]}}')), [
    'db',
    'database',
  ]);
  for (const [links, fault] of [
    ['[db:api]', /^compose\.yml:2:\d+: services\.web\.links\.0: "api" leads to api already, for all services/],
    ['[db:x, api:x]', /services\.web\.links\.1: "x" leads to db already/],
    ['[db:a_b]', /services\.web\.links\.0: DNS knows no such name as "a_b"/],
    ['[none]', /services\.web\.links\.0: names "none", which is no service/],
    ['db', /services\.web\.links: must be a list of services/],
  ] as const)
    t.match(linked(links).faults, [fault]);
  const text = 'services: {web: {image: web, links: [db:api]}, db: {image: db}, api: {image: api}}';
  const ignored = read(t, text, {}, {}, { project: 'shop', ignore: ['links'] });
  t.same(ignored.faults, []);
  t.end();
});

t.test('network_mode: none is no network of the tenant', (t) => {
  const { wanted, faults, warnings } = read(
    t,
    'services: {a: {image: i, network_mode: none}, b: {image: i}, c: {image: i, network_mode: "none"}}',
  );
  t.same(faults, []);
  t.match(warnings, [/services\.a\.network_mode: keeps it out of the network/, /services\.c\.network_mode/]);
  t.same(
    wanted?.containers.map(({ document: { network, aliases } }) => [network.mode, aliases]),
    [
      ['none', []],
      ['tenant', ['b']],
      ['none', []],
    ],
  );
  t.end();
});

t.test('the process of a service is read as Compose reads it', (t) => {
  const rows: readonly (readonly [body: string, process: object])[] = [
    ['command: bundle exec thin -p 3000', { command: ['bundle', 'exec', 'thin', '-p', '3000'] }],
    [`command: sh -c "echo 'a b'; date"`, { command: ['sh', '-c', "echo 'a b'; date"] }],
    ['command: [worker, --threads, 4]', { command: ['worker', '--threads', '4'] }],
    ['command: 08', { command: ['08'] }],
    ['command: null, entrypoint: ~', {}],
    ['command: [], entrypoint: ""', { command: [], entrypoint: [] }],
    ['entrypoint: /init --', { entrypoint: ['/init', '--'] }],
    ['entrypoint: [], command: [a]', { entrypoint: [], command: ['a'] }],
    ['user: 1000, working_dir: /srv', { user: '1000', working_dir: '/srv' }],
    ['user: "", working_dir: "", init: ""', {}],
    ['user: "1000:1000"', { user: '1000:1000' }],
    ['tmpfs: /run', { tmpfs: { '/run': '256m' } }],
    ['tmpfs: /run, mem_limit: 64mb', { tmpfs: { '/run': '64m' } }],
    [
      'tmpfs: ["/run:rw,noexec,nosuid,size=65536k", "/tmp:size=1.5m,mode=1777"]',
      { tmpfs: { '/run': '65536k', '/tmp': '1536k' } },
    ],
    [
      'tmpfs: /a, volumes: [{type: tmpfs, target: /b, tmpfs: {size: 1mb}}, {type: tmpfs, target: /c}], mem_limit: 8m',
      { tmpfs: { '/b': '1m', '/c': '8m', '/a': '8m' } },
    ],
    ['volumes: []', {}],
    ['shm_size: 64M, init: true, read_only: "yes"', { shm_size: '64m', init: true, read_only: true }],
    ['shm_size: 1048576', { shm_size: '1048576' }],
    ['shm_size: 0, init: false, read_only: "false"', {}],
    [
      'ulimits: {nproc: 65535, nofile: {soft: 20000, hard: "40000"}, core: 0}',
      { ulimits: { nproc: '65535', nofile: '20000:40000' } },
    ],
  ];
  for (const [body, process] of rows) {
    const { wanted, faults, warnings } = read(t, service(body));
    t.same([faults, warnings], [[], []], body);
    t.same(wanted?.containers[0]?.document.process, process, body);
  }
  const endless = read(t, service('ulimits: {memlock: {soft: -1, hard: -1}, nofile: -1}'));
  t.same(endless.faults, []);
  t.same(endless.wanted?.containers[0]?.document.process, {
    ulimits: { memlock: '1099511627776:1099511627776', nofile: '1048576' },
  });
  t.match(endless.warnings[2], /services\.web\.ulimits\.nofile: is at most 1048576: that is taken/);
  const shell = read(t, service('command: sh -c date && reboot'));
  t.same(shell.wanted?.containers[0]?.document.process, { command: ['sh', '-c', 'date'] });
  t.match(shell.warnings, [/services\.web\.command: ends before "&& reboot", as in Compose, which runs no shell/]);
  t.end();
});

t.test('all addresses of a host are no address that a port is kept to', (t) => {
  for (const port of [
    '"0.0.0.0:8080:80"',
    '"[::]:8080:80"',
    '":::8080:80"',
    '{target: 80, published: 8080, host_ip: 0.0.0.0}',
  ])
    t.same(
      read(t, service(`ports: [${port}]`)).warnings,
      ["compose.yml:2:21: services.web.ports: the host's ports are not kept (8080): Longshore chooses them"],
      port,
    );
  for (const port of ['"127.0.0.1:8080:80"', '"[::1]:8080:80"', '"10.0.0.1::80"'])
    t.match(read(t, service(`ports: [${port}]`)).warnings.join('\n'), /ports\.0: the address .* is not kept/, port);
  t.end();
});

t.test('settings that a container can not have are faults by their names', (t) => {
  const rows: readonly (readonly [body: string, fault: RegExp])[] = [
    ['command: echo "a', /services\.web\.command: has quotes or brackets that do not match/],
    ['command: {a: b}', /services\.web\.command: must be a text, or a list of texts/],
    ['entrypoint: [{a: b}]', /services\.web\.entrypoint: must be a text, or a list of texts/],
    ['user: "a b"', /services\.web\.user: must be the name or the number of a user/],
    ['working_dir: srv', /services\.web\.working_dir: must be an absolute path/],
    ['tmpfs: ["/run:exec"]', /services\.web\.tmpfs\.0\.exec: is not supported, .*"--ignore exec"/],
    ['tmpfs: "/run:size=1m,mode=1750"', /services\.web\.tmpfs\.mode: is not supported, .*"--ignore mode"/],
    ['tmpfs: ["/run:uid=1000"]', /services\.web\.tmpfs\.0\.uid: is not supported, .*"--ignore uid"/],
    ['tmpfs: /proc/a', /services\.web\.tmpfs\..*must not be below \/proc/],
    ['tmpfs: "/run:size=50%"', /services\.web\.tmpfs\..*must be a whole number of bytes/],
    [
      'volumes: [{type: tmpfs, target: /b}, "data:/data"]',
      /services\.web\.volumes: is not supported, .*--ignore volumes/,
    ],
    [
      'volumes: [{type: tmpfs, target: /b, tmpfs: {mode: 0700}}]',
      /services\.web\.volumes\.0\.tmpfs\.mode: is not supp/,
    ],
    ['volumes: [{type: tmpfs, target: /b, read_only: true}]', /services\.web\.volumes\.0\.read_only: is not supported/],
    ['volumes: [{type: tmpfs}]', /services\.web\.volumes\.0\.target: must be a path/],
    ['shm_size: big', /services\.web\.shm_size: must be a size/],
    ['init: /tini', /services\.web\.init: must be true or false/],
    ['ulimits: {core: 1}', /services\.web\.ulimits\.core: is not supported/],
    ['ulimits: {rtprio: 5}', /services\.web\.ulimits\.rtprio: is not supported/],
    ['ulimits: {nofile: many}', /services\.web\.ulimits\.nofile: must be a whole number, or -1/],
    ['ulimits: {nofile: {soft: 1}}', /services\.web\.ulimits\.nofile\.hard: must be a whole number/],
    ['ulimits: {nofile: {soft: 2, hard: 1}}', /services\.web\.ulimits\.nofile: must be "soft:hard"/],
  ];
  for (const [body, fault] of rows) t.match(read(t, service(body)).faults, [fault], body);
  t.same(read(t, service('tmpfs: ["/run:exec"]'), {}, {}, { project: 'shop', ignore: ['exec'] }).faults, []);
  t.end();
});

t.test('all harmless keys are one line, and so is every other kind', (t) => {
  const text = `version: "3"
x-mine: {}
name: blog
services:
  web:
    image: web
    x-mine: 1
    labels: {a: b}
    logging: {driver: json-file}
    depends_on: {db: {condition: service_started, restart: false}}
    ports: ["80:8080", "127.0.0.1:443:8443", {target: 1, mode: host}]
    deploy: {resources: {limits: {cpus: 1}, reservations: {cpus: 1}}}
    healthcheck: {test: [CMD, a], start_interval: 1s}
    restart: on-failure:5
  db: {image: db, healthcheck: {interval: 1s}, labels: [a]}
  tool: {image: tool, profiles: [debug]}
networks: {}
volumes: {a: }
`;
  const { wanted, faults, warnings } = read(t, text);
  t.same(faults, []);
  t.same(warnings, [
    'compose.yml:1:1: left out, which changes nothing that runs: version, volumes, logging (web), ' +
      'deploy.resources.reservations.cpus (web), healthcheck.start_interval (web), ports.mode (web)',
    "compose.yml:11:5: services.web.ports: the host's ports are not kept (80, 443): Longshore chooses them",
    'compose.yml:11:24: services.web.ports.1: the address 127.0.0.1 is not kept: the port is published where the ' +
      'host publishes, for others too',
    'compose.yml:14:5: services.web.restart: its number of attempts is ignored: it is started again as often as it fails',
    'compose.yml:15:19: services.db.healthcheck: has no test, and is ignored: that of the image is not known',
    'compose.yml:16:23: left out by their profiles, as in Compose: tool',
  ]);
  t.same(
    wanted?.containers.map(({ name }) => name),
    ['shop-db', 'shop-web'],
    'behind what it depends on',
  );
  t.end();
});

t.test('a job is what runs once because the file says so, or because another waits for its end', (t) => {
  const text = `services:
  web: {image: a, depends_on: {migrate: {condition: service_completed_successfully}}}
  migrate: {image: a}
  once: {image: a, restart: "no"}
  never: {image: a, deploy: {restart_policy: {condition: none}}}
`;
  const { wanted } = read(t, text);
  const found = wanted?.containers.map(({ name, isJob, document }) => [name, isJob, document.policy.restart]);
  t.same(found, [
    ['shop-migrate', true, 'never'],
    ['shop-web', false, 'never'],
    ['shop-once', true, 'never'],
    ['shop-never', true, 'never'],
  ]);
  for (const [body, restart] of [
    ['deploy: {restart_policy: {condition: any}}', 'always'],
    ['deploy: {restart_policy: {}}', 'always'],
    ['deploy: {restart_policy: {condition: on-failure}}, restart: always', 'on_failure'],
    ['deploy: {restart_policy: {condition: unless-stopped}}', 'always'],
    ['deploy: {restart_policy: {condition: "no"}}', 'never'],
    ['deploy: {restart_policy: {condition: on-failure, max_attempts: "3"}}', 'on_failure'],
    ['restart: unless-stopped', 'always'],
  ] as const)
    t.equal(read(t, service(body)).wanted?.containers[0]?.document.policy.restart, restart, body);
  t.end();
});

t.test('profiles are those of COMPOSE_PROFILES', (t) => {
  const text = `services:
  a: {image: a, profiles: []}
  b: {image: a, profiles: ["", x]}
  c: {image: a, profiles: [x]}
  d: {image: a, depends_on: {none: {required: false}, c: {required: false}}}
`;
  const names = (env: NodeJS.ProcessEnv, beside = {}) =>
    read(t, text, env, beside).wanted?.containers.map(({ name }) => name.replace('shop-', ''));
  t.same(names({}), ['a', 'b', 'd']);
  t.same(names({ COMPOSE_PROFILES: 'y,x' }), ['a', 'b', 'c', 'd']);
  t.same(names({}, { '.env': 'COMPOSE_PROFILES=*' }), ['a', 'b', 'c', 'd']);
  t.match(read(t, `${service('depends_on: [db]')}  db: {image: db, profiles: [x]}`).faults, [
    /services\.web\.depends_on: names "db", which its profiles leave out: name one of them in COMPOSE_PROFILES/,
  ]);
  t.end();
});

t.test('a service that depends on one that another profile has', (t) => {
  const text = `services:
  foo: {image: foo}
  bar: {image: bar, profiles: [test]}
  baz: {image: baz, depends_on: [bar], profiles: [test]}
  zot: {image: zot, depends_on: [bar], profiles: [debug]}
`;
  const names = (profiles: string) => {
    const { wanted, faults } = read(t, text, { COMPOSE_PROFILES: profiles });
    return faults.length > 0 ? faults : wanted?.containers.map(({ name }) => name.replace('shop-', ''));
  };
  t.same(names(''), ['foo']);
  t.same(names('test'), ['foo', 'bar', 'baz']);
  t.same(names('debug,test'), ['foo', 'bar', 'baz', 'zot']);
  t.match(names('debug'), [/services\.zot\.depends_on: names "bar", which its profiles leave out/]);
  t.end();
});

t.test('fragments: one over another, and several at once', (t) => {
  const text = `x-environment: &default {FOO: BAR, ZOT: QUIX}
x-keys: &keys {KEY: VALUE, ZOT: later}
x-service: &service
  image: web
  environment: {A: a}
services:
  one: {<<: *service, environment: {<<: [*default, *keys], YET_ANOTHER: VARIABLE}}
  two: {<<: *service, ports: [80]}
`;
  const result = read(t, text);
  t.same(result.faults, []);
  t.same(envOf(result), { FOO: 'BAR', ZOT: 'QUIX', KEY: 'VALUE', YET_ANOTHER: 'VARIABLE' });
  t.same(envOf(result, 1), { A: 'a' });
  t.end();
});

t.test('env_file: variables of files, under those of environment', (t) => {
  const body = 'env_file: [a.env, {path: none.env, required: false}, {path: b.env}], environment: {C: own}';
  const beside = { 'a.env': 'A=1 # one\nB=$A-${X}\nC=file\nSHELL\n', 'b.env': 'A=2' };
  t.same(envOf(read(t, service(body), { X: 'x', SHELL: 's' }, beside)), { A: '2', B: '1-x', C: 'own', SHELL: 's' });
  t.same(envOf(read(t, service('env_file: a.env'), {}, { 'a.env': 'A=1' })), { A: '1' });
  const raw = 'env_file: [{path: a.env, format: raw}]';
  t.same(envOf(read(t, service(raw), {}, { 'a.env': 'A="$X" # x' })), { A: '"$X" # x' });
  t.match(read(t, service('env_file: [{path: a.env, format: toml}]'), {}, { 'a.env': '' }).faults, [
    /env_file\.0\.format: must be raw, or absent/,
  ]);
  const chain = 'env_file: [a.env, b.env], environment: {OWN: own, UNSET: , GIVEN: }';
  const chained = { 'a.env': 'A=1\nUNSET=file\nGIVEN=file', 'b.env': 'B=$A-$OWN-$GIVEN' };
  t.same(
    envOf(read(t, service(chain), { GIVEN: 'shell' }, chained)),
    { A: '1', B: '1-own-shell', OWN: 'own', GIVEN: 'shell' },
    'a file sees those before it; one that environment leaves unset is not there',
  );
  t.same(envOf(read(t, service('env_file: [a, b, a]'), {}, { a: 'X=a', b: 'X=b' })), { X: 'b' }, 'each file once');
  t.match(read(t, service('env_file: none.env')).faults, [/services\.web\.env_file: there is no file none\.env/]);
  t.match(read(t, service('env_file: [a.env]'), {}, { 'a.env': 'A B' }).faults, [
    /services\.web\.env_file\.0: .*a\.env: line 1: it must be NAME=value/,
  ]);
  t.end();
});

t.test('limits: of the service or of deploy; zero is none', (t) => {
  for (const [body, cpu, memory] of [
    ['mem_limit: 1g, cpus: 2', '2.0', '1g'],
    ['deploy: {resources: {limits: {cpus: "0.25", memory: 1.5g}}}', '0.25', '1536m'],
    ['mem_limit: 1024m, cpus: "2", deploy: {resources: {limits: {cpus: 2.0, memory: 1g}}}', '2.0', '1g'],
    ['mem_limit: 1g, deploy: {resources: {limits: {cpus: 2}}}', '2.0', '1g'],
    ['mem_limit: 0, cpus: 0', '0.5', '256m'],
    ['deploy: {resources: {limits: {cpus: "0", memory: 0}}}', '0.5', '256m'],
    ['cpus: 1e-1', '0.1', '256m'],
  ] as const)
    t.match(read(t, service(body)).wanted?.containers[0]?.document, { cpu_limit: cpu, mem_limit: memory }, body);
  for (const [body, key] of [
    ['cpus: 2, deploy: {resources: {limits: {cpus: 1}}}', 'cpus'],
    ['mem_limit: 1g, deploy: {resources: {limits: {memory: 2g}}}', 'mem_limit'],
  ] as const)
    t.match(read(t, service(body)).faults, [
      new RegExp(`services\\.web\\.${key}: and deploy\\.resources\\.limits say two things: leave one out`),
    ]);
  t.match(read(t, service('cpus: 1.2346')).warnings, [
    /services\.web\.cpus: is rounded to 1\.235: thousandths of a CPU/,
  ]);
  t.end();
});

t.test('a service with no replicas is left out', (t) => {
  const text = `services:
  a: {image: a, scale: 0}
  b: {image: a, deploy: {replicas: "0"}}
  c: {image: a, depends_on: [a]}
`;
  const { wanted, faults, warnings } = read(t, text);
  t.same(faults, []);
  t.same(
    wanted?.containers.map(({ name }) => name),
    ['shop-c'],
  );
  t.same(warnings, ['compose.yml:2:17: left out because they have no replicas: a, b']);
  t.match(read(t, service('scale: 0, deploy: {replicas: 2}')).faults, [
    /services\.web\.scale: and deploy\.replicas say two things: leave one out/,
  ]);
  t.match(read(t, service('scale: -1')).faults, [/services\.web\.scale: must be a whole number/]);
  t.end();
});

t.test('booleans may stand in quotes, and be words of YAML 1.1', (t) => {
  t.same(read(t, service('healthcheck: {disable: "true"}')).wanted?.containers[0]?.document.policy.health, {
    none: true,
  });
  t.same(read(t, service('healthcheck: {disable: yes}')).wanted?.containers[0]?.document.policy.health, { none: true });
  t.equal(read(t, service('healthcheck: {disable: "no"}')).wanted?.containers[0]?.document.policy.health, null);
  t.same(read(t, service('privileged: no, tty: "off"')).faults, []);
  t.equal(read(t, service('privileged: "true"')).faults.length, 1);
  t.same(read(t, service('env_file: {path: none, required: "false"}')).faults, []);
  t.same(read(t, service('depends_on: {db: {required: "false"}}')).faults, []);
  const external = 'services: {web: {image: a, secrets: [s]}}\nsecrets: {s: {external: "true"}}';
  t.match(read(t, external).wanted?.containers[0]?.document.secrets.files, { '/run/secrets/s': { secret: 's' } });
  t.match(read(t, service('healthcheck: {disable: maybe}')).faults, [
    /services\.web\.healthcheck\.disable: must be true or false/,
  ]);
  t.end();
});

t.test('an empty text is none', (t) => {
  const { wanted, faults } = read(t, service('restart: "${R:-}", stop_signal: "", container_name: ""'));
  t.same(faults, []);
  t.match(wanted?.containers, [
    { name: 'shop-web', isJob: false, document: { policy: { restart: 'never', stop_signal: 'SIGTERM' } } },
  ]);
  t.end();
});

t.test('forms that Compose refuses, and that would lose something', (t) => {
  for (const [body, fault] of [
    ['profiles: debug', /profiles: must be a list/],
    ['depends_on: db', /depends_on: must be a list of services, or a map/],
    [
      'depends_on: {web2: {condition: service_ready, required: false}}',
      /depends_on\.web2\.condition: must be service_started, /,
    ],
    ['environment: [{A: 1}]', /environment: must be a map of texts, or a list of NAME=value/],
    ['labels: [{a: b}]', /labels: must be a map of texts, or a list of key=value/],
    ['ports: ["localhost:80:80"]', /ports\.0: must be a port like/],
  ] as const)
    t.match(read(t, service(body)).faults, [fault], body);
  t.match(read(t, 'services: {web: {image: a}}\nsecrets: {s: {external: true, file: x}}').faults, [
    /secrets\.s: is external, and can't have file/,
  ]);
  t.end();
});

t.test('a check: none, zero, in quotes, and beyond the bounds', (t) => {
  const healthOf = (body: string) =>
    read(t, service(`healthcheck: {${body}}`)).wanted?.containers[0]?.document.policy.health;
  t.same(healthOf('disable: true'), { none: true });
  t.same(healthOf('test: ["NONE"]'), { none: true });
  t.same(healthOf('test: NONE'), { none: true });
  t.equal(healthOf('disable: false'), null);
  t.same(read(t, service('healthcheck: {disable: false}')).warnings, [], 'as without');
  t.match(healthOf('test: a, interval: 0s, timeout: 0s, retries: 0'), { interval: 30, timeout: 30, retries: 3 });
  t.match(healthOf('test: a, retries: "4", timeout: 1.5s'), { retries: 4, timeout: 2 });
  const long = read(t, service('stop_grace_period: 1h, healthcheck: {test: a, interval: 24h, retries: 120}'));
  t.match(long.wanted?.containers[0]?.document.policy, {
    stop_grace_seconds: 300,
    health: { interval: 3600, retries: 100 },
  });
  t.same(long.warnings, [
    'compose.yml:2:21: services.web.stop_grace_period: is at most 300s: that is taken',
    'compose.yml:2:67: services.web.healthcheck.interval: is at most 3600s: that is taken',
    'compose.yml:2:82: services.web.healthcheck.retries: is at most 100: that is taken',
  ]);
  t.end();
});

t.test('equal ports of a container are one', (t) => {
  for (const body of ['"127.0.0.1:8080:80", "[::1]:8080:80"', '"80:80", "8080:80"', '80, "80/tcp", "80/TCP"'])
    t.same(read(t, service(`ports: [${body}]`)).wanted?.containers[0]?.document.ports, [80], body);
  t.end();
});

t.test('dollar signs that begin no variable, and many aliases', (t) => {
  const body = `environment: {A: "cost 5$", B: "$(hostname)", C: "\${H:-$2a$14$abc}", D: "$$x"}`;
  t.same(envOf(read(t, service(body))), { A: 'cost 5$', B: '$(hostname)', C: '$2a$14', D: '$x' });
  t.match(read(t, service('environment: {A: "${1}"}')).faults, [/"\$\{1\}" is no variable/]);
  const many = Array.from({ length: 150 }, (_, at) => `  s${at}: {image: a, environment: {<<: *e, N: ${at}}}`);
  const { wanted, faults } = read(t, `x-e: &e {A: 1}\nservices:\n${many.join('\n')}\n`);
  t.same(faults, []);
  t.match(wanted?.containers.at(-1)?.document.env, { A: '1', N: '149' });
  t.end();
});

t.test('configs are files of the containers that use them', (t) => {
  const text = `services: {web: {image: a, configs: [site, {source: motd, target: /etc/motd, mode: "0440"}, env]}}
configs: {site: {file: ./site.conf}, motd: {content: "hello\\n"}, env: {environment: GREETING}}
`;
  const { wanted, faults } = read(t, text, { GREETING: 'hi' }, { 'site.conf': 'listen 80\n' });
  t.same(faults, []);
  t.same(wanted?.containers[0]?.document.files, {
    '/env': { content: 'hi', mode: 0o444 },
    '/etc/motd': { content: 'hello\n', mode: 0o440 },
    '/site': { content: 'listen 80\n', mode: 0o444 },
  });
  const faultsOf = (configs: string) => read(t, `${service('configs: [c]')}configs: {c: ${configs}}`).faults;
  t.match(faultsOf('{external: true}'), [/configs\.c\.external: Longshore keeps no configs by themselves/]);
  t.match(faultsOf('{file: ./none}'), [/configs\.c\.file: .*none/]);
  t.match(faultsOf('{environment: NOT_SET}'), [/configs\.c\.environment: the variable "NOT_SET" is not set/]);
  t.match(faultsOf('{}'), [/configs\.c: has no content/]);
  t.match(read(t, service('configs: [nobody]')).faults, [/configs\.0: "nobody" is not a config of this file/]);
  const owned = `${service('configs: [{source: c, uid: "7"}]')}configs: {c: {content: a}}`;
  t.match(read(t, owned).faults, [/configs\.0\.uid: is not supported/]);
  t.end();
});

t.test('secrets are those of the project', (t) => {
  const text = `services: {web: {image: a, secrets: [pw, out, old, {source: pw, target: /a, mode: "0440"}]}}
secrets: {pw: {environment: PW}, out: {external: true, name: real}, old: {external: {name: named}}}
`;
  const { wanted, faults, valueOf } = read(t, text, {}, { '.env': 'PW=of the file' });
  t.same(faults, []);
  t.match(wanted?.secrets, [{ name: 'shop-pw', source: { env: 'PW' } }]);
  t.equal(valueOf('PW'), 'of the file');
  t.match(wanted?.containers[0]?.document.secrets.files, {
    '/run/secrets/pw': { secret: 'shop-pw', mode: 0o444 },
    '/run/secrets/out': { secret: 'real' },
    '/run/secrets/old': { secret: 'named' },
    '/a': { secret: 'shop-pw', mode: 0o440 },
  });
  const named = `${service('secrets: [s]')}secrets: {s: {environment: "not a name"}}`;
  t.match(read(t, named).faults, [/^compose\.yml:3:11: secrets\.s: must be the name of a variable, like DB_PASSWORD$/]);
  t.match(read(t, service('secrets: [nobody]')).faults, [/secrets\.0: "nobody" is not a secret of this file/]);
  t.end();
});

t.test('a service is a container', (t) => {
  const text = service(
    `environment: [A=1, FROM_SHELL, NONE], restart: "no", stop_signal: SIGINT, stop_grace_period: 1m, ` +
      `healthcheck: {test: a, interval: 500ms, retries: 2}, secrets: [pw, {source: pw, target: /a, uid: "7", mode: 0440}]`,
  );
  const { wanted, faults } = read(t, `${text}secrets: {pw: {environment: PW}}`, { FROM_SHELL: 'yes' });
  t.same(faults, []);
  t.match(wanted?.secrets, [{ name: 'shop-pw', source: { env: 'PW' } }]);
  const [web] = wanted?.containers ?? [];
  t.same(web?.document.env, { A: '1', FROM_SHELL: 'yes' });
  t.same(web?.document.policy, {
    restart: 'never',
    stop_grace_seconds: 60,
    stop_signal: 'SIGINT',
    health: {
      command: ['/bin/sh', '-c', 'a'],
      interval: 1,
      timeout: 30,
      start_period: 0,
      retries: 2,
      restart_unhealthy: false,
    },
    remove_after_seconds: null,
  });
  t.same(web?.document.secrets.files, {
    '/run/secrets/pw': { secret: 'shop-pw', mode: 0o444, uid: 0, gid: 0 },
    '/a': { secret: 'shop-pw', mode: 0o440, uid: 7, gid: 0 },
  });
  t.equal(read(t, service('restart: no')).wanted?.containers[0]?.document.policy.restart, 'never');
  t.equal(read(t, service('')).wanted?.containers[0]?.document.policy.restart, 'never', 'as Compose has it');
  t.end();
});

t.test('variables come from the shell, then from .env, and are empty otherwise', (t) => {
  const text = service('environment: {A: "$A", B: "${B:-default}", C: "$C"}');
  const found = read(t, text, { A: 'shell' }, { '.env': 'A=file\nB="of the file"\n' });
  t.same(envOf(found), { A: 'shell', B: 'of the file', C: '' });
  t.match(found.warnings, [/^compose\.yml:2:\d+: the variable C is not set, and counts as empty/]);
  t.end();
});

t.test('faults are named where they are in the Compose file', (t) => {
  for (const [body, fault] of [
    [
      'deploy: {resources: {limits: {cpus: two}}}',
      'compose.yml:2:57: services.web.deploy.resources.limits.cpus: must be a number of CPUs',
    ],
    [
      'deploy: {resources: {limits: {memory: 1m}}}',
      'compose.yml:2:59: services.web.deploy.resources.limits.memory: must be between 6m',
    ],
    ['restart: sometimes', 'compose.yml:2:30: services.web.restart: must be "no" in quotes'],
    ['environment: {"A B": 1}', 'compose.yml:2:42: services.web.environment.A B: keys must begin'],
    ['depends_on: [db]', 'compose.yml:2:21: services.web.depends_on: names "db", which is no service'],
    ['depends_on: [web]', 'compose.yml:2:21: services.web.depends_on: goes in a circle: web → web'],
    ['healthcheck: {test: a, retries: none}', 'compose.yml:2:53: services.web.healthcheck.retries: must be an integer'],
    ['ports: [http]', 'compose.yml:2:29: services.web.ports.0: must be a port like'],
  ] as const) {
    const { faults } = read(t, service(body));
    t.ok(
      faults.some((one) => one.startsWith(fault)),
      `${fault} in ${faults.join('\n')}`,
    );
  }
  for (const body of ['', '{image: null}', '{image: ""}', '{image: "$NONE"}', '{ports: [80]}'])
    t.same(
      read(t, `services:\n  web: ${body}\n`).faults,
      ['compose.yml:2:3: services.web: has no image: name one in "image", or give the file that does with "-f", too'],
      body,
    );
  t.match(read(t, 'services: {web: {image: "", build: .}}').faults, [
    /services\.web\.build: Longshore builds no images: push an image/,
  ]);
  const long = 'snuba-subscription-consumer-generic-metrics-counters';
  const named = (name: string, body = '') => `services:\n  ${name}: {image: web${body}}\n`;
  const form = 'must begin with a letter or digit and have at most 63 letters, digits, "_", "." and "-"';
  t.same(read(t, named(long), {}, {}, { project: 'sentry-self-hosted' }).faults, [
    `compose.yml:2:3: services.${long}.container_name: the name of its container, "sentry-self-hosted-${long}", ${form}: give it a container_name, or the project a shorter name with "-p"`,
  ]);
  t.same(read(t, named(long, ', container_name: counters'), {}, {}, { project: 'sentry-self-hosted' }).faults, []);
  t.match(read(t, named('web', ', container_name: "a b"')).faults, [
    /^compose\.yml:2:\d+: services\.web\.container_name: the name of its container, "a b", must begin with/,
  ]);
  t.match(read(t, 'services: {web: {build: .}}').faults, [
    /services\.web\.build: Longshore builds no images: push an image/,
  ]);
  t.match(read(t, 'services: [web]').faults, [/services: must be a map of services/]);
  t.end();
});

t.test('a pull policy says whether the tag is looked at again, each time', (t) => {
  const pulled = ({ wanted }: ReturnType<typeof read>) => wanted?.containers[0]?.isPulled;
  for (const [policy, isPulled] of [
    ['always', true],
    ['missing', false],
    ['if_not_present', false],
    ['null', false],
    ['""', false],
    ['daily', true],
    ['every_1d12h', true],
  ] as const) {
    const one = read(t, service(`pull_policy: ${policy}`));
    t.same(one.faults, [], policy);
    t.equal(pulled(one), isPulled, policy);
    const isSaid = ['daily', 'every_1d12h'].includes(policy);
    t.same(
      one.warnings,
      isSaid ? ['compose.yml:2:21: services.web.pull_policy: looks at the tag with each apply, as "always" does'] : [],
    );
  }
  const digest = `services: {web: {image: 'web@sha256:${'a'.repeat(64)}', pull_policy: always}}`;
  t.equal(pulled(read(t, digest)), false, 'a digest decides what runs');
  for (const [policy, why] of [
    ['never', /services\.web\.pull_policy: hosts pull an image that they do not have.*--ignore pull_policy/],
    ['build', /services\.web\.pull_policy: Longshore builds no images/],
    ['monthly', /services\.web\.pull_policy: must be always, missing, daily/],
    ['every_now', /services\.web\.pull_policy: must be always/],
  ] as const)
    t.match(read(t, service(`pull_policy: ${policy}`)).faults, [why]);
  t.same(read(t, service('pull_policy: never'), {}, {}, { project: 'shop', ignore: ['pull_policy'] }).faults, []);
  t.end();
});

t.test('labels are those of the container; what it can not have is left out', (t) => {
  const text = (labels: string): string => `services: {web: {image: a, labels: ${labels}}}`;
  const labelsOf = (labels: string) => {
    const { wanted, faults, warnings } = read(t, text(labels));
    t.same(faults, []);
    return [wanted?.containers[0]?.document.labels, warnings.map((line) => line.replace(/^.*?: /, ''))];
  };
  t.same(labelsOf('{team: shop, tier: 2, on: true, empty: }'), [
    { team: 'shop', tier: '2', on: 'true', empty: '' },
    [],
  ]);
  t.same(labelsOf('[team=shop, "rule=Host(`a=b`)", alone]'), [{ team: 'shop', rule: 'Host(`a=b`)', alone: '' }, []]);
  t.match(labelsOf('{"a b": x, longshore.host: h, team: shop}'), [
    { team: 'shop' },
    [/^services\.web\.labels\.a b: is left out: keys must/, /longshore\.host: is left out: keys that begin with/],
  ]);
  t.same(labelsOf('{}'), [{}, []]);
  t.end();
});
