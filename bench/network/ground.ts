/**
 * What the section works with: hosts that have nothing but the tenant network, network namespaces
 * in place of containers, and a process in each.
 */
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { ServerTool } from '../../dev/fetch/tools.ts';
import { pathWith } from '../../dev/fetch/wrappers.ts';
import { enter, markVariable, strike } from '../../dev/process/ledger.ts';
import { processesMarked } from '../../dev/process/proc.ts';
import { removeNamespace } from '../../dev/process/reap.ts';
import { run } from '../../dev/process/run.ts';
import { startTenantNetwork, type TenantNetwork } from '../../dev/servers/tenant-network.ts';
import { createTransport } from '../../host-agent/docker/transport.ts';
import { within } from '../../lib/time/backoff.ts';
import type { ContainerId, HostKey, TenantId } from '../../schemas/ids.ts';
import type { Attachment, DesiredNetwork, NamedMember, NetworkState } from '../../schemas/wire/net.ts';
import type { Scope } from '../../test/support/machine.ts';
import { statOf, ticksPerSecond } from '../usage.ts';
import type { Order, Orders } from './probe.ts';

const deadlineMs = 60_000;
export const ranges = { ipv4: '10.200.0.0/16', ipv6: 'fd5e:1:2::/48' };
export const tenant = 'bench' as TenantId;
/** Where `ip netns` keeps the files of namespaces. */
const namedFolder = '/run/netns';

export interface Place {
  /** The file of the network namespace. */
  readonly file: string;
  /** Runs a command in it. */
  must(...command: readonly string[]): Promise<string>;
  readonly probe: Orders;
}

export interface NetHost {
  readonly network: TenantNetwork;
  want(desired: Partial<DesiredNetwork>): Promise<NetworkState>;
  /** Of longshore-net, with all that it has run. */
  cpuSeconds(): number;
  /** Of its two resolvers. */
  resolverCpuSeconds(): number;
}

const cpuOf = (marks: readonly string[]): number =>
  marks
    .flatMap((mark) => processesMarked(markVariable, mark))
    .flatMap(({ pid }) => [11, 12, 13, 14].map((at) => Number(statOf(pid)[at])))
    .reduce((sum, ticks) => sum + ticks, 0) / ticksPerSecond;

export class Ground {
  readonly #scope: Scope;
  readonly #folder: string;
  readonly #tools: Readonly<Record<string, ServerTool>>;
  readonly #env: NodeJS.ProcessEnv;
  #hosts = 0;

  constructor(scope: Scope, folder: string, tools: Readonly<Record<string, ServerTool>>) {
    this.#scope = scope;
    this.#folder = folder;
    this.#tools = tools;
    // With LOG_LEVEL, wireguard-go keeps the pipes of its output open.
    const { LOG_LEVEL: _, PATH = '', ...inherited } = process.env;
    this.#env = { ...inherited, PATH: pathWith(join(folder, 'bin'), tools, PATH) };
  }

  readonly must = async (...[command = '', ...words]: readonly string[]): Promise<string> => {
    const ran = await run(command, words, { deadlineMs, env: this.#env });
    if (ran.code !== 0) throw new Error(`${command} ${words.join(' ')}: ${ran.stderr.trim()}`);
    return ran.stdout;
  };

  /** @param namespaces where the files of the namespaces of its containers are */
  async host(namespaces = namedFolder): Promise<NetHost> {
    const network = await startTenantNetwork({
      folder: join(this.#folder, `host-${++this.#hosts}`),
      namespaces,
      tools: this.#tools,
      path: this.#env['PATH'] ?? '',
      settings: { LOG_LEVEL: 'error' },
    });
    this.#scope.teardown(network.stop);
    const transport = createTransport({ kind: 'unix', socketPath: network.socket }, () => {});
    this.#scope.teardown(() => transport.close());
    const nothing: DesiredNetwork = {
      ...{ v: 1, owner: 'bench', ranges, mtu: 1420 },
      ...{ attached: [], members: [], vpn: [], mesh: null },
    };
    return {
      network,
      want: async (desired) => {
        const { status, body } = await transport.call({
          ...{ name: 'tenant network', method: 'PUT', path: '/network', deadlineMs },
          body: { type: 'application/json', bytes: Buffer.from(JSON.stringify({ ...nothing, ...desired })) },
        });
        if (status !== 200) throw new Error(`longshore-net: ${status} ${Buffer.from(body).toString()}`);
        const state = JSON.parse(Buffer.from(body).toString()) as NetworkState;
        const why = [...Object.values(state.attached), state.mesh?.message, ...Object.values(state.vpn)].find(Boolean);
        if (typeof why === 'string') throw new Error(`longshore-net: ${why}`);
        return state;
      },
      cpuSeconds: () => cpuOf([network.net.server().mark]),
      resolverCpuSeconds: () => cpuOf(network.names.map((name) => name.server().mark)),
    };
  }

  /** A namespace with IPv6 off and no interface, as a sandbox is. */
  async namespace(): Promise<Place> {
    const name = `lsb-${randomBytes(4).toString('hex')}`;
    enter({ kind: 'namespace', id: name, name });
    this.#scope.teardown(async () => {
      await removeNamespace(name);
      strike(name);
    });
    await this.must('ip', 'netns', 'add', name);
    const place = this.place(join(namedFolder, name));
    const off = ['lo', 'default'].map((on) => `echo 1 > /proc/sys/net/ipv6/conf/${on}/disable_ipv6`);
    await place.must('sh', '-c', [...off, 'ip link set lo up'].join(' && '));
    return place;
  }

  /** A process in the namespace of this file. */
  place(file: string): Place {
    const child = fork(join(import.meta.dirname, 'probe.js'), [], {
      execPath: 'nsenter',
      execArgv: [`--net=${file}`, process.execPath],
    });
    this.#scope.teardown(() => child.kill('SIGKILL'));
    // One listener for each order that is under way.
    child.setMaxListeners(0);
    let asked = 0;
    const ask = <K extends keyof Orders>(order: Order & { readonly kind: K }): ReturnType<Orders[K]> => {
      const number = ++asked;
      type Answer = { readonly number: number; readonly error?: string; readonly value: unknown };
      const answer = new Promise((resolve, reject) => {
        const hear = (said: Answer): void => {
          if (said.number !== number) return;
          child.off('message', hear);
          if (said.error === undefined) resolve(said.value);
          else reject(new Error(said.error));
        };
        child.on('message', hear);
        child.send({ number, order });
      });
      return within(answer, deadlineMs, order.kind) as ReturnType<Orders[K]>;
    };
    return {
      file,
      must: (...command) => this.must('nsenter', `--net=${file}`, ...command),
      probe: {
        listen: (...args) => ask({ kind: 'listen', args }),
        connects: (...args) => ask({ kind: 'connects', args }),
        stream: (...args) => ask({ kind: 'stream', args }),
        queries: (...args) => ask({ kind: 'queries', args }),
      },
    };
  }

  /** Makes an interface of WireGuard, of the kernel or of wireguard-go, and moves it there. */
  async wireguard(name: string, { file }: Place, configuration: string): Promise<void> {
    await this.must('ip', 'link', 'add', name, 'type', 'wireguard').catch(() => this.must('wireguard-go', name));
    await this.must('sh', '-c', `printf '%s' "$1" | wg setconf "$2" /dev/stdin`, 'sh', configuration, name);
    await this.must('ip', 'link', 'set', name, 'netns', file);
  }
}

const idOf = (number: number): ContainerId =>
  `00000000-0000-7000-8000-${String(number).padStart(12, '0')}` as ContainerId;
const ipv4Of = (number: number): string => `10.200.${64 + (number >> 8)}.${number & 255}`;
const ipv6Of = (number: number): string => `fd5e:1:2::1:${number.toString(16)}`;
export const nameOf = (number: number): string => `c${number}`;

/** The container of this number, which runs in the place. */
export const attachment = ({ file }: Place, number: number): Attachment & { readonly ipv4: string } => ({
  ...{ id: idOf(number), tenant, namespace: file, run: 'bench' },
  ...{ ipv4: ipv4Of(number), ipv6: ipv6Of(number) },
});

/** The container of this number, which runs on the host. */
export const member = (number: number, host: HostKey): NamedMember => ({
  ...{ id: idOf(number), tenant, name: nameOf(number), host },
  ...{ ipv4: ipv4Of(number), ipv6: ipv6Of(number) },
});
