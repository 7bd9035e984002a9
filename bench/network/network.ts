/**
 * The tenant network: connections and throughput between containers of one host beside Docker's own
 * bridge, and of two hosts beside WireGuard by hand; what many members, peers and questions cost.
 */
import { join } from 'node:path';
import { cacheFolder } from '../../dev/paths.ts';
import { startStack } from '../../dev/stack/stack.ts';
import { createScope } from '../../test/faults/world/scope.ts';
import type { Bench, Section, Table } from '../section.ts';
import { Ground } from './ground.ts';
import { membersTable, peersTable } from './scale.ts';
import { measureWays, onOneHost, onTwoHosts, wayTable } from './ways.ts';

const sizes = {
  full: { members: 10_000, peers: 1_000, rounds: 21, forMs: 20_000, streamMs: 1_000 },
  short: { members: 500, peers: 50, rounds: 2, forMs: 1_000, streamMs: 200 },
} as const;

async function measure({ env, folder, signal, isShort, tool }: Bench): Promise<Table[]> {
  const size = isShort ? sizes.short : sizes.full;
  const scope = createScope();
  try {
    const tools = {
      ...{ ip: await tool('ip'), nft: await tool('nft') },
      ...{ wg: await tool('wg'), 'wireguard-go': await tool('wireguard-go') },
    };
    const ground = new Ground(scope, folder, tools);
    const timing = { rounds: size.rounds, forMs: size.streamMs, signal };
    const stateFolder = join(folder, 'stack');
    const stack = await startStack({ env, stateFolder, cacheFolder: cacheFolder(env), signal });
    scope.teardown(() => stack.stop());
    const one = await onOneHost(ground, stack);
    scope.teardown(one.end);
    const onOne = await measureWays(one.ways, timing);
    const onTwo = await measureWays(await onTwoHosts(ground), timing);
    const how = `Median of ${size.rounds} pairs in changing order, each with 200 connections one after another and ${size.streamMs} ms of one TCP stream, over IPv4. CPU is that of the whole machine: of the kernel, and of both ends, which are Node.`;
    return [
      wayTable('Between two containers of one host', onOne, [
        how,
        'The same two containers, which are in both networks.',
      ]),
      wayTable('Between two hosts', onTwo, [
        how,
        'Both hosts are on this machine, and their packets cross its loopback. WireGuard is the kernel’s where it has one, else wireguard-go, for both. By hand: a veth to the host’s namespace, which forwards into WireGuard; no rules.',
      ]),
      await membersTable(ground, size),
      await peersTable(ground, size),
    ];
  } finally {
    await scope.end();
  }
}

export const network: Section = {
  name: 'network',
  run: async (bench) => ({ tables: await measure(bench) }),
};
