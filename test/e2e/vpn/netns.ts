/**
 * Two machines connected by a wire, for real VPN handshakes: two network namespaces
 * (test/support/machine.ts) and a veth pair. The client's default route leads to the server.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { enter, strike } from '../../../dev/process/ledger.ts';
import { shortTemporaryRoot } from '../../../dev/paths.ts';
import type { ToolName } from '../../../dev/fetch/tool-table.ts';
import { toolHere, type Tool } from '../../../dev/fetch/tools.ts';
import { commandDeadlineMs, createMachine, type Machine } from '../../support/machine.ts';
import { inCi, skipWithoutTools } from '../../support/tools.ts';

/** Addresses on the wire, from the ranges for documentation (RFC 5737 and RFC 3849). */
export const wire = {
  server: { ipv4: '198.51.100.1', ipv6: '2001:db8:51::1' },
  client: { ipv4: '198.51.100.2', ipv6: '2001:db8:51::2' },
} as const;
export type Side = keyof typeof wire;

/** Addresses inside tunnels, by family. */
const insides = [
  ['-4', '10.0.0.0/8'],
  ['-6', 'fd00::/8'],
] as const;

/** One of the two machines. */
export interface Namespace extends Machine {
  readonly side: Side;
  /** Sends packets until one is answered or the wait ends; resolves to whether one was. */
  ping(address: string, waitS: number): Promise<boolean>;
}

/** Another machine with its own wire to the server, which is its default route. */
export type Joined = Omit<Namespace, 'side'>;
/** A joined machine and its addresses on that wire. */
export type JoinedAt = Joined & { readonly ipv4: string; readonly ipv6: string };

export interface Network extends Readonly<Record<Side, Namespace>> {
  /** @param place a number from 1 on, unique in this network; the addresses contain it */
  join(name: string, place: number): Promise<JoinedAt>;
}

/** Reason to skip a test in such a network on this machine, or false. CI skips nothing. */
export async function skipWithoutNetwork(...needed: readonly ToolName[]): Promise<string | false> {
  if (inCi) return false;
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'network namespaces need Linux and root';
  if (!existsSync('/dev/net/tun')) return 'this machine has no /dev/net/tun';
  return skipWithoutTools('ip', 'ping', ...needed);
}

/**
 * strongSwan looks for its plugins in a folder whose name is compiled in. If it is unpacked and not
 * installed, a mount provides that folder inside the namespace only.
 */
export function mountOf({ name, origin, path }: Tool): string[] {
  if (name !== 'swanctl' || (origin !== 'cache' && origin !== 'fetched')) return [];
  const prefix = path.replace(/\/usr\/sbin\/swanctl$/, '');
  return [`mount -t overlay longshore -o 'lowerdir=${prefix}/usr/lib:/usr/lib,ro' /usr/lib`];
}

async function createNamespace(t: Test, name: string, folder: string, tools: readonly Tool[]): Promise<Joined> {
  const machine = await createMachine(t, { name, folder, tools, mounts: tools.flatMap(mountOf) });
  return {
    ...machine,
    ping: async (address, waitS) => {
      const args = ['-n', '-q', '-c', '1', '-i', '0.2', '-w', String(waitS), address];
      const ran = await machine.run('ping', args, { deadlineMs: waitS * 1000 + commandDeadlineMs });
      if (ran.code === 0 || ran.code === 1) return ran.code === 0;
      // Without a route no answer can come. Any other failure is a fault of the test setup.
      if (/unreachable|not permitted|Required key not available|Destination address required/i.test(ran.stderr))
        return false;
      throw new Error(`ping ${address} ended with ${ran.code ?? ran.signal}: ${ran.stderr}`);
    },
  };
}

/** Creates two machines that reach each other and have these tools. */
export async function createNetwork(t: Test, ...needed: readonly ToolName[]): Promise<Network> {
  // The folder holds a Unix socket, whose path must be short.
  const folder = mkdtempSync(join(shortTemporaryRoot(), 'longshore-vpn-'));
  enter({ kind: 'folder', id: folder, path: folder });
  t.teardown(() => {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    strike(folder);
  });
  const tools: Tool[] = [];
  for (const name of ['ip', 'ping', ...needed] as const) tools.push(await toolHere(name));
  const make = async (side: Side): Promise<Namespace> => ({
    ...(await createNamespace(t, side, join(folder, side), tools)),
    side,
  });
  const [server, client] = [await make('server'), await make('client')];

  const ip = async (machine: Machine, commands: readonly string[]): Promise<void> => {
    const batch = join(machine.folder, 'ip-batch');
    writeFileSync(batch, commands.map((command) => `${command}\n`).join(''));
    await machine.must('ip', ['-batch', batch]);
  };
  const addresses = (side: Side): string[] => [
    `address add ${wire[side].ipv4}/24 dev wire`,
    `address add ${wire[side].ipv6}/64 dev wire nodad`,
    'link set dev wire up',
  ];
  await ip(server, [`link add wire type veth peer name wire netns ${client.pid}`, ...addresses('server')]);
  await ip(client, [
    ...addresses('client'),
    `route add 0.0.0.0/0 via ${wire.server.ipv4}`,
    `route add ::/0 via ${wire.server.ipv6}`,
  ]);
  // Linux answers for every local address on every interface. These rules keep addresses inside a
  // tunnel from answering outside it.
  for (const [family, inside] of insides) {
    for (const rule of [
      ['add', 'pref', '5', 'iif', 'wire', 'to', inside, 'blackhole'],
      ['add', 'pref', '10', 'lookup', 'local'],
      ['del', 'pref', '0'],
    ]) {
      await server.must('ip', [family, 'rule', ...rule]);
    }
  }
  const joinNetwork = async (name: string, place: number): Promise<JoinedAt> => {
    const machine = await createNamespace(t, name, join(folder, name), tools);
    const at = (host: number) => ({ ipv4: `198.51.${100 + place}.${host}`, ipv6: `2001:db8:${51 + place}::${host}` });
    const ends = (host: number): string[] => [`${at(host).ipv4}/24`, `${at(host).ipv6}/64`];
    const device = `wire${place}`;
    const address = (text: string, on: string): string =>
      `address add ${text} dev ${on}${text.includes(':') ? ' nodad' : ''}`;
    await ip(server, [
      `link add ${device} type veth peer name wire netns ${machine.pid}`,
      ...ends(1).map((text) => address(text, device)),
      `link set ${device} up`,
    ]);
    await ip(machine, [
      ...ends(2).map((text) => address(text, 'wire')),
      'link set wire up',
      `route add 0.0.0.0/0 via ${at(1).ipv4}`,
      `route add ::/0 via ${at(1).ipv6}`,
    ]);
    if (!(await machine.ping(wire.server.ipv4, 10))) throw new Error(`${name} does not reach the server`);
    return { ...machine, ...at(2) };
  };
  for (const address of [wire.server.ipv4, wire.server.ipv6]) {
    if (!(await client.ping(address, 10))) throw new Error(`${address} can't be reached over the wire`);
  }
  return { server, client, join: joinNetwork };
}
