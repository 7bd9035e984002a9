/** The cost to a host of many members, many peers and many questions. */
import { newWireguardKeys } from '../../lib/wireguard-keys.ts';
import { freePort } from '../../dev/process/process.ts';
import { sleep } from '../../lib/time/backoff.ts';
import type { HostKey, NetworkName } from '../../schemas/ids.ts';
import { resolverAddresses } from '../../schemas/tenant-network.ts';
import type { Table } from '../section.ts';
import { figure, median, quantile } from '../statistics.ts';
import { attachment, member, nameOf, ranges, tenant, type Ground } from './ground.ts';

const hostCount = 100;
/** A host's rules take 1,000 packets a second from one container. */
const askers = 4;
const perSecond = 900;
const settleMs = 2_000;

interface Size {
  readonly members: number;
  readonly peers: number;
  readonly rounds: number;
  readonly forMs: number;
}

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
};

const hostKey = (number: number): HostKey => `h${number % hostCount}` as HostKey;

/** One tenant of so many containers on a hundred hosts, of which this host runs a few. */
export async function membersTable(ground: Ground, size: Size): Promise<Table> {
  const host = await ground.host();
  const places = await Promise.all(Array.from({ length: askers }, () => ground.namespace()));
  const attached = places.map((place, number) => attachment(place, number));
  const meshPort = await freePort();
  const ends = Array.from({ length: hostCount }, (_, number) => ({
    ...{ host: hostKey(number), key: newWireguardKeys().publicKey },
    ...{ address: '127.0.0.1', port: 1 },
  }));
  const mesh = { port: meshPort, ends };
  const members = Array.from({ length: size.members }, (_, number) => member(number, hostKey(number)));
  const want = (count: number) => host.want({ attached, members: members.slice(0, count), mesh });
  await want(askers);
  const loadMs = await timed(() => want(size.members));
  const changesMs: number[] = [];
  for (let round = 0; round < size.rounds; round++)
    changesMs.push(await timed(() => want(size.members - 1 + (round % 2 === 0 ? 0 : 1))));
  await want(size.members);
  await sleep(settleMs);
  const idleBefore = host.cpuSeconds();
  await sleep(size.forMs);
  const idle = (host.cpuSeconds() - idleBefore) / (size.forMs / 1000);

  const [resolver = ''] = resolverAddresses([ranges.ipv4], 0);
  const names = members.map((_, number) => nameOf(number));
  const ask = (forMs: number): Promise<number[][]> =>
    Promise.all(places.map(({ probe }) => probe('queries', resolver, names, perSecond, forMs)));
  await ask(settleMs);
  const cpuBefore = host.resolverCpuSeconds();
  const answers = (await ask(size.forMs)).flat();
  const cpu = host.resolverCpuSeconds() - cpuBefore;
  return {
    title: `A host in a mesh of ${hostCount} hosts, with a tenant of ${size.members} containers`,
    columns: ['', 'measured', 'aim'],
    rows: [
      ['all members in force, ms', figure(loadMs), '2000'],
      ['one change in force, p50 ms', figure(median(changesMs)), '100'],
      ['one change in force, p90 ms', figure(quantile([...changesMs], 0.9)), ''],
      ['idle, cores', figure(idle), '0.01'],
      ['answers of a resolver, p50 ms', figure(median(answers)), ''],
      ['answers of a resolver, p99 ms', figure(quantile([...answers], 0.99)), '2'],
      ['answers for each CPU second of the resolvers', figure(answers.length / cpu), '20000'],
    ],
    remarks: [
      '“In force” is from the message to `longshore-net` until it answers that the kernel is so. Idle is `longshore-net` with all that it runs, which looks at the kernel every 15 seconds.',
      `${askers} containers ask ${perSecond} times a second each for random names, ${figure((100 * answers.length) / ((askers * perSecond * size.forMs) / 1000))} % of which were answered; those who ask are on the same cores.`,
    ],
  };
}

/** A network of so many peers, whose server and its supervisor are killed. */
export async function peersTable(ground: Ground, size: Size): Promise<Table> {
  const host = await ground.host();
  const { publicKey, privateKey } = newWireguardKeys();
  const peers = Array.from({ length: size.peers }, (_, number) => ({
    ...{ tenant, key: number === 0 ? publicKey : newWireguardKeys().publicKey },
    ...{ ipv4: `10.86.${number >> 8}.${number & 255}`, ipv6: null, preshared_key: newWireguardKeys().privateKey },
  }));
  const server = { port: await freePort(), mtu: null, private_key: privateKey };
  const network = { name: 'bench' as NetworkName, host: 'h1' as HostKey, pools: ['10.86.0.0/16'], server };
  const want = (count: number) => host.want({ vpn: [{ ...network, peers: peers.slice(0, count) }] });
  const loadMs = await timed(() => want(size.peers));
  const changesMs: number[] = [];
  for (let round = 0; round < size.rounds; round++)
    changesMs.push(await timed(() => want(size.peers - 1 + (round % 2 === 0 ? 0 : 1))));
  await host.network.net.server().kill9();
  const againMs = await timed(async () => {
    await host.network.net.restart();
    await want(size.peers);
  });
  return {
    title: `A VPN network of ${size.peers} peers on a host`,
    columns: ['', 'measured', 'aim'],
    rows: [
      ['all peers in force, ms', figure(loadMs), ''],
      ['one change in force, p50 ms', figure(median(changesMs)), ''],
      ['after a kill of longshore-net and wireguard-go, all in force again, ms', figure(againMs), '3000'],
    ],
    remarks: [],
  };
}
