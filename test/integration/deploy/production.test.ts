/** The files of deploy/: each is checked by the program that reads it in production. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createAccount } from '@nats-io/nkeys';
import t from 'tap';
import { accountsConfiguration } from '../../../ops/nats-keys/accounts.ts';
import { makeNatsCertificates } from '../../../dev/servers/nats-certificates.ts';
import { prepareNatsIdentity } from '../../../ops/nats-keys/nats-identity.ts';
import { programSettings } from '../../../dev/docs/pages.ts';
import { anchorsOf } from '../../../dev/docs/markdown.ts';
import { repositoryRoot } from '../../../dev/paths.ts';
import { nodeOptions, type ProgramName } from '../../../dev/stack/programs.ts';
import { run } from '../../../dev/process/run.ts';
import { executablesOf, toolHere } from '../../../dev/fetch/tools.ts';
import { readSettings } from '../../../lib/config.ts';

const deadlineMs = 60_000;
const file = (...path: string[]): string => join(repositoryRoot, 'deploy', ...path);
const read = (...path: string[]): string => readFileSync(file(...path), 'utf8');

t.test('Prometheus accepts its configuration and the alerts', async (t) => {
  const promtool = await toolHere('promtool');
  for (const [what, path] of [
    ['config', 'prometheus.yml'],
    ['rules', 'alerts.yml'],
  ] as const) {
    // Syntax only, because the file with the token does not exist here.
    const options = what === 'config' ? ['--syntax-only'] : [];
    const args = ['check', what, ...options, file('prometheus', path)];
    const ran = await run(promtool.path, args, { deadlineMs, env: promtool.env });
    t.equal(ran.code, 0, `${path}: ${ran.stdout}${ran.stderr}`);
  }
});

t.test('each alert links to a section of the runbook', async (t) => {
  const anchors = anchorsOf(readFileSync(join(repositoryRoot, 'docs/runbook.md'), 'utf8'));
  const rules = read('prometheus', 'alerts.yml');
  const named = [...rules.matchAll(/runbook: docs\/runbook\.md#(\S+)/g)].map(([, anchor = '']) => anchor);
  t.equal(named.length, [...rules.matchAll(/- alert: /g)].length);
  t.same(
    named.filter((anchor) => !anchors.has(anchor)),
    [],
  );
});

t.test('nats-server accepts its configuration with the accounts', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'longshore-production-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const identity = await prepareNatsIdentity(join(folder, 'keys'));
  writeFileSync(join(folder, 'accounts.conf'), accountsConfiguration(identity, join(folder, 'accounts')).join('\n'));
  const { routesCaFile, servers } = await makeNatsCertificates(folder, [{ name: 'n1', address: 'n1.example.net' }]);
  const { certFile, keyFile, route } = servers[0]!;
  // Only paths are replaced; everything else is checked as written.
  const text = read('nats', 'nats-server.conf')
    .replaceAll('/etc/nats/n1.pem', certFile)
    .replaceAll('/etc/nats/n1.key', keyFile)
    .replaceAll('/etc/nats/n1-route.pem', route.certFile)
    .replaceAll('/etc/nats/n1-route.key', route.keyFile)
    .replace('/etc/nats/routes-ca.pem', routesCaFile)
    .replace('/var/lib/nats', join(folder, 'jetstream'));
  t.notMatch(text, '/etc/nats');
  const path = join(folder, 'nats-server.conf');
  writeFileSync(path, text);
  const server = await toolHere('nats-server');
  const ran = await run(server.path, ['-t', '--config', path], { deadlineMs, env: server.env });
  t.equal(ran.code, 0, ran.stdout + ran.stderr);
  t.match(ran.stdout + ran.stderr, /is valid/);
});

/** Parses KEY=value lines as systemd does, without comments and empty lines. */
const environmentOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );

const units = readdirSync(file('systemd')).filter((name) => name.endsWith('.service'));

t.test('every setting of the environment files exists and has a valid value', async (t) => {
  for (const [program, settings] of Object.entries(programSettings)) {
    const environment = environmentOf(read('systemd', `${program}.env`));
    t.same(
      Object.keys(environment).filter((name) => !Object.hasOwn(settings, name)),
      [],
      program,
    );
    // Only this one has no value that could be right: see test/actors/settings.test.ts.
    const own = program === 'actors' ? { HOSTS_ACCOUNT: createAccount().getPublicKey() } : {};
    t.doesNotThrow(() => readSettings(settings, { ...environment, ...own }), program);
  }
});

t.test('each program has a systemd unit', async (t) => {
  t.same(
    units.map((unit) => basename(unit, '.service').replace('longshore-', '')).sort(),
    [...Object.keys(programSettings), 'dns@'].sort(),
  );
  for (const unit of units) {
    const name = basename(unit, '.service').replace('longshore-', '');
    const text = read('systemd', unit);
    t.match(text, `EnvironmentFile=/etc/longshore/${name === 'dns@' ? 'net' : name}.env`);
    const program = ({ net: 'longshore-net', 'dns@': 'longshore-dns' } as const)[name] ?? (name as ProgramName);
    const options = nodeOptions[program].join(' ');
    t.match(text, `ExecStart=/usr/bin/node ${options} /opt/longshore/dist/programs/${program}.js`);
  }
});

t.test('the process that answers queries has another user than the one that keeps keys', (t) => {
  const userIn = (unit: string): string | undefined => /^User=(.+)$/m.exec(read('systemd', unit))?.[1];
  t.equal(userIn('longshore-dns@.service'), 'longshore-dns');
  t.equal(userIn('longshore-net.service'), 'longshore-net');
  t.end();
});

const [analyze] = executablesOf(['systemd-analyze'], process.env);
const skip = analyze === undefined ? 'this machine has no systemd' : false;

t.test('systemd accepts the units', { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'longshore-units-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const paths = units.map((unit) => {
    const path = join(folder, unit);
    // The program is not installed here, and systemd would report only that.
    writeFileSync(path, read('systemd', unit).replace('ExecStart=/usr/bin/node', `ExecStart=${process.execPath}`));
    return path;
  });
  const ran = await run(analyze ?? '', ['verify', '--man=no', ...paths], { deadlineMs, env: process.env });
  // Ignores faults of other units of this machine, which ours may depend on.
  const faults = (ran.stdout + ran.stderr).split('\n').filter((line) => line.includes(folder));
  t.same(faults, []);
});
