/**
 * Connections and throughput between two containers: by the tenant network, and by what people
 * would use. The ways are measured in turn, each round in the other order.
 */
import { readFileSync } from 'node:fs';
import { newWireguardKeys } from '../../lib/wireguard-keys.ts';
import { freePort } from '../../dev/process/process.ts';
import { namespacesOf } from '../../dev/servers/tenant-network.ts';
import type { Stack } from '../../dev/stack/stack.ts';
import type { HostKey } from '../../schemas/ids.ts';
import { dockerEngine } from '../docker/peer.ts';
import type { Table } from '../section.ts';
import { figure, median, quantile, ratio } from '../statistics.ts';
import { ticksPerSecond } from '../usage.ts';
import { attachment, member, type Ground, type Place } from './ground.ts';

const port = 7000;
const connectsEach = 200;
const GiB = 1024 ** 3;
const MiB = 1024 ** 2;

/** From the container of one place to an address of another. */
interface Way {
  readonly name: string;
  readonly from: Place;
  readonly address: string;
}

interface Measured {
  readonly connectMs: number[];
  readonly mibPerSecond: number[];
  /** CPU seconds of the whole machine for each GiB. */
  readonly cpuPerGib: number[];
}

/** Busy time of all processors, in seconds: user, nice, system, irq and softirq of proc(5). */
function busySeconds(): number {
  const [user, nice, system, , , irq, softirq] = readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)[0]!
    .trim()
    .split(/ +/)
    .slice(1)
    .map(Number);
  return [user, nice, system, irq, softirq].reduce((sum: number, ticks) => sum + (ticks ?? 0), 0) / ticksPerSecond;
}

async function measureOne({ from, address }: Way, forMs: number, into: Measured): Promise<void> {
  into.connectMs.push(median(await from.probe('connects', address, port, connectsEach)));
  const before = busySeconds();
  const { bytes, ms } = await from.probe('stream', address, port, forMs);
  into.mibPerSecond.push(bytes / MiB / (ms / 1000));
  into.cpuPerGib.push(((busySeconds() - before) * GiB) / bytes);
}

/** Measures all rounds, and discards one before them as warm-up. */
export async function measureWays(
  ways: readonly Way[],
  { rounds, forMs, signal }: { readonly rounds: number; readonly forMs: number; readonly signal: AbortSignal },
): Promise<Map<Way, Measured>> {
  const empty = (): Measured => ({ connectMs: [], mibPerSecond: [], cpuPerGib: [] });
  const all = new Map(ways.map((way) => [way, empty()]));
  for (let round = 0; round <= rounds; round++) {
    for (const way of round % 2 === 0 ? ways : ways.toReversed()) {
      signal.throwIfAborted();
      await measureOne(way, forMs, round === 0 ? empty() : all.get(way)!);
    }
  }
  return all;
}

const spread = (values: readonly number[]): string =>
  [0.1, 0.9].map((part) => figure(quantile([...values], part))).join('–');

/** The first way is the base of the ratios. */
export function wayTable(title: string, measured: ReadonlyMap<Way, Measured>, remarks: readonly string[]): Table {
  const [base] = [...measured.values()] as [Measured];
  return {
    title,
    columns: ['', 'connect µs', 'p10–p90', 'vs', 'MiB/s', 'p10–p90', 'vs', 'CPU s/GiB', 'vs'],
    rows: [...measured].map(([{ name }, { connectMs, mibPerSecond, cpuPerGib }]) => {
      const connectUs = connectMs.map((ms) => ms * 1000);
      return [
        name,
        ...[figure(median(connectUs)), spread(connectUs), ratio(median(connectMs), median(base.connectMs))],
        ...[figure(median(mibPerSecond)), spread(mibPerSecond), ratio(median(mibPerSecond), median(base.mibPerSecond))],
        ...[figure(median(cpuPerGib)), ratio(median(cpuPerGib), median(base.cpuPerGib))],
      ];
    }),
    remarks,
  };
}

const benchNetwork = 'longshore-bench';

/** Two plain containers of the engine, which are also attached to the tenant network. */
export async function onOneHost(ground: Ground, stack: Stack): Promise<{ ways: Way[]; end(): Promise<void> }> {
  const engine = dockerEngine(stack.engine.host);
  const { registry, repository, tag } = stack.image;
  const image = `${registry}/${repository}:${tag}`;
  await engine.pull(image);
  await engine.ask('POST', '/networks/create', { Name: benchNetwork, Driver: 'bridge' });
  const ids: string[] = [];
  const end = async (): Promise<void> => {
    for (const id of ids) await engine.ask('DELETE', `/containers/${id}?force=1`);
    await engine.ask('DELETE', `/networks/${benchNetwork}`);
  };
  try {
    const container = async (): Promise<{ place: Place; address: string }> => {
      const HostConfig = { NetworkMode: benchNetwork };
      const made = await engine.ask('POST', '/containers/create', { Image: image, HostConfig });
      const { Id: id } = JSON.parse(made) as { Id: string };
      ids.push(id);
      await engine.ask('POST', `/containers/${id}/start`);
      const { NetworkSettings } = await engine.get<{
        NetworkSettings: { SandboxKey: string; Networks: Record<string, { IPAddress: string }> };
      }>(`/containers/${id}/json`);
      const address = NetworkSettings.Networks[benchNetwork]?.IPAddress ?? '';
      return { place: ground.place(NetworkSettings.SandboxKey), address };
    };
    const [client, server] = [await container(), await container()];
    await server.place.probe('listen', port);
    const host = await ground.host(namespacesOf(stack.engine.host));
    const attached = [attachment(client.place, 1), attachment(server.place, 2)];
    await host.want({ attached });
    return {
      ways: [
        { name: 'Docker, a bridge network', from: client.place, address: server.address },
        { name: 'Longshore', from: client.place, address: attached[1]!.ipv4 },
      ],
      end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** A container and its host, as somebody connects them by hand. */
async function byHand(ground: Ground, side: 1 | 2): Promise<{ host: Place; container: Place; address: string }> {
  const [host, container] = [await ground.namespace(), await ground.namespace()];
  const address = `10.99.${side}.2`;
  await host.must('ip', 'link', 'add', 'c0', 'mtu', '1420', 'type', 'veth', 'peer', 'name', 'eth0', 'mtu', '1420');
  await ground.must('nsenter', `--net=${host.file}`, 'ip', 'link', 'set', 'eth0', 'netns', container.file);
  await host.must(
    'sh',
    '-c',
    `ip addr add 10.99.${side}.1/24 dev c0 && ip link set c0 up && sysctl -qw net.ipv4.ip_forward=1`,
  );
  await container.must(
    'sh',
    '-c',
    `ip addr add ${address}/24 dev eth0 && ip link set eth0 up && ip route add default via 10.99.${side}.1`,
  );
  return { host, container, address };
}

/** Two hosts on this machine, whose packets go over its loopback. */
export async function onTwoHosts(ground: Ground): Promise<Way[]> {
  const keys = [newWireguardKeys(), newWireguardKeys()] as const;
  const ports = [await freePort(), await freePort()] as const;
  const sides = [await byHand(ground, 1), await byHand(ground, 2)] as const;
  for (const [at, { host }] of sides.entries()) {
    const [own, other] = at === 0 ? [0, 1] : [1, 0];
    const configuration = [
      ...['[Interface]', `PrivateKey = ${keys[own]!.privateKey}`, `ListenPort = ${ports[own]!}`],
      ...['[Peer]', `PublicKey = ${keys[other]!.publicKey}`, `Endpoint = 127.0.0.1:${ports[other]!}`],
      `AllowedIPs = 10.99.${other + 1}.0/24`,
    ].join('\n');
    const link = `lsbw${at}x${process.pid}`;
    await ground.wireguard(link, host, configuration);
    await host.must('sh', '-c', `ip link set ${link} mtu 1420 up && ip route add 10.99.${other + 1}.0/24 dev ${link}`);
  }
  const [one, two] = [await ground.host(), await ground.host()];
  const [from, to] = [await ground.namespace(), await ground.namespace()];
  const meshPorts = [await freePort(), await freePort()] as const;
  const hosts = ['h1' as HostKey, 'h2' as HostKey] as const;
  const ends = await Promise.all(
    [one, two].map(async (host, at) => {
      const { mesh } = await host.want({ mesh: { port: meshPorts[at]!, ends: [] } });
      return { host: hosts[at]!, key: mesh?.key ?? '', address: '127.0.0.1', port: meshPorts[at]! };
    }),
  );
  const members = [member(1, hosts[0]), member(2, hosts[1])];
  const [there, back] = [attachment(from, 1), attachment(to, 2)];
  await one.want({ attached: [there], members, mesh: { port: meshPorts[0], ends: [ends[1]!] } });
  await two.want({ attached: [back], members, mesh: { port: meshPorts[1], ends: [ends[0]!] } });
  await sides[1].container.probe('listen', port);
  await to.probe('listen', port);
  return [
    { name: 'WireGuard by hand', from: sides[0].container, address: sides[1].address },
    { name: 'Longshore', from, address: back.ipv4 },
  ];
}
