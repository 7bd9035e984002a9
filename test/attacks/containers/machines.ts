/** Machines for the tests of the container firewall: a host with two containers, and a network. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { createMachine, type Machine } from '../../support/machine.ts';

const listening = [53, 80, 5432, 9100];
/** The wait for an answer that must come. Most refusals come at once. */
export const patienceMs = 20_000;
export const shortMs = 1500;

/**
 * A program that answers at every address of its machine; over UDP only at the given ones, because
 * a UDP answer must come from the address asked.
 */
const server = (marker: string, udpAddresses: readonly string[]): string => `
const net = require('node:net'), dgram = require('node:dgram'), { writeFileSync } = require('node:fs');
const ports = ${JSON.stringify(listening)};
Promise.all(ports.map((port) => new Promise((resolve) =>
  net.createServer((socket) => socket.on('error', () => {}).end('hello')).listen(port, '::', resolve))))
  .then(() => Promise.all(${JSON.stringify(udpAddresses)}.map((address) => new Promise((resolve) => {
    const udp = dgram.createSocket('udp4');
    udp.on('message', (_, from) => udp.send('hello', from.port, from.address)).bind(53, address, resolve);
  }))))
  .then(() => writeFileSync(${JSON.stringify(marker)}, ''));
`;

/** The targets that answer, such as \`tcp 10.0.0.1 80\`. */
const client = `
const net = require('node:net'), dgram = require('node:dgram');
const patienceMs = Number(process.argv[2]);
const tcp = (host, port) => new Promise((resolve) => {
  const socket = net.connect({ host, port });
  const end = (word) => { socket.destroy(); resolve(word); };
  socket.setTimeout(patienceMs, () => end(false));
  socket.once('data', () => end(true));
  socket.once('error', () => end(false));
});
const udp = (host, port) => new Promise((resolve) => {
  const socket = dgram.createSocket(host.includes(':') ? 'udp6' : 'udp4');
  const end = (word) => { try { socket.close(); } catch {} resolve(word); };
  setTimeout(() => end(false), patienceMs);
  socket.once('message', () => end(true)).once('error', () => end(false));
  socket.send('who is', port, host);
});
Promise.all(JSON.parse(process.argv[1]).map((target) => {
  const [protocol, host, port] = target.split(' ');
  return (protocol === 'udp' ? udp : tcp)(host, Number(port));
})).then((words) => { console.log(JSON.stringify(words)); process.exit(); });
`;

export async function reached(
  from: Machine,
  targets: readonly string[],
  waitMs: number,
): Promise<Record<string, boolean>> {
  const { stdout } = await from.must(process.execPath, ['-e', client, JSON.stringify(targets), String(waitMs)]);
  const words = JSON.parse(stdout) as boolean[];
  return Object.fromEntries(targets.map((target, index) => [target, words[index] === true]));
}

/** Addresses of the network beyond the host; all of them answer. */
export const outside = {
  ipv4: [
    '169.254.169.254',
    '10.1.2.3',
    '10.1.2.4',
    '10.0.0.53',
    '172.16.5.5',
    '192.168.7.7',
    '100.64.1.1',
    '8.8.4.4',
    '9.9.8.8',
  ],
  ipv6: ['fd00:ec2::254', 'fd00:1::5', '2606:4700::1111', '64:ff9b::a01:203'],
} as const;

interface Machines {
  readonly host: Machine;
  readonly container: Machine;
  readonly neighbour: Machine;
  readonly network: Machine;
}

/** @param more IPv6 addresses of the network beside those of `outside` */
export async function layOut(t: Test, more: readonly string[] = []): Promise<Machines> {
  const folder = temporaryFolder(t, 'longshore-egress-');
  const tools = [await toolHere('ip'), await toolHere('nft')];
  const [host, container, neighbour, network] = await Promise.all(
    ['host', 'container', 'neighbour', 'network'].map((name) =>
      createMachine(t, { name, folder: join(folder, name), tools }),
    ),
  );
  const machines = { host: host!, container: container!, neighbour: neighbour!, network: network! };
  const ip = async (machine: Machine, ...commands: string[]): Promise<void> => {
    const batch = join(machine.folder, 'ip-batch');
    writeFileSync(batch, commands.map((command) => `${command}\n`).join(''));
    await machine.must('ip', ['-batch', batch]);
  };
  await ip(
    machines.host,
    'link add br-t type bridge',
    ...['address add 10.77.0.1/24 dev br-t', 'address add fd77::1/64 dev br-t nodad', 'link set br-t up'],
    ...[machines.container, machines.neighbour].flatMap(({ pid }, index) => [
      `link add veth${index} type veth peer name eth0 netns ${pid}`,
      `link set veth${index} master br-t up`,
    ]),
    `link add wire type veth peer name eth0 netns ${machines.network.pid}`,
    ...['address add 9.9.9.1/24 dev wire', 'address add 2606:4700:9::1/64 dev wire nodad', 'link set wire up'],
    ...['route add default via 9.9.9.2', 'route add ::/0 via 2606:4700:9::2'],
  );
  for (const [index, machine] of [machines.container, machines.neighbour].entries()) {
    await ip(
      machine,
      ...[`address add 10.77.0.${index + 2}/24 dev eth0`, `address add fd77::${index + 2}/64 dev eth0 nodad`],
      ...['link set eth0 up', 'route add default via 10.77.0.1', 'route add ::/0 via fd77::1'],
    );
  }
  await ip(
    machines.network,
    ...['address add 9.9.9.2/24 dev eth0', 'address add 2606:4700:9::2/64 dev eth0 nodad', 'link set eth0 up'],
    ...outside.ipv4.map((address) => `address add ${address}/32 dev lo`),
    ...[...outside.ipv6, ...more].map((address) => `address add ${address}/128 dev lo nodad`),
    ...['route add 10.77.0.0/24 via 9.9.9.1', 'route add fd77::/64 via 2606:4700:9::1'],
  );
  const forwarding = 'for path in ipv4/ip_forward ipv6/conf/all/forwarding; do echo 1 > /proc/sys/net/$path; done';
  await machines.host.must('sh', ['-c', forwarding]);
  // Publishes a port as an engine does.
  await nft(
    machines.host,
    `table ip published {
      chain to {
        type nat hook prerouting priority -100;
        ip daddr 9.9.9.1 tcp dport 8080 dnat to 10.77.0.2:80
      }
    }\n`,
  );
  const udpAddresses: Partial<Record<keyof Machines, readonly string[]>> = {
    host: ['10.77.0.1'],
    network: ['10.0.0.53', '10.1.2.3'],
  };
  for (const [name, machine] of Object.entries(machines) as [keyof Machines, Machine][]) {
    const marker = join(machine.folder, 'listens');
    await machine.start({
      name: 'server',
      command: process.execPath,
      args: ['-e', server(marker, udpAddresses[name] ?? [])],
      ready: () => Promise.resolve(existsSync(marker)),
      readyDeadlineMs: 30_000,
    });
  }
  return machines;
}

export async function nft(machine: Machine, rules: string): Promise<void> {
  const file = join(machine.folder, 'rules.nft');
  writeFileSync(file, rules);
  await machine.must('nft', ['-f', file]);
}

export const tcp80 = (addresses: readonly string[]): string[] => addresses.map((address) => `tcp ${address} 80`);
