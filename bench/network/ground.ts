/**
 * The parts of the section: hosts that have nothing but the tenant network, network namespaces in
 * place of containers, and a process in each.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerTool } from '../../dev/fetch/tools.ts';
import { pathWith } from '../../dev/fetch/wrappers.ts';
import { markVariable } from '../../dev/process/ledger.ts';
import { processesMarked } from '../../dev/process/proc.ts';
import { run } from '../../dev/process/run.ts';
import { startTenantNetwork, type TenantNetwork } from '../../dev/servers/tenant-network.ts';
import { makeWireguardLink } from '../../dev/servers/wireguard-link.ts';
import { createTransport } from '../../host-agent/docker/transport.ts';
import type { ContainerId, HostKey, TenantId } from '../../schemas/ids.ts';
import type { Attachment, DesiredNetwork, NamedMember, NetworkState } from '../../schemas/wire/net.ts';
import type { Scope } from '../../test/support/machine.ts';
import { makeSandbox, namespaceFolder, startInside, type Must, type Tell } from '../../test/support/sandbox.ts';
import { cpuSecondsOf } from '../usage.ts';
import type { Orders } from './probe.ts';

const deadlineMs = 60_000;
export const ranges = { ipv4: '10.200.0.0/16', ipv6: 'fd5e:1:2::/48' };
export const tenant = 'bench' as TenantId;

export interface Place {
  /** The file of the network namespace. */
  readonly file: string;
  /** Runs a command in it. */
  readonly must: Must;
  /** A process in it; `probe('listen', port)` gives it an order. */
  readonly probe: Tell<Orders>;
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
  marks.flatMap((mark) => processesMarked(markVariable, mark)).reduce((sum, { pid }) => sum + cpuSecondsOf(pid), 0);

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
    this.#env = { ...process.env, PATH: pathWith(join(folder, 'bin'), tools, process.env['PATH'] ?? '') };
  }

  readonly must: Must = async (command = '', ...words) => {
    const ran = await run(command, words, { deadlineMs, env: this.#env });
    if (ran.code !== 0) throw new Error(`${command} ${words.join(' ')}: ${ran.stderr.trim()}`);
    return ran.stdout;
  };

  /** @param namespaces folder of the files of its containers' namespaces */
  async host(namespaces = namespaceFolder): Promise<NetHost> {
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

  /** A namespace as a sandbox is. */
  async namespace(): Promise<Place> {
    return this.place(await makeSandbox(this.#scope, this.must));
  }

  /** A process in the namespace of this file. */
  place(file: string): Place {
    return {
      file,
      must: (...command) => this.must('nsenter', `--net=${file}`, ...command),
      probe: startInside<Orders>(this.#scope, file, join(import.meta.dirname, 'probe.js')),
    };
  }

  async wireguard(link: string, { file }: Place, configuration: string): Promise<void> {
    const path = join(this.#folder, `${link}.conf`);
    writeFileSync(path, configuration, { mode: 0o600 });
    await makeWireguardLink(this.must, link, path, file);
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
