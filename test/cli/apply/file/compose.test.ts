import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { commandOf, cpusText, memoryText, portsOf, secondsOf } from '../../../../cli/apply/file/compose-values.ts';
import { readText } from '../../../../cli/apply/file/read.ts';
import { textOfRemark } from '../../../../cli/apply/file/source.ts';
import { temporaryFolder } from '../../../support/folder.ts';

function read(t: Test, text: string, env: NodeJS.ProcessEnv = {}, dotEnv = '') {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, '.env'), dotEnv);
  const { wanted, faults, warnings } = readText('compose.yml', text, { folder, env });
  return { wanted, faults: faults.map(textOfRemark), warnings: warnings.map(textOfRemark) };
}

const service = (body: string): string => `services:\n  web: {image: web, ${body}}\n`;

t.test('values of Compose', (t) => {
  for (const [value, text] of [
    ['0.50', '0.5'],
    [2, '2.0'],
    ['.25', '0.25'],
    ['1.23456', '1.235'],
    ['two', undefined],
    ['-1', undefined],
  ] as const)
    t.equal(cpusText(value), text, String(value));
  for (const [value, text] of [
    ['64mb', '64m'],
    ['1G', '1g'],
    ['512k', '512k'],
    ['8b', '8b'],
    [67108864, '67108864'],
    ['1.5g', undefined],
    ['64 mb', undefined],
  ] as const)
    t.equal(memoryText(value), text, String(value));
  for (const [value, seconds] of [
    ['1m30s', 90],
    ['1500ms', 2],
    ['0s', 0],
    ['2h', 7200],
    ['10', undefined],
    ['s', undefined],
  ] as const)
    t.equal(secondsOf(value), seconds, value);
  for (const [value, command] of [
    ['curl -f localhost', ['/bin/sh', '-c', 'curl -f localhost']],
    [
      ['CMD-SHELL', 'exit 0'],
      ['/bin/sh', '-c', 'exit 0'],
    ],
    [
      ['CMD', 'curl', '-f'],
      ['curl', '-f'],
    ],
    [['curl'], undefined],
    [7, undefined],
  ] as const)
    t.same(commandOf(value), command);
  for (const [value, ports, published] of [
    [80, [80], undefined],
    ['80/udp', ['80/udp'], undefined],
    ['8080:80', [80], '8080'],
    ['127.0.0.1:8080:80', [80], '8080'],
    ['127.0.0.1::80', [80], ''],
    ['9090-9091:80-81/tcp', [80, 81], '9090-9091'],
    [{ target: 53, protocol: 'udp', published: '53' }, ['53/udp'], '53'],
    [{ target: 80 }, [80], undefined],
  ] as const)
    t.same(portsOf(value), { ports, published }, JSON.stringify(value));
  for (const value of ['80-70', '1-60000', 'http', {}]) t.equal(portsOf(value), undefined, JSON.stringify(value));
  t.end();
});

t.test('every key that is ignored is named, with its place', (t) => {
  const text = `version: "3"
x-mine: {}
name: blog
services:
  web:
    image: web
    x-mine: 1
    command: serve
    depends_on: {db: {condition: service_completed_successfully, restart: true}}
    ports: ["80:8080", {target: 1, mode: host}]
    deploy: {replicas: 2, resources: {limits: {cpus: 1, pids: 3}, reservations: {cpus: 1}}}
    healthcheck: {test: [CMD, a], start_interval: 1s}
    restart: on-failure:5
    secrets: [{source: pw, other: 1}]
  db: {image: db, healthcheck: {interval: 1s}}
  tool: {image: tool, profiles: [debug]}
networks: {}
secrets: {pw: {external: true, name: x}}
`;
  const { wanted, faults, warnings } = read(t, text);
  t.same(faults, []);
  t.same(
    warnings.sort((one, other) => one.localeCompare(other, 'en', { numeric: true })),
    [
      'compose.yml:1:1: version: is ignored',
      'compose.yml:8:5: services.web.command: is ignored',
      'compose.yml:9:23: services.web.depends_on.db.condition: is ignored: it is waited for until it runs',
      'compose.yml:9:66: services.web.depends_on.db.restart: is ignored',
      "compose.yml:10:13: services.web.ports.0: the host's port 80 is ignored: Longshore chooses one",
      'compose.yml:10:36: services.web.ports.1.mode: is ignored',
      'compose.yml:11:14: services.web.deploy.replicas: is ignored',
      'compose.yml:11:57: services.web.deploy.resources.limits.pids: is ignored',
      'compose.yml:11:67: services.web.deploy.resources.reservations: is ignored',
      'compose.yml:12:35: services.web.healthcheck.start_interval: is ignored',
      'compose.yml:13:5: services.web.restart: its number of attempts is ignored: it is started again as often as it fails',
      'compose.yml:14:28: services.web.secrets.0.other: is ignored',
      'compose.yml:15:19: services.db.healthcheck: has no test, and is ignored: that of the image is not known',
      'compose.yml:16:23: services.tool.profiles: leaves the service out, as Compose does',
      'compose.yml:17:1: networks: is ignored',
      'compose.yml:18:32: secrets.pw.name: is ignored',
    ],
  );
  t.same(
    wanted?.containers.map(({ name }) => name),
    ['db', 'web'],
    'behind what it depends on',
  );
  t.same(wanted?.secrets, [], 'an external one is there already');
  t.end();
});

t.test('a service is a container', (t) => {
  const text = service(
    `environment: [A=1, FROM_SHELL, NONE], restart: "no", stop_signal: SIGINT, stop_grace_period: 1m, ` +
      `healthcheck: {test: a, interval: 500ms, retries: 2}, secrets: [pw, {source: pw, target: /a, uid: "7", mode: 0440}]`,
  );
  const { wanted, faults } = read(t, `${text}secrets: {pw: {environment: PW}}`, { FROM_SHELL: 'yes' });
  t.same(faults, []);
  t.match(wanted?.secrets, [{ name: 'pw', source: { env: 'PW' } }]);
  const [web] = wanted?.containers ?? [];
  t.same(web?.declaration.env, { A: '1', FROM_SHELL: 'yes' });
  t.same(web?.policy, {
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
  });
  t.same(web?.uses.files, {
    '/run/secrets/pw': { secret: 'pw', mode: 0o444, uid: 0, gid: 0 },
    '/a': { secret: 'pw', mode: 0o440, uid: 7, gid: 0 },
  });
  t.equal(read(t, service('restart: no')).wanted?.containers[0]?.policy.restart, 'never');
  t.equal(read(t, service('')).wanted?.containers[0]?.policy.restart, 'never', 'as Compose has it');
  t.equal(read(t, service('healthcheck: {disable: true}')).wanted?.containers[0]?.policy.health, null);
  t.end();
});

t.test('variables come from the shell, then from .env, and are empty otherwise', (t) => {
  const text = service('environment: {A: "$A", B: "${B:-default}", C: "$C"}');
  const { wanted, warnings } = read(t, text, { A: 'shell' }, 'A=file\nB="of the file"\n');
  t.same(wanted?.containers[0]?.declaration.env, { A: 'shell', B: 'of the file', C: '' });
  t.match(warnings, [/^compose\.yml:2:\d+: the variable C is not set, and counts as empty/]);
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
    ['environment: {"A B": 1}', 'compose.yml:2:42: services.web.environment.A B: the name must begin'],
    ['depends_on: [db]', 'compose.yml:2:21: services.web.depends_on: names "db", which is no service'],
    ['depends_on: [web]', 'compose.yml:2:21: services.web.depends_on: goes in a circle: web → web'],
    ['healthcheck: {test: a, retries: none}', 'compose.yml:2:44: services.web.healthcheck.retries: must be an integer'],
    ['ports: [http]', 'compose.yml:2:29: services.web.ports.0: must be a port like'],
  ] as const) {
    const { faults } = read(t, service(body));
    t.ok(
      faults.some((one) => one.startsWith(fault)),
      `${fault} in ${faults.join('\n')}`,
    );
  }
  t.match(read(t, 'services: {web: {build: .}}').faults, [
    /services\.web\.build: Longshore builds no images: push an image/,
  ]);
  t.match(read(t, 'services: [web]').faults, [/services: must be a map of services/]);
  t.end();
});
