import t from 'tap';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { repositoryRoot } from '../../dev/paths.ts';

const houses = ['schemas', 'lib', 'gateway', 'actors', 'host-agent', 'cli', 'dev', 'bench', 'test'] as const;
const programs = ['gateway', 'actors', 'host-agent'];
/** They use everything. */
const tooling = ['cli', 'dev', 'bench', 'test'];

interface Import {
  readonly from: string;
  /** A file of ours, relative to the root, or the name of a package or module. */
  readonly to: string;
  readonly ours: boolean;
  /** `import type` leaves nothing behind in what runs. */
  readonly typeOnly: boolean;
}

const sourcesBelow = (folder: string): string[] =>
  existsSync(join(repositoryRoot, folder))
    ? readdirSync(join(repositoryRoot, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => join(folder, name))
    : [];

const houseOf = (path: string): string => path.split('/')[0] ?? '';

/**
 * Every `import ... from`, `export ... from`, `import '...'` and `import('...')` of a source text.
 */
export function importsOf(from: string, text: string): Import[] {
  const statement =
    /\b(?:import|export)\b(\s+type\b)?[^'";]*?\bfrom\s*['"]([^'"]+)['"]|\bimport\s*\(?\s*['"]([^'"]+)['"]/g;
  return [...text.matchAll(statement)].map((match) => {
    const name = match[2] ?? match[3] ?? '';
    const ours = name.startsWith('.');
    const to = ours ? normalize(join(dirname(from), name)) : name;
    return { from, to, ours, typeOnly: match[1] !== undefined };
  });
}

/** Decisions, plans and bytes: without I/O, clock or environment. */
const isDeclaredPure = (path: string): boolean =>
  /^gateway\/vpn\/render\//.test(path) ||
  (programs.includes(houseOf(path)) && /\/(decide|plan|placement)\.ts$/.test(path));

/**
 * The files declared pure and all of their program that they stand on: these are held to the same.
 */
export function pureFiles(imports: readonly Import[]): Set<string> {
  const pure = new Set(imports.flatMap(({ from }) => (isDeclaredPure(from) ? [from] : [])));
  for (const path of pure) {
    for (const { from, to, ours, typeOnly } of imports) {
      if (from === path && ours && !typeOnly && houseOf(to) === houseOf(path)) pure.add(to);
    }
  }
  return pure;
}

/**
 * Modules of Node that compute and nothing else (of `node:crypto` the hashes: its random functions
 * are looked for below).
 */
const computing: ReadonlySet<string> = new Set(['node:assert', 'node:buffer', 'node:crypto', 'node:util']);

/** What is wrong with an import, or undefined. */
export function faultOf({ from, to, ours, typeOnly }: Import, pure: ReadonlySet<string>): string | undefined {
  const [source, target] = [houseOf(from), ours ? houseOf(to) : undefined];
  if (pure.has(from) && !typeOnly) {
    if (to.startsWith('node:') && !computing.has(to)) return 'a pure file imports a module of Node';
    if (target === 'lib') return 'a pure file imports only schemas and pure files';
  }
  if (source === 'schemas') {
    if (ours) return target === 'schemas' ? undefined : 'schemas imports nothing of ours';
    return to === 'typebox' || to.startsWith('typebox/') ? undefined : 'schemas imports TypeBox and nothing else';
  }
  if (!ours || tooling.includes(source)) return undefined;
  if (source === 'lib') return target === 'lib' || target === 'schemas' ? undefined : 'lib imports only schemas';
  if (to.endsWith('/main.ts')) return 'main.ts is imported by nobody';
  return target === source || target === 'lib' || target === 'schemas'
    ? undefined
    : 'a program imports itself, lib and schemas';
}

const sources = houses.flatMap(sourcesBelow);
const read = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8');

/** Code alone: a rule may be spoken of in a comment. */
const withoutComments = (text: string): string => text.replace(/\/\*[^]*?\*\/|(?<=^|\s)\/\/.*$/gm, '');

const imports = sources.flatMap((path) => importsOf(path, withoutComments(read(path))));
const pure = pureFiles(imports);

t.test('imports keep their directions', (t) => {
  t.ok(imports.length > 20, 'the sources are found');
  const faults = imports.flatMap((item) => {
    const fault = faultOf(item, pure);
    return fault === undefined ? [] : [`${item.from} → ${item.to}: ${fault}`];
  });
  t.same(faults, []);
  t.end();
});

t.test('schemas and pure files touch neither environment, clock, randomness nor network', (t) => {
  const impure =
    /\bprocess\.|\bDate\.now\b|\bnew Date\(\s*\)|\bMath\.random\b|\brandom(?:Bytes|UUID|Int)\b|\bperformance\.|\bfetch\(|\bset(?:Timeout|Interval|Immediate)\b/;
  const faults = sources
    .filter((path) => houseOf(path) === 'schemas' || pure.has(path))
    .flatMap((path) => {
      const match = impure.exec(withoutComments(read(path)));
      return match === null ? [] : [`${path}: ${match[0]}`];
    });
  t.same(faults, []);
  t.end();
});

t.test('only main.ts and tooling read the environment', (t) => {
  // Setting a variable, as a native library may want it, is no reading.
  const readsEnvironment = /\bprocess\.env\b(?!\[[^\]]+\]\s*=[^=])/;
  const faults = sources
    .filter((path) => !tooling.includes(houseOf(path)) && !path.endsWith('/main.ts'))
    .filter((path) => readsEnvironment.test(withoutComments(read(path))));
  t.same(faults, []);
  t.end();
});

t.test('no file leads outside the repository or to one machine’s mirrors', (t) => {
  // Written apart, so that this file does not hold what it looks for.
  const outside = [
    '../' + 'shared',
    '/wo' + 'rk/',
    'registry.' + 'npmjs.org',
    'deb.' + 'debian.org',
    'snapshot.' + 'debian',
    'DESIGN' + '.md',
    'CONTRACT' + '.md',
  ];
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: repositoryRoot,
    encoding: 'utf8',
    maxBuffer: 16 * 1024 * 1024,
  });
  const files = listed.split('\0').filter((path) => path !== '' && existsSync(join(repositoryRoot, path)));
  const faults = files.flatMap((path) => {
    const text = read(path);
    return outside.filter((word) => text.includes(word)).map((word) => `${path}: ${word}`);
  });
  t.same(faults, []);
  t.end();
});

t.test('the rules tell right from wrong', (t) => {
  const rows: [from: string, name: string, fault: RegExp | undefined][] = [
    ['gateway/http.ts', '../actors/main.ts', /main\.ts/],
    ['gateway/http.ts', '../actors/runtime/load.ts', /a program imports itself/],
    ['gateway/http.ts', '../host-agent/plan.ts', /a program imports itself/],
    ['gateway/http.ts', '../dev/servers/nats.ts', /a program imports itself/],
    ['gateway/http.ts', './main.ts', /main\.ts/],
    ['gateway/http.ts', '../lib/log.ts', undefined],
    ['gateway/http.ts', 'jose', undefined],
    ['gateway/vpn/render/wireguard.ts', 'node:fs', /pure/],
    ['gateway/vpn/render/wireguard.ts', './fit.ts', undefined],
    ['gateway/vpn/render/wireguard.ts', '../../../schemas/api/peer.ts', undefined],
    ['host-agent/reconcile/plan.ts', '../../lib/backoff.ts', /pure/],
    ['actors/domain/container/decide.ts', './placement.ts', undefined],
    ['schemas/ids.ts', '../lib/log.ts', /nothing of ours/],
    ['schemas/ids.ts', 'node:crypto', /TypeBox/],
    ['schemas/ids.ts', 'typebox', undefined],
    ['lib/log.ts', '../gateway/http.ts', /only schemas/],
    ['lib/log.ts', '../schemas/ids.ts', undefined],
    ['test/e2e/create.test.ts', '../../actors/main.ts', undefined],
  ];
  for (const [from, name, fault] of rows) {
    const [found] = importsOf(from, `import { x } from '${name}';`);
    t.match(faultOf(found!, pureFiles([found!])) ?? 'none', fault ?? /^none$/, `${from} imports ${name}`);
  }
  const forms = [
    "import type { A } from './a.ts';",
    "export * from './a.ts';",
    "import './a.ts';",
    "await import('./a.ts');",
    'import {\n  a,\n  b,\n} from "./a.ts";',
  ];
  for (const form of forms)
    t.same(
      importsOf('lib/x.ts', form).map(({ to }) => to),
      ['lib/a.ts'],
      form,
    );
  const chain = [
    ...importsOf(
      'host-agent/reconcile/plan.ts',
      "import { a } from './steps.ts'; import type { D } from './docker.ts';",
    ),
    ...importsOf('host-agent/reconcile/steps.ts', "import { readFileSync } from 'node:fs';"),
    ...importsOf('host-agent/reconcile/docker.ts', "import { request } from 'node:http';"),
  ];
  t.same(
    [...pureFiles(chain)],
    ['host-agent/reconcile/plan.ts', 'host-agent/reconcile/steps.ts'],
    'purity is asked of what a plan stands on',
  );
  t.match(faultOf(chain[2]!, pureFiles(chain)), /pure/);
  t.equal(faultOf(chain[3]!, pureFiles(chain)), undefined);
  t.end();
});
