/** The import rules of .dependency-cruiser.mjs hold, and each of them refuses what it should. */
import { cruise, type IConfiguration, type ICruiseResult } from 'dependency-cruiser';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { repositoryRoot } from '../../dev/paths.ts';

const { default: rules } = (await import(join(repositoryRoot, '.dependency-cruiser.mjs'))) as {
  default: IConfiguration;
};
const rooms = ['schemas', 'lib', 'gateway', 'actors', 'host-agent', 'cli', 'ops', 'dev', 'bench', 'test'];

/** The violations of the rules below `baseDir`, as `rule: file → file`. */
async function violations(baseDir: string): Promise<string[]> {
  const { output } = await cruise(
    rooms.filter((room) => existsSync(join(baseDir, room))),
    { ...rules.options, baseDir, validate: true, ruleSet: { forbidden: rules.forbidden ?? [] } },
  );
  return (output as ICruiseResult).summary.violations
    .map(({ rule, from, to, cycle }) =>
      cycle === undefined
        ? `${rule.name}: ${from} → ${to}`
        : `${rule.name}: ${cycle.map(({ name }) => name).join(' → ')}`,
    )
    .sort();
}

// Generous: it needs five seconds of processor time, and the machine may be busy.
const timeout = 600_000;
t.setTimeout(timeout);

t.test('every import keeps the rules', { timeout }, async (t) => {
  t.same(await violations(repositoryRoot), [], 'the rules say why in .dependency-cruiser.mjs');
});

t.test('each rule refuses its bad sample and nothing else', { timeout }, async (t) => {
  const files: Record<string, string> = {
    'package.json': '{"dependencies":{"jose":"1","typebox":"1"},"devDependencies":{"tap":"1"}}',
    ...Object.fromEntries(
      ['jose', 'typebox', 'tap', 'stranger'].flatMap((name) => [
        [`node_modules/${name}/package.json`, `{"name":"${name}","main":"index.js"}`],
        [`node_modules/${name}/index.js`, ''],
      ]),
    ),
    'actors/main.ts': '',
    'actors/domain/decide.ts': '',
    'actors/domain/types.ts': "import type { Socket } from 'node:net'; import type { Log } from '../../lib/log.ts';",
    'actors/domain/clock.ts': "import { sleep } from '../../lib/log.ts';",
    'actors/domain/hash.ts': "import { createHash } from 'node:crypto'; import '../../schemas/ids.ts';",
    'actors/runtime/load.ts': "import '../domain/decide.ts';",
    'actors/endpoints/asks.ts': "import '../runtime/load.ts'; import '../domain/decide.ts';",
    'gateway/call.ts': "import { run } from '../actors/endpoints/asks.ts'; import 'jose';",
    'gateway/types.ts': "import type { Ask } from '../actors/endpoints/asks.ts';",
    'gateway/late.ts': "await import('../dev/start.ts');",
    'gateway/typed.ts': "import type { Test } from 'tap'; import { log } from '../lib/log.ts';",
    'gateway/tested.ts': "import { test } from 'tap';",
    'gateway/unlisted.ts': "import 'stranger';",
    'gateway/gone.ts': "export * from './nothing.ts';",
    'gateway/one.ts': "import './two.ts';",
    'gateway/two.ts': "import type { One } from './one.ts';",
    'gateway/auth/gate.ts': "import type { Step } from '../pipeline/steps.ts'; import '../http/router.ts';",
    'gateway/pipeline/steps.ts': "import '../http/router.ts';",
    'gateway/http/router.ts': '',
    'gateway/vpn/render/pac.ts': "import { readFileSync } from 'node:fs';",
    'host-agent/desired/workload.ts': "import '../disk/files.ts';",
    'host-agent/disk/up.ts': "import type { Workload } from '../desired/workload.ts';",
    'host-agent/disk/plan.ts': "import { read } from './files.ts';",
    'host-agent/disk/files.ts': "import 'node:fs';",
    'schemas/ids.ts': "import 'typebox';",
    'schemas/uuid.ts': "import 'node:crypto'; import '../lib/log.ts'; import 'jose';",
    'cli/run.ts': "import '../schemas/ids.ts'; import '../lib/log.ts';",
    'cli/late.ts': "await import('../ops/backup.ts');",
    'ops/backup.ts': "import '../cli/run.ts'; import '../actors/runtime/load.ts';",
    'ops/servers.ts': "import '../dev/servers/nats.ts';",
    'lib/log.ts': "import '../schemas/ids.ts'; import 'node:fs';",
    'lib/actors.ts': "import '../actors/domain/decide.ts';",
    'dev/start.ts': "import '../gateway/call.ts'; import '../test/rig.ts'; import '../actors/main.ts';",
    'dev/servers/nats.ts': '',
    'test/gateway/call.test.ts': "import '../ground.ts';",
    'test/integration/call.test.ts': "import '../ground.ts';",
    'test/ground.ts': "import { start } from '../dev/servers/nats.ts';",
    'test/rig.ts': "import '../gateway/call.ts'; import 'tap';",
  };
  const folder = t.testdir(
    Object.entries(files).reduce<Folder>((root, [path, text]) => placed(root, path.split('/'), text), {}),
  );
  const active = new Set(
    (rules.forbidden ?? []).filter(({ severity }) => severity !== 'ignore').map(({ name }) => name),
  );
  const expected = [
    'agent: host-agent/disk/up.ts → host-agent/desired/workload.ts',
    'cli: cli/late.ts → ops/backup.ts',
    'cycle: gateway/two.ts → gateway/one.ts',
    'floors: gateway/auth/gate.ts → gateway/pipeline/steps.ts',
    'gateway: gateway/call.ts → actors/endpoints/asks.ts',
    'gateway: gateway/late.ts → dev/start.ts',
    'gateway: gateway/types.ts → actors/endpoints/asks.ts',
    'lib: lib/actors.ts → actors/domain/decide.ts',
    'main: dev/start.ts → actors/main.ts',
    'missing: gateway/gone.ts → ./nothing.ts',
    'ops: ops/servers.ts → dev/servers/nats.ts',
    'production: gateway/tested.ts → node_modules/tap/index.js',
    'production: gateway/unlisted.ts → node_modules/stranger/index.js',
    'pure: actors/domain/clock.ts → lib/log.ts',
    'pure: gateway/vpn/render/pac.ts → fs',
    'pure: host-agent/disk/plan.ts → host-agent/disk/files.ts',
    'pure: schemas/uuid.ts → lib/log.ts',
    'runtime: actors/runtime/load.ts → actors/domain/decide.ts',
    'schemas: schemas/uuid.ts → crypto',
    'schemas: schemas/uuid.ts → lib/log.ts',
    'schemas: schemas/uuid.ts → node_modules/jose/index.js',
    'tests: dev/start.ts → test/rig.ts',
    'unit: test/gateway/call.test.ts → dev/servers/nats.ts',
  ].filter((violation) => active.has(violation.split(':')[0] ?? ''));
  t.same(await violations(folder), expected);
});

interface Folder {
  [name: string]: Folder | string;
}

function placed(folder: Folder, [name = '', ...rest]: readonly string[], text: string): Folder {
  if (rest.length === 0) return { ...folder, [name]: text };
  const inner = folder[name];
  return { ...folder, [name]: placed(typeof inner === 'object' ? inner : {}, rest, text) };
}
