/** Downloads of a peer's files per second, and their effect on reads of the API. */
import type { Api } from '../dev/api.ts';
import { makeDemoNetwork } from '../dev/demo/peer.ts';
import { cacheFolder } from '../dev/paths.ts';
import { startStack, type Stack } from '../dev/stack/stack.ts';
import { sleep } from '../lib/time/backoff.ts';
import { load, type Ask, type Measured } from './load.ts';
import type { Section, Table } from './section.ts';
import { figure, ratio } from './statistics.ts';

const settleMs = 5_000;
const connections = 16;
const peerCount = 8;

interface BenchPeer {
  readonly id: string;
}

async function peersOf(api: Api, stack: Stack): Promise<BenchPeer[]> {
  const { token } = stack.tokens.tenants.other;
  return Promise.all(
    Array.from({ length: peerCount }, async (_, number) => ({
      id: (await api.createPeer(token, { name: `bench ${number}` })).id,
    })),
  );
}

/** Returns the items in turn, endlessly. */
function cycle<T>(items: readonly T[]): () => T {
  let at = 0;
  return () => {
    const item = items[at++ % items.length];
    if (item === undefined) throw new Error('nothing to cycle');
    return item;
  };
}

interface Line {
  readonly what: string;
  readonly measured: Measured;
}

async function measureStack(stack: Stack, isShort: boolean): Promise<{ lines: Line[]; bundlesBeside: number }> {
  const [forMs, freshBundles] = isShort ? [500, 16] : [4_000, 400];
  const { api } = stack;
  const { token } = stack.tokens.tenants.other;
  const peers = await peersOf(api, stack);
  const lines: Line[] = [];
  const get = (path: (peer: BenchPeer) => string): (() => Ask) => {
    const peer = cycle(peers);
    return () => ({ path: path(peer()), token });
  };
  const measure = async (what: string, next: () => Ask | undefined): Promise<void> => {
    lines.push({ what, measured: await load({ baseUrl: api.baseUrl, connections, forMs, next }) });
  };
  const read = (): Ask => ({ path: '/api/v2/compute/quota', token });
  const bundle = get(({ id }) => `/api/forage/p12/${id}`);
  /** A new password makes a new bundle. Measures the download, not the change of the password. */
  const freshRound = async (): Promise<Measured> => {
    await Promise.all(peers.map(({ id }) => api.peerPassword(token, id)));
    const asks = peers.map(({ id }) => ({ path: `/api/forage/p12/${id}`, token }));
    return load({ baseUrl: api.baseUrl, connections, forMs, next: () => asks.shift() });
  };
  const fresh = async (): Promise<Measured> => {
    const rounds: Measured[] = [];
    while (rounds.length * peers.length < freshBundles) rounds.push(await freshRound());
    return together(rounds);
  };

  // Warm-up, and time for the gateway to make keys ahead for the next peers.
  await load({ baseUrl: api.baseUrl, connections, forMs, next: read });
  await sleep(settleMs);
  await measure('API read (quota), alone', read);
  await measure(
    'WireGuard conf',
    get(({ id }) => `/api/forage/config/${id}`),
  );
  await measure(
    'QR code, cached',
    get(({ id }) => `/api/forage/config/${id}/qr`),
  );
  await measure(
    'profile (JSON)',
    get(({ id }) => `/api/forage/profile/${id}`),
  );
  await measure('PKCS#12, cached', bundle);
  await fresh();
  lines.push({ what: 'PKCS#12, fresh', measured: await fresh() });

  let isBuilding = true;
  let made = 0;
  const builder = (async () => {
    while (isBuilding) made += (await freshRound()).answers;
  })();
  const madeBefore = made;
  const startMs = performance.now();
  await measure('API read, while bundles are made', read);
  const perSecond = ((made - madeBefore) * 1000) / (performance.now() - startMs);
  isBuilding = false;
  await builder;
  return { lines, bundlesBeside: perSecond };
}

/** Merges rounds: total rate, median of the p50 and the largest p99. */
const together = (rounds: readonly Measured[]): Measured => {
  const answers = rounds.reduce((sum, round) => sum + round.answers, 0);
  const seconds = rounds.reduce((sum, round) => sum + round.answers / round.perSecond, 0);
  return {
    answers,
    perSecond: answers / seconds,
    p50Ms: rounds.toSorted((one, other) => one.p50Ms - other.p50Ms)[rounds.length >> 1]?.p50Ms ?? NaN,
    p99Ms: Math.max(...rounds.map(({ p99Ms }) => p99Ms)),
  };
};

function tableOf({ lines, bundlesBeside }: { lines: readonly Line[]; bundlesBeside: number }): Table {
  const base = lines[0]?.measured.perSecond ?? NaN;
  return {
    title: `Files of VPN peers, ${connections} connections`,
    columns: ['', 'per second', 'p50 ms', 'p99 ms', 'vs API read'],
    rows: lines.map(({ what, measured: { perSecond, p50Ms, p99Ms } }) => [
      what,
      figure(perSecond),
      figure(p50Ms),
      figure(p99Ms),
      ratio(perSecond, base),
    ]),
    remarks: [
      'The stack of `npm start`. The load generator runs in Node and costs more than the requests that it makes.',
      `During the last row the gateway made ${figure(bundlesBeside)} bundles/s.`,
    ],
  };
}

export const vpn: Section = {
  name: 'vpn',
  run: async ({ env, folder, signal, isShort }) => {
    const stack = await startStack({ env, stateFolder: folder, cacheFolder: cacheFolder(env), signal });
    try {
      await makeDemoNetwork(stack);
      return { tables: [tableOf(await measureStack(stack, isShort))] };
    } finally {
      await stack.stop();
    }
  },
};
