/**
 * Finds a tool: its path may be set in the environment; otherwise it is searched on PATH and in the
 * cache, then fetched into the cache. The system is changed only if nothing else works and this
 * process runs as root (see `installPackages`).
 */
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  closeSync,
  readFileSync,
  readSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { installPackages, unpackPackages } from './apt.ts';
import { takeLock } from '../process/lockdir.ts';
import { run } from '../process/run.ts';
import { cacheFolder } from '../paths.ts';
import { atLeast, missingToolMessage, tools, type ToolEntry, type ToolName, type Version } from './tool-table.ts';

const versionDeadlineMs = 20_000;
/** Longer than the slowest fetch by another process. */
const fetchLockDeadlineMs = 900_000;

export interface Tool {
  readonly name: ToolName;
  readonly path: string;
  readonly version: string;
  readonly origin: 'environment' | 'path' | 'cache' | 'fetched' | 'installed';
  /** Environment in which the tool and its child processes find their programs and libraries. */
  readonly env: NodeJS.ProcessEnv;
}

/** The part of a tool that is needed to run it. */
export type ServerTool = Pick<Tool, 'path' | 'env'>;

export class ToolMissing extends Error {}

export interface FindOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly cacheFolder: string;
  /** If false, only searches and never downloads. */
  readonly fetch?: boolean;
  /** Called before something slow, with what it is. */
  readonly report?: (what: string) => void;
}

const systemFolders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/**
 * The folders of PATH and those of system programs, which Debian leaves out of an ordinary user's
 * PATH.
 */
const searchFolders = (env: NodeJS.ProcessEnv): string[] => [
  ...new Set([...(env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== ''), ...systemFolders]),
];

function findExecutable(name: string, folders: readonly string[]): string | undefined {
  return folders
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/**
 * True if an ELF file has no program interpreter among its program headers, and so needs no dynamic
 * linker (ELF specification, 64-bit).
 */
export function isStaticElf(path: string): boolean {
  const head = Buffer.alloc(64 * 1024);
  const file = openSync(path, 'r');
  try {
    readSync(file, head, 0, head.length, 0);
  } finally {
    closeSync(file);
  }
  const elf64LittleEndian = head.readUInt32BE(0) === 0x7f454c46 && head[4] === 2 && head[5] === 1;
  if (!elf64LittleEndian) return false;
  const [offset, size, count] = [Number(head.readBigUInt64LE(32)), head.readUInt16LE(54), head.readUInt16LE(56)];
  const interpreter = 3;
  return Array.from({ length: count }, (_, index) => offset + index * size)
    .filter((at) => at + 4 <= head.length)
    .every((at) => head.readUInt32LE(at) !== interpreter);
}

/**
 * Paths of programs, searched on the PATH of `env` and in the system's folders; undefined for each
 * that is missing.
 */
export const executablesOf = (names: readonly string[], env: NodeJS.ProcessEnv): (string | undefined)[] =>
  names.map((name) => findExecutable(name, searchFolders(env)));

type Probe = { readonly ok: true; readonly tool: Tool } | { readonly ok: false; readonly reason: string };

async function probe(name: ToolName, path: string, env: NodeJS.ProcessEnv, origin: Tool['origin']): Promise<Probe> {
  const entry: ToolEntry = tools[name];
  const no = (reason: string): Probe => ({ ok: false, reason: `${path}: ${reason}` });
  try {
    const ran = await run(path, entry.versionArguments, { deadlineMs: versionDeadlineMs, env });
    const match = entry.versionPattern.exec(ran.stdout + ran.stderr);
    if (match === null) return no(`printed no version (${(ran.stderr || ran.stdout).trim().slice(0, 200)})`);
    if (entry.static === true && !isStaticElf(path)) return no('is not statically linked');
    if (entry.minimum === undefined)
      return { ok: true, tool: { name, path, version: 'of unknown version', origin, env } };
    const version: Version = [Number(match[1]), Number(match[2])];
    if (!atLeast(version, entry.minimum))
      return no(`version ${version.join('.')} is older than ${entry.minimum.join('.')}`);
    const text = /\d+\.\d+(\.\d+)?/.exec(match[0])?.[0] ?? version.join('.');
    return { ok: true, tool: { name, path, version: text, origin, env } };
  } catch (error) {
    return no((error as Error).message);
  }
}

const withPath = (env: NodeJS.ProcessEnv, folders: readonly string[]): NodeJS.ProcessEnv => ({
  ...env,
  PATH: folders.join(delimiter),
});

const ownFolders = (entry: ToolEntry, root: string): string[] =>
  (entry.folders ?? []).map((folder) => join(root, folder));

/**
 * The environment for tools of an unpacked prefix: its programs first on PATH, its libraries before
 * the system's.
 */
function prefixEnvironment(
  entry: ToolEntry,
  prefix: string,
  env: NodeJS.ProcessEnv,
): { folders: string[]; env: NodeJS.ProcessEnv } {
  const usual = ['usr/local/bin', 'usr/sbin', 'usr/bin', 'sbin', 'bin', 'usr/libexec/docker'];
  const inside = [...ownFolders(entry, prefix), ...usual.map((name) => join(prefix, name))];
  const libraries = ['usr/lib', 'lib'].flatMap((name) => {
    const folder = join(prefix, name);
    const own = existsSync(folder)
      ? readdirSync(folder).filter((entry) => entry.endsWith('-linux-gnu') || entry === 'ipsec')
      : [];
    return own.map((entry) => join(folder, entry));
  });
  // Libraries find this one by a path that holds only where it is installed.
  const pulse = libraries.map((folder) => join(folder, 'pulseaudio')).filter((folder) => existsSync(folder));
  const xtables = libraries.map((folder) => join(folder, 'xtables')).find((folder) => existsSync(folder));
  const strongswanConf = join(prefix, 'etc/strongswan.conf');
  const folders = [...inside, ...searchFolders(env)];
  return {
    folders,
    env: {
      ...withPath(env, folders),
      ...(libraries.length === 0
        ? {}
        : {
            LD_LIBRARY_PATH: [...libraries, ...pulse, env['LD_LIBRARY_PATH']]
              .filter((part) => part !== undefined)
              .join(delimiter),
          }),
      ...(xtables === undefined ? {} : { XTABLES_LIBDIR: xtables }),
      ...(existsSync(strongswanConf) ? { STRONGSWAN_CONF: strongswanConf } : {}),
    },
  };
}

/**
 * Picks one of the two iptables variants, as the package's installation scripts would. The kernel
 * applies the rules of both, and a packet must pass both, so this picks the one that already holds
 * rules.
 */
async function linkIptables(prefix: string, env: NodeJS.ProcessEnv): Promise<void> {
  const folder = join(prefix, 'usr/sbin');
  if (!existsSync(join(folder, 'iptables-nft'))) return;
  // Only root can list rules, and only root runs iptables.
  if (process.getuid?.() !== 0 && existsSync(join(folder, 'iptables'))) return;
  const legacyTables = readIfThere('/proc/net/ip_tables_names');
  const rules = async (variant: string, table: string): Promise<string[] | undefined> => {
    const ran = await run(join(folder, `iptables-${variant}`), ['-t', table, '-S'], {
      deadlineMs: versionDeadlineMs,
      env,
    });
    return ran.code === 0 ? ran.stdout.trim().split('\n') : undefined;
  };
  // Listing rules of the legacy variant would create its tables, so it is asked only if they exist.
  const legacyRules = /^filter$/m.test(legacyTables) ? ((await rules('legacy', 'filter')) ?? []) : [];
  const legacyIsUsed = legacyRules.some((rule) => !/^-P \w+ ACCEPT$/.test(rule));
  const variant = !legacyIsUsed && (await rules('nft', 'nat')) !== undefined ? 'nft' : 'legacy';
  for (const family of ['iptables', 'ip6tables']) {
    for (const suffix of ['', '-save', '-restore'])
      relink(`${family}-${variant}${suffix}`, join(folder, family + suffix));
  }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Replaces the link atomically: another process may be starting the program. */
function relink(target: string, path: string): void {
  const temporary = `${path}.new-${process.pid}`;
  rmSync(temporary, { force: true });
  symlinkSync(target, temporary);
  renameSync(temporary, path);
}

const absentFile = (entry: ToolEntry, root: string): string | undefined =>
  entry.files?.find((file) => !existsSync(join(root, file)));

async function probePrefix(
  name: ToolName,
  prefix: string,
  env: NodeJS.ProcessEnv,
  origin: Tool['origin'],
): Promise<Probe> {
  const entry: ToolEntry = tools[name];
  const surroundings = prefixEnvironment(entry, prefix, env);
  if (entry.executables.includes('iptables')) await linkIptables(prefix, surroundings.env);
  const missing = entry.executables.find(
    (executable) => findExecutable(executable, surroundings.folders) === undefined,
  );
  const path = findExecutable(entry.executables[0]!, surroundings.folders);
  if (missing !== undefined || path === undefined) return { ok: false, reason: `${prefix}: ${missing} is missing` };
  const absent = absentFile(entry, prefix);
  if (absent !== undefined) return { ok: false, reason: `${prefix}: ${absent} is missing` };
  return probe(name, path, surroundings.env, origin);
}

async function probePath(name: ToolName, env: NodeJS.ProcessEnv, origin: Tool['origin']): Promise<Probe> {
  const entry: ToolEntry = tools[name];
  const folders = [...searchFolders(env), ...ownFolders(entry, '/')];
  const missing = entry.executables.find((executable) => findExecutable(executable, folders) === undefined);
  const path = findExecutable(entry.executables[0]!, folders);
  if (missing !== undefined || path === undefined) return { ok: false, reason: `no ${missing} on PATH` };
  const absent = absentFile(entry, '/');
  if (absent !== undefined) return { ok: false, reason: `${path}: /${absent} is missing` };
  return probe(name, path, withPath(env, folders), origin);
}

/**
 * Finds the tool; fetches it unless `fetch` is false.
 * @throws ToolMissing with a message that says what to install and which variable sets the path.
 */
export async function findTool(name: ToolName, options: FindOptions): Promise<Tool> {
  const entry: ToolEntry = tools[name];
  const { env } = options;
  const reasons: string[] = [];
  const take = (result: Probe): Tool | undefined => {
    if (result.ok) return result.tool;
    reasons.push(result.reason);
    return undefined;
  };

  const named = env[entry.variable];
  if (named !== undefined && named !== '') {
    const folders = [dirname(named), ...searchFolders(env)];
    const tool = take(await probe(name, named, withPath(env, folders), 'environment'));
    // No fallback: using another tool than the one set would hide a mistake.
    if (tool === undefined) throw new ToolMissing(missingToolMessage(name, entry, reasons));
    return tool;
  }

  const onPath = take(await probePath(name, env, 'path'));
  if (onPath !== undefined) return onPath;

  const prefix = join(options.cacheFolder, 'tools', name);
  const fromCache = async (): Promise<Tool | undefined> =>
    existsSync(prefix) ? take(await probePrefix(name, prefix, env, 'cache')) : undefined;
  const cached = await fromCache();
  if (cached !== undefined) return cached;
  if (options.fetch === false) throw new ToolMissing(missingToolMessage(name, entry, reasons));

  const lock = await takeLock(
    join(options.cacheFolder, `fetch-${entry.suite}.lock`),
    fetchLockDeadlineMs,
    `fetching ${name}`,
  );
  try {
    // Another process may have fetched it in the meantime.
    const meanwhile = await fromCache();
    if (meanwhile !== undefined) return meanwhile;
    options.report?.(`fetching ${name} (Debian package ${entry.packages.join(', ')})`);
    const fetched = take(await fetchTool(name, entry, options, prefix));
    if (fetched !== undefined) return fetched;
    const installed = take(await installTool(name, entry, options));
    if (installed !== undefined) return installed;
  } finally {
    lock.release();
  }
  throw new ToolMissing(missingToolMessage(name, entry, reasons));
}

async function fetchTool(name: ToolName, entry: ToolEntry, options: FindOptions, prefix: string): Promise<Probe> {
  const folder = dirname(prefix);
  mkdirSync(folder, { recursive: true });
  for (const left of readdirSync(folder).filter((item) => item.startsWith(`${basename(prefix)}.unpack-`))) {
    rmSync(join(folder, left), { recursive: true, force: true });
  }
  try {
    await unpackPackages(entry.packages, entry.suite, options.cacheFolder, prefix);
  } catch (error) {
    return { ok: false, reason: `fetching: ${(error as Error).message}` };
  }
  return probePrefix(name, prefix, options.env, 'fetched');
}

async function installTool(name: ToolName, entry: ToolEntry, options: FindOptions): Promise<Probe> {
  // A package from sid would upgrade the machine's C library.
  if (entry.suite === 'sid') return { ok: false, reason: 'not installed into this system, because it comes from sid' };
  try {
    options.report?.(`installing ${entry.packages.join(', ')} into this system, because unpacking failed`);
    await installPackages(entry.packages);
  } catch (error) {
    return { ok: false, reason: `installing: ${(error as Error).message}` };
  }
  return probePath(name, options.env, 'installed');
}

/**
 * Finds a tool with this process's environment and cache. For tests, and for code that starts a
 * single server.
 */
export const toolHere = (name: ToolName): Promise<Tool> =>
  findTool(name, { env: process.env, cacheFolder: cacheFolder(process.env) });
