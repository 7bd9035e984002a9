/**
 * Fetches Debian packages without changing the system: apt downloads into package lists and
 * archives of its own, `dpkg -x` unpacks. Needs no root. apt reads the machine's own sources, and
 * the machine's package database, so it downloads only what the machine lacks.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { run, type Ran } from '../process/run.ts';

const updateDeadlineMs = 180_000;
const downloadDeadlineMs = 600_000;
const unpackDeadlineMs = 120_000;
const listsFreshMs = 24 * 3600 * 1000;

export interface AptSource {
  readonly uris: readonly string[];
  readonly suites: readonly string[];
  readonly components: readonly string[];
  /** As written in the source: a path, fingerprints, or a whole key over several lines. */
  readonly signedBy: string | undefined;
}

/** Source of a package: the machine's own release, or Debian's newest packages. */
export type Suite = 'release' | 'sid';

export interface Release {
  readonly id: string;
  readonly codename: string;
}

export function parseOsRelease(text: string): Release | undefined {
  const value = (key: string): string | undefined =>
    new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1]?.replace(/^"(.*)"$/, '$1');
  const [id, codename] = [value('ID'), value('VERSION_CODENAME')];
  return id === undefined || codename === undefined ? undefined : { id, codename };
}

/** Parses the binary sources of a `.list` file (sources.list(5), one line each). */
export function parseListFile(text: string): AptSource[] {
  return text.split('\n').flatMap((line) => {
    const match = /^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]+)/.exec(line.trim());
    if (match === null) return [];
    const [, options = '', uri = '', suite = '', components = ''] = match;
    const signedBy = /(?:^|\s)signed-by=(\S+)/i.exec(options)?.[1];
    return [{ uris: [uri], suites: [suite], components: components.trim().split(/\s+/), signedBy }];
  });
}

/** Parses the binary sources of a `.sources` file (deb822 stanzas). */
export function parseSourcesFile(text: string): AptSource[] {
  const withoutComments = text.replace(/^#.*\n?/gm, '');
  return withoutComments.split(/\n\s*\n/).flatMap((stanza) => {
    const field = (name: string): string | undefined =>
      new RegExp(`^${name}:[ \\t]*(.*(?:\\n[ \\t].*)*)`, 'im').exec(stanza)?.[1]?.trimEnd();
    const words = (name: string): string[] => (field(name) ?? '').split(/\s+/).filter((word) => word !== '');
    if (!words('Types').includes('deb') || field('Enabled') === 'no') return [];
    return [
      { uris: words('URIs'), suites: words('Suites'), components: words('Components'), signedBy: field('Signed-By') },
    ];
  });
}

/**
 * Selects the distribution's own sources; third-party ones are left out. The source for sid is
 * derived from the one that carries the machine's release. Empty if no source fits.
 */
export function sourcesFor(suite: Suite, release: Release, all: readonly AptSource[]): AptSource[] {
  const rolling = ['testing', 'unstable', 'sid'];
  const base = (name: string): boolean => name === release.codename || name === 'stable' || rolling.includes(name);
  const own = (name: string): boolean => base(name.replace(/[-/](updates|security)$/, ''));
  switch (suite) {
    case 'release':
      return all.filter(({ suites }) => suites.some(own));
    case 'sid': {
      const carrier = release.id === 'debian' ? all.find(({ suites }) => suites.some(base)) : undefined;
      return carrier === undefined ? [] : [{ ...carrier, suites: ['sid'], components: ['main'] }];
    }
  }
}

export const formatSources = (sources: readonly AptSource[]): string =>
  sources
    .map(({ uris, suites, components, signedBy }) =>
      [
        'Types: deb',
        `URIs: ${uris.join(' ')}`,
        `Suites: ${suites.join(' ')}`,
        `Components: ${components.join(' ')}`,
        ...(signedBy === undefined ? [] : [`Signed-By: ${signedBy}`]),
        '',
      ].join('\n'),
    )
    .join('\n');

function readMachineSources(): AptSource[] {
  const read = (path: string): string => {
    try {
      return readFileSync(path, 'utf8');
    } catch {
      return '';
    }
  };
  const parts = (() => {
    try {
      return readdirSync('/etc/apt/sources.list.d').sort();
    } catch {
      return [];
    }
  })();
  return [
    ...parseListFile(read('/etc/apt/sources.list')),
    ...parts.flatMap((name) => {
      const text = read(join('/etc/apt/sources.list.d', name));
      return name.endsWith('.sources') ? parseSourcesFile(text) : name.endsWith('.list') ? parseListFile(text) : [];
    }),
  ];
}

export class AptUnavailable extends Error {}

interface PrivateApt {
  readonly folder: string;
  readonly configFile: string;
}

/**
 * Writes folders and a configuration with which apt reads the machine's package database but
 * changes none of its files.
 */
export function preparePrivateApt(suite: Suite, cacheFolder: string): PrivateApt {
  const release = parseOsRelease(
    (() => {
      try {
        return readFileSync('/etc/os-release', 'utf8');
      } catch {
        return '';
      }
    })(),
  );
  if (release === undefined) throw new AptUnavailable('this system is not Debian or derived from it');
  const sources = sourcesFor(suite, release, readMachineSources());
  if (sources.length === 0) {
    throw new AptUnavailable(
      `the machine's apt sources name none for ${suite === 'sid' ? 'Debian' : release.codename}`,
    );
  }
  const folder = join(cacheFolder, 'apt', suite);
  for (const name of ['lists/partial', 'cache/archives/partial', 'parts'])
    mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, 'parts', 'longshore.sources'), formatSources(sources));
  const configFile = join(folder, 'apt.conf');
  writeFileSync(
    configFile,
    [
      `Dir::Etc::SourceList "/dev/null";`,
      `Dir::Etc::SourceParts "${join(folder, 'parts')}";`,
      `Dir::State::Lists "${join(folder, 'lists')}";`,
      `Dir::Cache "${join(folder, 'cache')}";`,
      // Container images often disable these caches; without them each call of apt-get parses all
      // lists.
      'Dir::Cache::pkgcache "pkgcache.bin";',
      'Dir::Cache::srcpkgcache "srcpkgcache.bin";',
      'Acquire::GzipIndexes "false";',
      // The machine's hooks are meant for the machine's own package operations.
      '#clear APT::Update::Pre-Invoke;',
      '#clear APT::Update::Post-Invoke;',
      '#clear APT::Update::Post-Invoke-Success;',
      '#clear DPkg::Pre-Install-Pkgs;',
      'Debug::NoLocking "true";',
      // The user _apt can't write into our folders. apt still verifies signatures.
      'APT::Sandbox::User "root";',
      'Acquire::Languages "none";',
      'Acquire::Retries "2";',
      'Acquire::http::Timeout "30";',
      'Acquire::https::Timeout "30";',
      '',
    ].join('\n'),
  );
  return { folder, configFile };
}

const explain = (what: string, ran: Ran): Error =>
  new Error(
    `${what} ${ran.timedOut ? 'exceeded its deadline' : `ended with ${ran.code ?? ran.signal}`}: ${ran.stderr.trim().slice(-2000)}`,
  );

async function apt(config: PrivateApt, args: readonly string[], deadlineMs: number): Promise<void> {
  const ran = await run('apt-get', ['-c', config.configFile, '-q', ...args], {
    deadlineMs,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' },
  });
  if (ran.code !== 0) throw explain(`apt-get ${args[0]}`, ran);
}

async function updateLists(config: PrivateApt, force: boolean): Promise<void> {
  const stamp = join(config.folder, 'updated');
  const age = (() => {
    try {
      return Date.now() - statSync(stamp).mtimeMs;
    } catch {
      return Infinity;
    }
  })();
  if (!force && age < listsFreshMs) return;
  await apt(config, ['update', '--error-on=any'], updateDeadlineMs);
  writeFileSync(stamp, '');
}

/** Takes these packages even if the machine has them, and what they need only if it lacks it. */
export const downloadArguments = (packages: readonly string[]): string[] => [
  '-y',
  '--download-only',
  '--no-install-recommends',
  '--reinstall',
  'install',
  ...packages,
];

/**
 * Downloads the packages, with the dependencies that the machine lacks, and unpacks them into
 * `prefix`, which appears only when it is complete. The caller holds the lock of the suite.
 */
export async function unpackPackages(
  packages: readonly string[],
  suite: Suite,
  cacheFolder: string,
  prefix: string,
): Promise<void> {
  const config = preparePrivateApt(suite, cacheFolder);
  const archives = join(config.folder, 'cache', 'archives');
  const debs = (): string[] => readdirSync(archives).filter((name) => name.endsWith('.deb'));
  // Packages left by an earlier download would be unpacked too.
  for (const name of debs()) rmSync(join(archives, name));

  const install = downloadArguments(packages);
  await updateLists(config, false);
  try {
    await apt(config, install, downloadDeadlineMs);
  } catch {
    // Outdated lists may name packages that the archive has replaced since.
    await updateLists(config, true);
    await apt(config, install, downloadDeadlineMs);
  }
  const temporary = `${prefix}.unpack-${randomBytes(6).toString('hex')}`;
  mkdirSync(temporary, { recursive: true });
  try {
    for (const name of debs()) {
      const ran = await run('dpkg', ['-x', join(archives, name), temporary], { deadlineMs: unpackDeadlineMs });
      if (ran.code !== 0) throw explain(`dpkg -x ${name}`, ran);
    }
    rmSync(prefix, { recursive: true, force: true });
    renameSync(temporary, prefix);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
    for (const name of debs()) rmSync(join(archives, name));
  }
}

/** The last resort: as root, installs the packages into the system, from the machine's release. */
export async function installPackages(packages: readonly string[]): Promise<void> {
  if (process.getuid?.() !== 0) throw new AptUnavailable('installing packages needs root');
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' };
  const steps = [['update'], ['-y', '--no-install-recommends', 'install', ...packages]];
  for (const args of steps) {
    const ran = await run('apt-get', ['-q', ...args], { deadlineMs: downloadDeadlineMs, env });
    if (ran.code !== 0) throw explain(`apt-get ${args[0]}`, ran);
  }
}
