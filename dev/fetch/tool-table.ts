/** The servers and programs that Longshore needs besides Node, and how to obtain each. */
import type { Suite } from './apt.ts';

export type Version = readonly [major: number, minor: number];

export interface ToolEntry {
  /**
   * Environment variable with the path of the executable; it overrides every other way to find the
   * tool.
   */
  readonly variable: string;
  /** The tool counts as found only if all of these are; the first is the tool itself. */
  readonly executables: readonly string[];
  /** Undefined if the tool does not print a version; then it only has to run. */
  readonly minimum: Version | undefined;
  readonly versionArguments: readonly string[];
  /** Its first two groups are the version, if there is a minimum. */
  readonly versionPattern: RegExp;
  /**
   * The executable must be statically linked, because it is copied into container images without
   * libraries.
   */
  readonly static?: true;
  /** Files that the tool loads while it runs, relative to the root of its installation. */
  readonly files?: readonly string[];
  /**
   * Folders of its executables that are usually not on PATH, relative to the root of its
   * installation.
   */
  readonly folders?: readonly string[];
  /** Only some tests use it. They are skipped if it can't be obtained (in CI they fail). */
  readonly optional?: true;
  /** Only `npm run bench` uses it. */
  readonly benchmark?: true;
  /**
   * The packages with what the tool looks for beside itself: its programs, data, plugins and
   * helpers. All are unpacked, even those that the machine has installed. Of what else they depend
   * on, such as shared libraries, only what the machine lacks is unpacked.
   */
  readonly packages: readonly string[];
  readonly suite: Suite;
  /** Way to obtain it on a system without Debian packages. */
  readonly elsewhere: string;
}

export const tools = {
  'nats-server': {
    variable: 'LONGSHORE_NATS_SERVER',
    executables: ['nats-server'],
    // Version 2.12 introduced atomic batches, per-message TTL and fences by another subject; older
    // servers silently ignore them.
    minimum: [2, 12],
    versionArguments: ['--version'],
    versionPattern: /v?(\d+)\.(\d+)\.\d+/,
    packages: ['nats-server'],
    suite: 'sid',
    elsewhere: 'brew install nats-server, or the release page of the project nats-io/nats-server',
  },
  'redis-server': {
    variable: 'LONGSHORE_REDIS_SERVER',
    executables: ['redis-server'],
    minimum: [6, 2],
    versionArguments: ['--version'],
    versionPattern: /v=(\d+)\.(\d+)/,
    // The program is a link to one of redis-tools.
    packages: ['redis-server', 'redis-tools'],
    suite: 'release',
    elsewhere: 'brew install redis, or the package "redis" of your distribution',
  },
  dockerd: {
    variable: 'LONGSHORE_DOCKERD',
    executables: ['dockerd', 'containerd', 'containerd-shim-runc-v2', 'runc', 'iptables'],
    minimum: [20, 10],
    versionArguments: ['--version'],
    versionPattern: /version (\d+)\.(\d+)/,
    // docker-init is a link to a program of tini.
    packages: ['docker.io', 'containerd', 'runc', 'tini', 'iptables'],
    suite: 'release',
    elsewhere: 'install and start Docker Engine (or Docker Desktop), or point DOCKER_HOST at an engine',
  },
  'docker-registry': {
    variable: 'LONGSHORE_REGISTRY',
    executables: ['docker-registry'],
    minimum: [2, 7],
    versionArguments: ['--version'],
    versionPattern: /v?(\d+)\.(\d+)\.\d+/,
    packages: ['docker-registry'],
    suite: 'release',
    elsewhere: 'the release page of the project distribution/distribution (its program is named "registry")',
  },
  busybox: {
    variable: 'LONGSHORE_BUSYBOX',
    executables: ['busybox'],
    minimum: [1, 30],
    versionArguments: [],
    versionPattern: /BusyBox v(\d+)\.(\d+)/,
    static: true,
    packages: ['busybox-static'],
    suite: 'release',
    elsewhere: 'a statically linked BusyBox for Linux, of the architecture that the Docker engine runs',
  },
  'docker-compose': {
    variable: 'LONGSHORE_COMPOSE',
    executables: ['docker-compose'],
    // The release of Debian 12 has version 1, which reads another form of the file.
    minimum: [2, 20],
    versionArguments: ['version'],
    versionPattern: /v?(\d+)\.(\d+)\.\d+/,
    folders: ['usr/libexec/docker/cli-plugins'],
    optional: true,
    packages: ['docker-compose'],
    suite: 'sid',
    elsewhere: 'the release page of the project docker/compose',
  },
  promtool: {
    variable: 'LONGSHORE_PROMTOOL',
    executables: ['promtool', 'prometheus'],
    minimum: [2, 40],
    versionArguments: ['--version'],
    versionPattern: /version (\d+)\.(\d+)/,
    packages: ['prometheus'],
    suite: 'release',
    elsewhere: 'brew install prometheus, or the release page of the project prometheus/prometheus',
  },
  openssl: {
    variable: 'LONGSHORE_OPENSSL',
    executables: ['openssl'],
    minimum: [3, 0],
    versionArguments: ['version'],
    versionPattern: /OpenSSL (\d+)\.(\d+)/,
    optional: true,
    packages: ['openssl'],
    suite: 'release',
    elsewhere: 'brew install openssl@3, or the package "openssl" of your distribution',
  },
  pk12util: {
    variable: 'LONGSHORE_PK12UTIL',
    executables: ['pk12util', 'certutil'],
    minimum: undefined,
    versionArguments: [],
    versionPattern: /pk12util -i importfile/,
    optional: true,
    packages: ['libnss3-tools'],
    suite: 'release',
    elsewhere: 'brew install nss, or the package "nss-tools" of your distribution',
  },
  ip: {
    variable: 'LONGSHORE_IP',
    executables: ['ip'],
    minimum: [5, 0],
    versionArguments: ['-V'],
    versionPattern: /iproute2-v?(\d+)\.(\d+)/,
    optional: true,
    packages: ['iproute2'],
    suite: 'release',
    elsewhere: 'the package "iproute2" of your distribution (Linux alone)',
  },
  ping: {
    variable: 'LONGSHORE_PING',
    executables: ['ping'],
    minimum: [2015, 0],
    versionArguments: ['-V'],
    versionPattern: /iputils[ -]s?(\d{4})(\d{4})/,
    optional: true,
    packages: ['iputils-ping'],
    suite: 'release',
    elsewhere: 'the package "iputils" of your distribution (Linux alone)',
  },
  nft: {
    variable: 'LONGSHORE_NFT',
    executables: ['nft'],
    minimum: [0, 9],
    versionArguments: ['--version'],
    versionPattern: /nftables v(\d+)\.(\d+)/,
    optional: true,
    packages: ['nftables'],
    suite: 'release',
    elsewhere: 'the package "nftables" of your distribution (Linux alone)',
  },
  haproxy: {
    variable: 'LONGSHORE_HAPROXY',
    executables: ['haproxy'],
    minimum: [2, 4],
    versionArguments: ['-v'],
    versionPattern: /HAProxy version (\d+)\.(\d+)/,
    optional: true,
    packages: ['haproxy'],
    suite: 'release',
    elsewhere: 'brew install haproxy, or the package "haproxy" of your distribution',
  },
  nginx: {
    variable: 'LONGSHORE_NGINX',
    executables: ['nginx'],
    minimum: [1, 18],
    versionArguments: ['-v'],
    versionPattern: /nginx version: nginx\/(\d+)\.(\d+)/,
    optional: true,
    packages: ['nginx', 'nginx-common'],
    suite: 'release',
    elsewhere: 'brew install nginx, or the package "nginx" of your distribution',
  },
  buildah: {
    variable: 'LONGSHORE_BUILDAH',
    executables: ['buildah'],
    minimum: [1, 28],
    versionArguments: ['--version'],
    versionPattern: /buildah version (\d+)\.(\d+)/,
    optional: true,
    packages: ['buildah'],
    suite: 'release',
    elsewhere: 'the package "buildah" of your distribution (Linux alone)',
  },
  squid: {
    variable: 'LONGSHORE_SQUID',
    executables: ['squid'],
    minimum: [5, 0],
    versionArguments: ['-v'],
    versionPattern: /Squid Cache: Version (\d+)\.(\d+)/,
    optional: true,
    packages: ['squid', 'squid-common', 'squid-langpack'],
    suite: 'release',
    elsewhere: 'the package "squid" of your distribution',
  },
  // wg-quick is a script that runs sysctl.
  wg: {
    variable: 'LONGSHORE_WG',
    executables: ['wg', 'wg-quick', 'sysctl'],
    minimum: [1, 0],
    versionArguments: ['--version'],
    versionPattern: /wireguard-tools v(\d+)\.(\d+)/,
    optional: true,
    packages: ['wireguard-tools', 'procps'],
    suite: 'release',
    elsewhere: 'the package "wireguard-tools" of your distribution',
  },
  'wireguard-go': {
    variable: 'LONGSHORE_WIREGUARD_GO',
    executables: ['wireguard-go'],
    minimum: undefined,
    versionArguments: ['--version'],
    versionPattern: /wireguard-go v?\d/,
    optional: true,
    packages: ['wireguard-go'],
    suite: 'release',
    elsewhere: 'brew install wireguard-go, or the package "wireguard-go" of your distribution',
  },
  swanctl: {
    variable: 'LONGSHORE_SWANCTL',
    executables: ['swanctl', 'charon-systemd'],
    minimum: [5, 9],
    // `--version` would ask a daemon.
    versionArguments: ['--help'],
    versionPattern: /strongSwan (\d+)\.(\d+)\.\d+ swanctl/,
    optional: true,
    files: ['kernel-libipsec', 'vici', 'openssl', 'pkcs12', 'revocation'].map(
      (plugin) => `usr/lib/ipsec/plugins/libstrongswan-${plugin}.so`,
    ),
    packages: [
      'strongswan-swanctl',
      'charon-systemd',
      'strongswan-libcharon',
      'libcharon-extra-plugins',
      'libstrongswan',
      'libstrongswan-standard-plugins',
      'libstrongswan-extra-plugins',
    ],
    suite: 'release',
    elsewhere: 'strongSwan with its plugins kernel-libipsec, vici, openssl and pkcs12 (Linux alone)',
  },
  'chromium-headless-shell': {
    variable: 'LONGSHORE_CHROMIUM',
    executables: ['chromium-headless-shell'],
    minimum: [100, 0],
    versionArguments: ['--version', '--no-sandbox'],
    versionPattern: /Chromium (\d+)\.(\d+)\.\d+/,
    // The program in /usr/bin is a script that starts the one in this folder of the system.
    folders: ['usr/lib/chromium'],
    files: ['usr/lib/chromium/icudtl.dat'],
    optional: true,
    packages: ['chromium-headless-shell', 'chromium-common', 'fonts-dejavu-core'],
    suite: 'release',
    elsewhere: 'Chromium, with its path in the variable below',
  },
  // The C library of a newer Debian, whose loader starts programs that need it.
  'ld-linux-x86-64.so.2': {
    variable: 'LONGSHORE_LD_LINUX',
    executables: ['ld-linux-x86-64.so.2'],
    minimum: [2, 38],
    versionArguments: ['--version'],
    versionPattern: /version (\d+)\.(\d+)/,
    folders: ['usr/lib/x86_64-linux-gnu'],
    files: ['libc.so.6', 'libstdc++.so.6', 'libgcc_s.so.1'].map((name) => `usr/lib/x86_64-linux-gnu/${name}`),
    optional: true,
    packages: ['libc6', 'libstdc++6', 'libgcc-s1'],
    suite: 'sid',
    elsewhere: 'glibc 2.38 or newer, with its path in the variable below',
  },
  zsh: {
    variable: 'LONGSHORE_ZSH',
    executables: ['zsh'],
    minimum: [5, 0],
    versionArguments: ['--version'],
    versionPattern: /zsh (\d+)\.(\d+)/,
    optional: true,
    packages: ['zsh', 'zsh-common'],
    suite: 'release',
    elsewhere: 'the package "zsh" of your distribution',
  },
  fish: {
    variable: 'LONGSHORE_FISH',
    executables: ['fish'],
    minimum: [3, 1],
    versionArguments: ['--version'],
    versionPattern: /version (\d+)\.(\d+)/,
    optional: true,
    packages: ['fish', 'fish-common'],
    suite: 'release',
    elsewhere: 'brew install fish, or the package "fish" of your distribution',
  },
  wrk: {
    variable: 'LONGSHORE_WRK',
    executables: ['wrk'],
    minimum: [4, 1],
    versionArguments: ['--version'],
    versionPattern: /wrk (?:debian\/)?(\d+)\.(\d+)\.\d+/,
    benchmark: true,
    packages: ['wrk'],
    suite: 'release',
    elsewhere: 'brew install wrk, or the package "wrk" of your distribution',
  },
  postgres: {
    variable: 'LONGSHORE_POSTGRES',
    executables: ['postgres', 'initdb'],
    minimum: [15, 0],
    versionArguments: ['--version'],
    versionPattern: /\(PostgreSQL\) (\d+)\.(\d+)/,
    folders: ['usr/lib/postgresql/15/bin'],
    benchmark: true,
    packages: ['postgresql-15', 'postgresql-client-15'],
    suite: 'release',
    elsewhere: 'brew install postgresql@15, or the server package of PostgreSQL 15 or newer of your distribution',
  },
} as const satisfies Record<string, ToolEntry>;

export type ToolName = keyof typeof tools;

const entryOf = (name: ToolName): ToolEntry => tools[name];
/** The tools that a test run looks for. */
export const toolNames = (Object.keys(tools) as ToolName[]).filter((name) => entryOf(name).benchmark !== true);
export const isOptional = (name: ToolName): boolean => entryOf(name).optional === true;

export const atLeast = (version: Version, minimum: Version): boolean =>
  version[0] > minimum[0] || (version[0] === minimum[0] && version[1] >= minimum[1]);

/**
 * The error for a missing tool: its name, the reason why it was not found, and the two ways to
 * provide it.
 */
export function missingToolMessage(name: ToolName, entry: ToolEntry, reasons: readonly string[]): string {
  const { minimum, variable, packages, elsewhere, suite } = entry;
  const version = minimum === undefined ? '' : ` ${minimum.join('.')} or newer`;
  return [
    `${name}${version}${entry.static === true ? ', statically linked,' : ''} is required but could not be found or fetched:`,
    ...reasons.map((reason) => `  - ${reason}`),
    `Install it and put it on PATH: Debian package ${packages.join(' ')}${suite === 'sid' ? ' (from sid)' : ''}; elsewhere: ${elsewhere}.`,
    `Or set its path: ${variable}=/path/to/${name}`,
  ].join('\n');
}
