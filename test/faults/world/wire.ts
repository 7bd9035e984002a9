/**
 * The network of a run: a machine (test/support/machine.ts) for each place. This process's network
 * namespace is the router between them, so one table of rules here can cut any direction between
 * two places, or answer their packets with TCP resets.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../../dev/process/run.ts';
import { toolHere, type Tool } from '../../../dev/fetch/tools.ts';
import { createMachine, type Machine, type Scope } from '../../support/machine.ts';

export const places = ['n1', 'n2', 'n3', 'a1', 'a2', 'g1', 'g2', 'h1'] as const;
export type Place = (typeof places)[number];
export type NatsPlaceName = Extract<Place, `n${number}`>;
/** The clients run in this process, at the router. */
export type End = Place | 'clients';
/** One direction; the way back is another pair. */
export type Way = readonly [from: End, to: End];

/** A range for documentation (RFC 5737), which nothing else in this namespace uses. */
const routerAddress = '198.51.100.254';
const addresses = Object.fromEntries(places.map((place, index) => [place, `198.51.100.${index + 1}`])) as Record<
  Place,
  string
>;
const addressOf = (end: End): string => (end === 'clients' ? routerAddress : addresses[end]);

export interface Wire {
  readonly machines: Readonly<Record<Place, Machine>>;
  address(place: Place): string;
  /** Nothing passes on these ways until `mend`. */
  cut(ways: readonly Way[]): Promise<void>;
  /** Every TCP packet on these ways gets a reset until `mend`. */
  reset(ways: readonly Way[]): Promise<void>;
  mend(): Promise<void>;
}

export const bothWays = (left: readonly End[], right: readonly End[]): Way[] =>
  left.flatMap((one) =>
    right.flatMap((other): Way[] => [
      [one, other],
      [other, one],
    ]),
  );

const commandDeadlineMs = 10_000;

const rules = (): string => {
  const way = 'ip saddr . ip daddr';
  const chain = (hook: string): string[] => [
    `  chain ${hook} {`,
    `    type filter hook ${hook} priority 0`,
    `    ${way} @dropped drop`,
    // The resets themselves pass here too.
    '    tcp flags & rst == rst accept',
    `    ${way} @answered meta l4proto tcp reject with tcp reset`,
    '  }',
  ];
  const set = (name: string): string => `  set ${name} { type ipv4_addr . ipv4_addr; }`;
  const chains = ['forward', 'input', 'output'].flatMap(chain);
  return ['table ip faults {', set('dropped'), set('answered'), ...chains, '}', ''].join('\n');
};

async function must(tool: Tool, args: readonly string[]): Promise<void> {
  const ran = await run(tool.path, args, { deadlineMs: commandDeadlineMs, env: tool.env });
  if (ran.code !== 0) throw new Error(`${tool.name} ${args.join(' ')}: ${ran.stderr}`);
}

/** This process must be in a network namespace of its own; run.ts makes one. */
export async function layWire(scope: Scope, folder: string): Promise<Wire> {
  mkdirSync(folder);
  const ip = await toolHere('ip');
  const nft = await toolHere('nft');
  const ipBatch = async (place: Place, commands: readonly string[]): Promise<void> => {
    const batch = join(folder, `${place}.ip-batch`);
    writeFileSync(batch, commands.map((command) => `${command}\n`).join(''));
    await must(ip, ['-batch', batch]);
  };
  const joinUp = async (place: Place): Promise<Machine> => {
    const machine = await createMachine(scope, { name: place, folder: join(folder, place), tools: [ip] });
    const address = addressOf(place);
    // The kernel removes the wire of the last seed only some time after its machine has ended.
    await run(ip.path, ['link', 'delete', place], { deadlineMs: commandDeadlineMs, env: ip.env });
    await ipBatch(place, [
      `link add ${place} type veth peer name wire netns ${machine.pid}`,
      `address add ${routerAddress}/32 dev ${place}`,
      `link set ${place} up`,
      `route add ${address}/32 dev ${place}`,
    ]);
    await machine.must('sh', [
      '-ec',
      [
        `ip address add ${address}/32 dev wire`,
        'ip link set wire up',
        `ip route add ${routerAddress}/32 dev wire`,
        `ip route add default via ${routerAddress} src ${address}`,
      ].join('\n'),
    ]);
    return machine;
  };
  const joined = await Promise.all(places.map(async (place) => [place, await joinUp(place)] as const));
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
  const table = join(folder, 'rules.nft');
  writeFileSync(table, rules());
  await must(nft, ['-f', table]);

  const add = async (set: 'dropped' | 'answered', ways: readonly Way[]): Promise<void> => {
    const elements = ways.map(([from, to]) => `${addressOf(from)} . ${addressOf(to)}`);
    await must(nft, [`add element ip faults ${set} { ${elements.join(', ')} }`]);
  };
  return {
    machines: Object.fromEntries(joined) as Record<Place, Machine>,
    address: addressOf,
    cut: (ways) => add('dropped', ways),
    reset: (ways) => add('answered', ways),
    mend: () => must(nft, ['flush set ip faults dropped; flush set ip faults answered']),
  };
}
