/** The engine: whether it answers, and which of its settings the agent has to know. */
import Type, { type Static } from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { limits } from '../../schemas/limits.ts';
import { createEngineClient, parse, type Labels } from '../docker/calls/client.ts';
import { containerCalls, type ContainerCalls } from '../docker/calls/containers.ts';
import { networkCalls } from '../docker/calls/networks.ts';
import type { Network } from '../docker/answers.ts';
import { EngineError } from '../docker/errors.ts';
import type { EngineAddress, Transport } from '../docker/transport.ts';
import { hasSandboxProgram } from '../sandbox/image.ts';
import type { DaemonSettings } from './daemon.ts';
import { reasonOf } from '../commands/reason.ts';
import { fail, ok, warn, type Finding } from './finding.ts';
import { judgeShims, leftShims, type Shim } from './shims.ts';

/** Running containers, the newest, that the engine is asked for figures of. */
const doctorContainersAsked = 3;
/** Layers that the engine may fetch at a time: eight pulls of many layers. */
const doctorDownloads = 64;

const Texts = Type.Optional(Type.Union([Type.Array(Type.String()), Type.Null()]));

/** `GET /info`. */
const EngineInfo = Type.Object({
  Driver: Type.Optional(Type.String()),
  CgroupVersion: Type.Optional(Type.String()),
  CgroupDriver: Type.Optional(Type.String()),
  LoggingDriver: Type.Optional(Type.String()),
  SecurityOptions: Texts,
  LiveRestoreEnabled: Type.Optional(Type.Boolean()),
  DockerRootDir: Type.Optional(Type.String()),
  Architecture: Type.Optional(Type.String()),
  MemoryLimit: Type.Optional(Type.Boolean()),
  CpuCfsQuota: Type.Optional(Type.Boolean()),
  PidsLimit: Type.Optional(Type.Boolean()),
  Plugins: Type.Optional(Type.Object({ Log: Texts })),
});
export type EngineInfo = Static<typeof EngineInfo>;
const decodeInfo = decoder(EngineInfo);

/** `GET /containers/json` */
const Port = Type.Object({ PublicPort: Type.Optional(Type.Integer()) });
const decodeRunning = decoder(
  Type.Array(Type.Object({ Id: Type.String(), Ports: Type.Optional(Type.Union([Type.Array(Port), Type.Null()])) })),
);

export interface EngineFacts {
  /** Such as `docker 28.5.2, API 1.51`. */
  readonly version: string;
  readonly info: EngineInfo;
  /** Ports of the host that the engine's containers publish. */
  readonly published: ReadonlySet<number>;
  /** Networks of this host's containers. */
  readonly networks: readonly Network[];
  /** `true` if the engine has figures of the newest containers; `undefined` if none runs. */
  readonly hasFigures: boolean | undefined;
  /** Shims of containerd that the engine has left behind on this machine. */
  readonly shims: readonly Shim[];
}

/**
 * @param labels of this host's networks; `undefined` if the host has not joined
 * @param isEngineHere `true` if the engine's processes are on this machine
 * @throws EngineError
 */
export async function askEngine(
  transport: Transport,
  labels: Labels | undefined,
  isEngineHere: boolean,
): Promise<EngineFacts> {
  const client = createEngineClient(transport);
  const version = await client.negotiate(limits.engineProbeMs);
  const call = { method: 'GET', deadlineMs: limits.engineProbeMs } as const;
  const info = parse('info', decodeInfo, await client.ask({ ...call, name: 'info', path: '/info' }, [200]));
  const keep = [{ Id: true, Ports: [{ PublicPort: true }] }] as const;
  const name = 'container list';
  const running = parse(
    name,
    decodeRunning,
    await client.ask({ ...call, name, path: '/containers/json', keep }, [200]),
  );
  const ids = async (): Promise<ReadonlySet<string>> => {
    const all = { ...call, name, path: '/containers/json?all=1', keep: [{ Id: true }] } as const;
    return new Set(parse(name, decodeRunning, await client.ask(all, [200])).map(({ Id }) => Id));
  };
  const shims = isEngineHere ? await leftShims(ids) : [];
  const ports = running.flatMap(({ Ports }) => (Ports ?? []).flatMap(({ PublicPort }) => PublicPort ?? []));
  const networks = labels === undefined ? [] : await networkCalls(client).networks(labels);
  const hasFigures = await hasFiguresOf(containerCalls(client), running);
  const named = `${version}, API ${client.api() ?? '?'}`;
  return { version: named, info, published: new Set(ports), networks, hasFigures, shims };
}

/**
 * Asks about several containers, because the engine rightly has no figures of one that has just
 * ended.
 */
async function hasFiguresOf(
  { stats }: Pick<ContainerCalls, 'stats'>,
  running: readonly { readonly Id: string }[],
): Promise<boolean | undefined> {
  const newest = running.slice(0, doctorContainersAsked);
  const asked = newest.map(({ Id }) => stats(Id, limits.engineProbeMs).catch(() => undefined));
  if (asked.length === 0) return undefined;
  return (await Promise.all(asked)).some((each) => each?.memory_stats.usage !== undefined);
}

export const nameOf = (address: EngineAddress): string =>
  address.kind === 'unix' ? address.socketPath : `${address.host}:${address.port}`;

/** The finding for an engine that was asked and gave no facts. */
export function engineFault(error: unknown, address: EngineAddress): Finding {
  const where = nameOf(address);
  const said = fail.bind(undefined, 'engine');
  const { cause } = error as { cause?: { code?: unknown } };
  switch (cause?.code) {
    case 'EACCES':
    case 'EPERM':
      return said(
        `this user may not use the socket ${where}`,
        'run as a user of the group docker (SupplementaryGroups=docker in the unit)',
      );
    case 'ENOENT':
      return said(`there is no socket ${where}`, 'install and start the engine, or correct DOCKER_HOST');
    case 'ECONNREFUSED':
      return said(`nothing listens at ${where}`, 'start the engine: systemctl status docker');
  }
  if (error instanceof EngineError && error.fault.kind === 'deadline') {
    return said(
      `the engine at ${where} accepts connections and does not answer`,
      'look for a full disk or a hanging mount, then restart dockerd (docs/runbook.md, Hanging engine)',
    );
  }
  if (error instanceof EngineError && error.fault.kind === 'malformed') {
    return said(error.detail, 'install an engine that speaks these versions (docs/engines.md)');
  }
  if (error instanceof EngineError && error.fault.kind === 'refused') {
    return said(`${where} refuses: ${error.detail}`, 'look at dockerd’s log: journalctl -u docker');
  }
  return said(`the engine at ${where} does not answer: ${reasonOf(error)}`, 'systemctl status docker');
}

const isOption = (info: EngineInfo, name: string): boolean =>
  (info.SecurityOptions ?? []).some((option) => option === `name=${name}` || option.startsWith(`name=${name},`));

export const isRootless = (info: EngineInfo): boolean => isOption(info, 'rootless');

/** Drivers that engines up to 20.10 had, and later ones do not. */
const dropped = ['aufs', 'devicemapper', 'overlay'];

/** Pure. */
export function judgeEngine({ version, info, hasFigures, shims }: EngineFacts, daemon: DaemonSettings): Finding[] {
  return [
    ok('engine', `answers: ${version}`),
    storage(info),
    ...cgroups(info),
    ...figures(hasFigures),
    logDriver(info),
    isRootless(info)
      ? warn(
          'rootless',
          'the engine runs without root: its bridge is in a network namespace of its own, where the agent’s firewall does not reach, and ports below 1024 cannot be published',
          'run the engine as root, or set CONTAINER_FIREWALL=off and contain the containers yourself (docs/engines.md)',
        )
      : ok('rootless', 'the engine runs as root'),
    isOption(info, 'seccomp')
      ? ok('seccomp', 'containers have the engine’s seccomp profile')
      : warn('seccomp', 'containers have no seccomp profile', 'use a kernel and an engine with seccomp'),
    info.Architecture === undefined || hasSandboxProgram(info.Architecture)
      ? ok('architecture', `${info.Architecture ?? 'unknown'}`)
      : fail('architecture', `there is no sandbox for ${info.Architecture}`, 'set LONGSHORE_SANDBOX=off'),
    info.LiveRestoreEnabled === true
      ? ok('live-restore', 'containers survive a restart of dockerd')
      : warn(
          'live-restore',
          'when dockerd restarts, all containers of this host restart',
          'put "live-restore": true into daemon.json and reload dockerd',
        ),
    judgeShims(shims),
    ...daemonSettings(daemon),
  ];
}

function storage({ Driver: driver = 'unknown' }: EngineInfo): Finding {
  if (driver === 'vfs') {
    return warn('storage', 'driver vfs copies whole images for each container', 'use overlay2');
  }
  if (dropped.includes(driver)) {
    return warn('storage', `driver ${driver} is gone from newer engines`, 'move to overlay2 before you upgrade');
  }
  return ok('storage', `driver ${driver}`);
}

function cgroups(info: EngineInfo): Finding[] {
  const { CgroupVersion: version = 'unknown', CgroupDriver: driver = 'unknown' } = info;
  const limited = { memory: info.MemoryLimit, cpu: info.CpuCfsQuota, processes: info.PidsLimit };
  const missing = Object.entries(limited).flatMap(([what, isLimited]) => (isLimited === false ? [what] : []));
  if (driver === 'none' || missing.length > 0) {
    const what = driver === 'none' ? 'any resource' : missing.join(', ');
    return [
      fail(
        'cgroups',
        `version ${version}, driver ${driver}: the engine does not limit ${what}, so one container can take all`,
        'mount these cgroup controllers, or delegate them to a rootless engine (Delegate= of its unit)',
      ),
    ];
  }
  return [ok('cgroups', `version ${version}, driver ${driver}`)];
}

/**
 * containerd of cgroup v1 reads none of a container's cgroups if its mount namespace lacks one of
 * the kernel's hierarchies, such as one that a program has mounted in a namespace of its own.
 */
function figures(hasFigures: boolean | undefined): Finding[] {
  if (hasFigures === undefined) return [];
  if (hasFigures) return [ok('figures', 'the engine reads CPU and memory of its containers')];
  return [
    warn(
      'figures',
      'the engine can’t read the figures of its containers: `docker stats` is empty, and it reports none as out of memory; an agent on this machine reads both from the kernel',
      'a hierarchy of /proc/self/cgroup is not in /proc/$(pidof dockerd)/mountinfo (cgroup v1): mount it there below /sys/fs/cgroup, or unmount it where it is mounted; then restart the containers (docs/runbook.md, Host faults)',
    ),
  ];
}

/** Each container names its log driver, so the engine's default does not matter. */
function logDriver(info: EngineInfo): Finding {
  const drivers = info.Plugins?.Log;
  return drivers === undefined || drivers === null || drivers.includes('json-file')
    ? ok('log driver', `json-file for containers of this host; the engine’s default is ${info.LoggingDriver ?? '?'}`)
    : fail('log driver', 'the engine has no driver json-file', 'install a Docker Engine that has it');
}

function daemonSettings({ concurrentDownloads, userlandProxy, source }: DaemonSettings): Finding[] {
  if (source === undefined) {
    const says = 'max-concurrent-downloads and userland-proxy are not known: there is no dockerd to see here';
    return [warn('daemon.json', says, 'run the doctor on the engine’s machine')];
  }
  return [
    concurrentDownloads >= doctorDownloads
      ? ok('max-concurrent-downloads', `${concurrentDownloads}`)
      : warn(
          'max-concurrent-downloads',
          `${concurrentDownloads} (${source}): one slow registry holds up all pulls of this host`,
          'put "max-concurrent-downloads": 1024 into daemon.json and reload dockerd',
        ),
    userlandProxy
      ? warn(
          'userland-proxy',
          `on (${source}): each published port has a process outside its container’s limits`,
          'put "userland-proxy": false into daemon.json and restart dockerd',
        )
      : ok('userland-proxy', 'off'),
  ];
}
