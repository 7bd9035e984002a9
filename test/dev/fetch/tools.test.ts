import t from 'tap';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import {
  downloadArguments,
  parseListFile,
  parseOsRelease,
  parseSourcesFile,
  preparePrivateApt,
  formatSources,
  sourcesFor,
  type AptSource,
  type Suite,
} from '../../../dev/fetch/apt.ts';
import { cacheFolder } from '../../../dev/paths.ts';
import { lockState, takeLock, tryLock } from '../../../dev/process/lockdir.ts';
import { processName } from '../../../dev/process/proc.ts';
import { run } from '../../../dev/process/run.ts';
import { atLeast, toolNames, tools, type ToolEntry } from '../../../dev/fetch/tool-table.ts';
import { executablesOf, findTool, isStaticElf, toolHere } from '../../../dev/fetch/tools.ts';
import { skipWithoutTools } from '../../support/tools.ts';
import { temporaryFolder } from '../../support/folder.ts';

/** Creates a program of this name that prints a version. */
function fakeTool(folder: string, name: string, says: string): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\necho '${says}'\n`);
  chmodSync(path, 0o755);
  return path;
}

t.test('a tool is looked for in the environment, then in PATH, then in the cache', async (t) => {
  const folder = temporaryFolder(t);
  const says = (version: string): string => `nats-server: v${version}`;
  const named = fakeTool(join(folder, 'named'), 'nats-server', says('2.14.0'));
  const onPath = fakeTool(join(folder, 'path'), 'nats-server', says('2.13.0'));
  const cached = fakeTool(join(folder, 'cache/tools/nats-server/usr/sbin'), 'nats-server', says('2.12.0'));
  const look = (env: NodeJS.ProcessEnv): ReturnType<typeof findTool> =>
    findTool('nats-server', { env, cacheFolder: join(folder, 'cache'), fetch: false });

  t.match(await look({ LONGSHORE_NATS_SERVER: named, PATH: join(folder, 'path') }), {
    path: named,
    origin: 'environment',
    version: '2.14.0',
  });
  t.match(await look({ PATH: join(folder, 'path') }), { path: onPath, origin: 'path', version: '2.13.0' });
  fakeTool(join(folder, 'path'), 'nats-server', says('2.10.27'));
  t.match(
    await look({ PATH: join(folder, 'path') }),
    { path: cached, origin: 'cache' },
    'a tool in PATH that is too old is ignored',
  );
});

t.test('the error for a missing tool names both ways to provide it', async (t) => {
  const folder = temporaryFolder(t);
  const old = fakeTool(folder, 'nats-server', 'nats-server: v2.10.27');
  const options = { cacheFolder: join(folder, 'cache'), fetch: false };
  const missing = findTool('nats-server', { env: { PATH: folder }, ...options });
  await t.rejects(
    missing,
    /2\.10 is older than 2\.12[^]*Debian package nats-server \(from sid\)[^]*LONGSHORE_NATS_SERVER=/,
  );
  const misnamed = findTool('nats-server', { env: { LONGSHORE_NATS_SERVER: old, PATH: folder }, ...options });
  await t.rejects(misnamed, /older than 2\.12/, 'a tool named by the environment is not replaced by another');
  const absent = findTool('redis-server', { env: { LONGSHORE_REDIS_SERVER: join(folder, 'none') }, ...options });
  await t.rejects(absent, /ENOENT/);

  const lonely = fakeTool(folder, 'pk12util', 'pk12util -i importfile');
  const nss = findTool('pk12util', { env: { PATH: folder, LONGSHORE_PK12UTIL: lonely }, ...options });
  t.match(await nss, { path: lonely, version: 'of unknown version' }, 'a tool without a version only has to run');
});

t.test('BusyBox must be statically linked, because images hold no libraries', async (t) => {
  const folder = temporaryFolder(t);
  t.ok(isStaticElf((await toolHere('busybox')).path));
  t.notOk(isStaticElf(process.execPath), 'Node is linked dynamically');
  symlinkSync(process.execPath, join(folder, 'node'));
  t.notOk(isStaticElf(fakeTool(folder, 'script', 'x')));
});

t.test('every tool of the table is available or can be fetched', async (t) => {
  for (const name of toolNames) {
    const skip = await skipWithoutTools(name);
    await t.test(name, { skip }, async (t) => {
      const tool = await toolHere(name);
      t.ok(existsSync(tool.path), `${tool.version} (${tool.origin})`);
      const { minimum } = tools[name];
      const [major = 0, minor = 0] = tool.version.split('.').map(Number);
      if (minimum !== undefined) t.ok(atLeast([major, minor], minimum));
    });
  }
});

/** Runs a command of apt with the lists from which tools are fetched. */
async function apt(suite: Suite, command: string, args: readonly string[]): Promise<string> {
  const { configFile } = preparePrivateApt(suite, cacheFolder(process.env));
  const ran = await run(command, ['-c', configFile, '-q', ...args], { deadlineMs: 120_000 });
  if (ran.code !== 0) throw new Error(`${command} ${args.join(' ')}: ${ran.stderr}`);
  return ran.stdout;
}

interface Package {
  readonly source: string;
  readonly section: string;
  readonly needs: readonly string[];
}

const fieldOf = (stanza: string, name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(stanza)?.[1] ?? '';

const parsePackage = (stanza: string): Package => ({
  source: (fieldOf(stanza, 'Source') || fieldOf(stanza, 'Package')).replace(/ .*/, ''),
  section: fieldOf(stanza, 'Section'),
  needs: [...fieldOf(stanza, 'Depends').matchAll(/(?:^|[,|])\s*([a-z0-9.+-]+)/g)].map(([, name = '']) => name),
});

const withoutApt = executablesOf(['apt-get'], process.env)[0] === undefined && 'apt-get is missing';

t.test('files beside a tool are fetched whatever the machine has', { skip: withoutApt }, async (t) => {
  const entries: readonly ToolEntry[] = Object.values(tools);

  await t.test('the data of Chromium, though the machine has it', async (t) => {
    const { packages, suite } = tools['chromium-headless-shell'];
    const status = join(temporaryFolder(t), 'status');
    const shown = await apt(suite, 'apt-cache', ['show', '--no-all-versions', 'chromium-common', 'xdg-utils']);
    const stanzas = shown.trim().split(/\n\n+/);
    // apt counts a package as the one that is installed only if all fields of its stanza are equal.
    const provided = stanzas.flatMap((stanza) => parsePackage(stanza).needs.map((name) => `${name} (= 99:1)`));
    const needs = `Package: needs\nVersion: 1\nArchitecture: all\nProvides: ${provided.join(', ')}`;
    const installed = [...stanzas, needs].map((stanza) => `${stanza}\nStatus: install ok installed\n`);
    writeFileSync(status, installed.join('\n'));
    const args = ['-o', `Dir::State::status=${status}`, '--print-uris', ...downloadArguments(packages)];
    const uris = await apt(suite, 'apt-get', args);
    t.match(uris, /^'[^']*\/chromium-headless-shell_/m);
    t.match(uris, /^'[^']*\/chromium-common_/m);
    t.notMatch(uris, /^'[^']*\/xdg-utils_/m, 'nothing of another program');
  });

  for (const suite of ['release', 'sid'] as const) {
    await t.test(`of ${suite}, every package of its own source but shared libraries`, async (t) => {
      const ofSuite = entries.filter((entry) => entry.suite === suite);
      const known = new Map<string, Package>();
      const learn = async (names: readonly string[]): Promise<void> => {
        const shown = await apt(suite, 'apt-cache', ['show', '--no-all-versions', ...new Set(names)]);
        for (const stanza of shown.trim().split(/\n\n+/)) known.set(fieldOf(stanza, 'Package'), parsePackage(stanza));
      };
      const needsOf = (name: string): readonly string[] => known.get(name)?.needs ?? [];
      const named = ofSuite.flatMap(({ packages }) => packages);
      await learn(named);
      await learn(named.flatMap(needsOf));
      for (const { variable, packages } of ofSuite) {
        const sources = packages.map((name) => known.get(name)?.source);
        const isBeside = (name: string): boolean => {
          const found = known.get(name);
          return found !== undefined && found.section !== 'libs' && sources.includes(found.source);
        };
        const left = packages.flatMap(needsOf).filter((name) => isBeside(name) && !packages.includes(name));
        t.same([...new Set(left)], [], variable);
      }
    });
  }
});

t.test('versions are compared as numbers', (t) => {
  t.ok(atLeast([2, 12], [2, 12]));
  t.ok(atLeast([2, 100], [2, 12]));
  t.ok(atLeast([3, 0], [2, 12]));
  t.notOk(atLeast([2, 9], [2, 12]));
  t.end();
});

t.test('apt sources', async (t) => {
  const key = '/usr/share/keyrings/example.gpg';
  const stanzas = `# a comment
Types: deb deb-src
URIs: http://a.example/debian
# http://old.example
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: ${key}

Types: deb
URIs: http://b.example/debian-security
Suites: bookworm-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc

Enabled: no
Types: deb
URIs: http://off.example
Suites: bookworm
Components: main

Types: deb
URIs: http://node.example
Suites: nodistro
Components: main
`;
  const all = parseSourcesFile(stanzas);
  const bookworm = { id: 'debian', codename: 'bookworm' };

  t.test('are read in both formats', (t) => {
    t.same(
      all.map(({ uris }) => uris),
      [['http://a.example/debian'], ['http://b.example/debian-security'], ['http://node.example']],
    );
    t.equal(all[0]?.signedBy?.trim(), key);
    t.match(all[1]?.signedBy, /BEGIN PGP[^]*abc/);
    const lines = `deb [arch=amd64 signed-by=${key}] http://a.example/debian bookworm main contrib # note\n# deb http://x y z\ndeb-src http://a b c\ndeb http://c.example sid main`;
    t.same(parseListFile(lines), [
      { uris: ['http://a.example/debian'], suites: ['bookworm'], components: ['main', 'contrib'], signedBy: key },
      { uris: ['http://c.example'], suites: ['sid'], components: ['main'], signedBy: undefined },
    ]);
    t.end();
  });

  t.test('packages of the release come only from sources of the distribution', (t) => {
    const chosen = sourcesFor('release', bookworm, all);
    t.same(
      chosen.map(({ suites }) => suites[0]),
      ['bookworm', 'bookworm-security'],
    );
    t.same(
      parseSourcesFile(formatSources(chosen)).map(({ uris }) => uris),
      chosen.map(({ uris }) => uris),
    );
    t.end();
  });

  t.test('packages of sid come from the same place under the same key', (t) => {
    const expected: AptSource[] = [
      { uris: ['http://a.example/debian'], suites: ['sid'], components: ['main'], signedBy: all[0]?.signedBy },
    ];
    t.same(sourcesFor('sid', bookworm, all), expected);
    t.same(sourcesFor('sid', { id: 'ubuntu', codename: 'bookworm' }, all), [], 'another distribution has no sid');
    t.same(sourcesFor('sid', { id: 'debian', codename: 'trixie' }, all), [], 'the sources are of another release');
    t.end();
  });

  t.test('os-release is read with and without quotes', (t) => {
    t.same(parseOsRelease('ID=debian\nVERSION_CODENAME="bookworm"\n'), bookworm);
    t.equal(parseOsRelease('ID=alpine\n'), undefined);
    t.end();
  });
});

t.test('a lock', async (t) => {
  t.test('has one holder until it is released', async (t) => {
    const path = join(temporaryFolder(t), 'lock');
    const first = tryLock(path);
    t.ok(first);
    t.equal(tryLock(path), undefined);
    await t.rejects(takeLock(path, 200, 'fetching'), new RegExp(`another process \\(${process.pid}\\) still holds`));
    const waiting = takeLock(path, 5_000, 'fetching');
    first?.release();
    (await waiting).release();
    t.notOk(existsSync(path));
  });

  t.test('held by a dead process is taken over', async (t) => {
    const path = join(temporaryFolder(t), 'lock');
    mkdirSync(path);
    const dead = spawn('/bin/true');
    const name = processName(dead.pid!) ?? { pid: dead.pid!, startTicks: '1', bootId: 'x' };
    await once(dead, 'exit');
    writeFileSync(join(path, 'owner.json'), JSON.stringify(name));
    const lock = tryLock(path);
    t.ok(lock);
    t.match(JSON.parse(readFileSync(join(path, 'owner.json'), 'utf8')), { pid: process.pid });
    lock?.release();
  });

  t.test('without an owner file is taken over after a while', (t) => {
    const path = join(temporaryFolder(t), 'lock');
    mkdirSync(path);
    const madeMs = statSync(path).mtimeMs;
    t.equal(lockState(path, madeMs + 1).held, true, 'its holder may be about to write the file');
    t.equal(lockState(path, madeMs + 60_000).held, false);
    const past = new Date(Date.now() - 60_000);
    utimesSync(path, past, past);
    tryLock(path)?.release();
    t.end();
  });
});

t.test('a command that exceeds its deadline is killed with its children', async (t) => {
  // `run` resolves when no process has the output open, so a surviving child would make this test
  // time out.
  const ran = await run('/bin/sh', ['-c', 'sleep 3600 & sleep 3600'], { deadlineMs: 200 });
  t.ok(ran.timedOut);
  t.equal(ran.signal, 'SIGKILL');
});
