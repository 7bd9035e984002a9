/**
 * Removes what a container engine leaves behind when it is killed, or always: processes in its
 * cgroup, mounts below its folders, its bridges and their firewall rules. Each is recognised by
 * something that only this engine has.
 */
import { readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { currentRoutes, type Route } from '../../host-agent/network/routes.ts';
import { sleep } from '../../lib/time/backoff.ts';
import { overlap, parseCidr } from '../../schemas/cidr.ts';
import type { EngineRemains } from '../process/ledger.ts';
import { processName, signalProcess } from '../process/proc.ts';
import { run } from '../process/run.ts';

const commandDeadlineMs = 10_000;
const killDeadlineMs = 5_000;
const pollMs = 50;

const cgroupRoot = '/sys/fs/cgroup';

const readLines = (path: string): string[] => {
  try {
    return readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
  } catch {
    return [];
  }
};

const subfolders = (path: string): string[] => {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(path, entry.name));
  } catch {
    return [];
  }
};

/** The folder and all folders below it, deepest first. */
const tree = (path: string): string[] => [...subfolders(path).flatMap(tree), path];

/**
 * The engine's cgroup in each hierarchy: below the root (version 2), or below each controller
 * (version 1).
 */
const cgroupFolders = (cgroup: string): string[] =>
  [cgroupRoot, ...subfolders(cgroupRoot)]
    .map((hierarchy) => join(hierarchy, cgroup))
    .filter(
      (folder) => readLines(join(folder, 'cgroup.procs')).length > 0 || subfolders(folder).length > 0 || exists(folder),
    );

const exists = (folder: string): boolean => {
  try {
    readdirSync(folder);
    return true;
  } catch {
    return false;
  }
};

async function killCgroup(cgroup: string): Promise<void> {
  const end = performance.now() + killDeadlineMs;
  while (performance.now() < end) {
    const folders = cgroupFolders(cgroup).flatMap(tree);
    const pids = new Set(folders.flatMap((folder) => readLines(join(folder, 'cgroup.procs'))).map(Number));
    const alive = [...pids].flatMap((pid) => processName(pid) ?? []);
    if (alive.length === 0) break;
    for (const name of alive) signalProcess(name, 'SIGKILL');
    // A frozen process (of a paused container) acts on SIGKILL only after it is thawed.
    for (const folder of folders) thaw(folder);
    await sleep(pollMs);
  }
  for (const folder of cgroupFolders(cgroup).flatMap(tree)) {
    try {
      rmdirSync(folder);
    } catch {
      // The kernel may still hold the cgroup; an empty one does no harm.
    }
  }
}

function thaw(folder: string): void {
  for (const [file, word] of [
    ['freezer.state', 'THAWED'],
    ['cgroup.freeze', '0'],
  ] as const) {
    try {
      writeFileSync(join(folder, file), word, { flag: 'r+' });
    } catch {
      // This hierarchy does not have this file.
    }
  }
}

/**
 * Mount points at or below the folder, last mounted first (proc(5): the fifth field, with octal
 * escapes).
 */
export function mountsBelow(mountinfo: string, folder: string): string[] {
  return mountinfo
    .split('\n')
    .map((line) =>
      (line.split(' ')[4] ?? '').replace(/\\([0-7]{3})/g, (_, octal: string) =>
        String.fromCharCode(parseInt(octal, 8)),
      ),
    )
    .filter((point) => point === folder || point.startsWith(`${folder}/`))
    .toReversed();
}

async function unmountBelow(folder: string): Promise<void> {
  // Several rounds: a mount can hide others, which appear once it is gone.
  for (let round = 0; round < 3; round++) {
    const points = mountsBelow(readLines('/proc/self/mountinfo').join('\n'), folder);
    if (points.length === 0) return;
    for (const point of points) await run('umount', ['-l', point], { deadlineMs: commandDeadlineMs });
  }
}

/** @param pool from which an engine takes the addresses of its networks */
export const routesIn = (pool: string, routes: readonly Route[] = currentRoutes()): Route[] => {
  const range = parseCidr(pool);
  return range === undefined ? [] : routes.filter(({ network }) => overlap(network, range));
};

const bridgesIn = (pool: string): string[] => [
  ...new Set(
    routesIn(pool)
      .filter(({ device }) => /^(br-|docker)/.test(device))
      .map(({ device }) => device),
  ),
];

/**
 * Turns a rule as `iptables -S` prints it into the arguments that delete it; undefined if the rule
 * does not name the device.
 */
export function deletionOf(rule: string, device: string): string[] | undefined {
  const words = rule.match(/"[^"]*"|\S+/g)?.map((word) => word.replace(/^"|"$/g, '')) ?? [];
  return words[0] === '-A' && words.includes(device) ? ['-D', ...words.slice(1)] : undefined;
}

async function command(remains: EngineRemains, program: readonly string[], args: readonly string[]): Promise<string> {
  const [path = '', ...first] = program;
  const ran = await run(path, [...first, ...args], {
    deadlineMs: commandDeadlineMs,
    env: { ...process.env, ...remains.env },
  });
  return ran.stdout;
}

/**
 * Deletes the firewall rules that name a bridge of this engine. Does nothing for an engine that
 * keeps no firewall rules.
 */
export async function removeRules(remains: EngineRemains): Promise<void> {
  const { iptables } = remains;
  if (iptables === undefined) return;
  for (const device of bridgesIn(remains.addressPool)) {
    for (const table of ['filter', 'nat']) {
      const rules = (await command(remains, iptables, ['-w', '5', '-t', table, '-S'])).split('\n');
      for (const rule of rules.flatMap((text) => [deletionOf(text, device) ?? []].filter((args) => args.length > 0))) {
        await command(remains, iptables, ['-w', '5', '-t', table, ...rule]);
      }
    }
  }
}

async function removeBridges(remains: EngineRemains): Promise<void> {
  const { ip } = remains;
  if (ip === undefined) return;
  for (const device of bridgesIn(remains.addressPool)) await command(remains, ip, ['link', 'del', 'dev', device]);
}

/**
 * Clears what is left of an engine whose own processes have ended. Something that is already gone
 * is not an error.
 */
export async function sweepEngine(remains: EngineRemains): Promise<void> {
  await killCgroup(remains.cgroup);
  for (const folder of remains.folders) await unmountBelow(folder);
  await removeRules(remains);
  await removeBridges(remains);
}
