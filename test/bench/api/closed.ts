/** Reads and creates in a closed loop, at several numbers of connections; systems in turn, rounds over. */
import { ratio, figure, median } from '../statistics.ts';
import type { Table } from '../section.ts';
import type { Declared, Ground, Store, System } from './ground.ts';
import { creates, reads, type Traffic } from './traffic.ts';
import { closedLoop, type Measured } from './wrk.ts';

export const connectionCounts = [64, 256] as const;
export const operations = ['read', 'create'] as const;
export type Operation = (typeof operations)[number];

/** A store with what was declared in it beforehand. */
export interface Seeded {
  readonly store: Store;
  readonly declared: readonly Declared[];
}

export interface Effort {
  readonly rounds: number;
  readonly forS: number;
}

export interface Line {
  readonly system: System;
  readonly operation: Operation;
  readonly connections: number;
  readonly measured: Measured;
}

const warmS = 2;

let trafficCount = 0;
/** Names of different traffic never meet. */
export const trafficOf = (
  operation: Operation,
  system: System,
  ground: Ground,
  declared: readonly Declared[],
): Traffic => (operation === 'read' ? reads(system, declared) : creates(system, ground.tenants, `c${trafficCount++}`));

/** The order of one round: each round begins with another. */
export const turned = <T>(items: readonly T[], by: number): T[] => [
  ...items.slice(by % items.length),
  ...items.slice(0, by % items.length),
];

export const medianOf = (all: readonly Measured[]): Measured => ({
  perSecond: median(all.map(({ perSecond }) => perSecond)),
  p50Ms: median(all.map(({ p50Ms }) => p50Ms)),
  p99Ms: median(all.map(({ p99Ms }) => p99Ms)),
});

export async function measureClosed(seeded: readonly Seeded[], ground: Ground, effort: Effort): Promise<Line[]> {
  const systems = seeded.flatMap(({ store, declared }) => store.systems.map((system) => ({ system, declared })));
  const lines: Line[] = [];
  for (const operation of operations) {
    // Code that has not run yet is slow, and so is a token that was not seen yet.
    for (const { system, declared } of systems) {
      const traffic = trafficOf(operation, system, ground, declared);
      await closedLoop(ground.bench, { system, traffic, connections: connectionCounts[0], forS: warmS });
    }
    for (const connections of connectionCounts) {
      const rounds = new Map<System, Measured[]>(systems.map(({ system }) => [system, []]));
      for (let round = 0; round < effort.rounds; round++) {
        for (const { system, declared } of turned(systems, round)) {
          const traffic = trafficOf(operation, system, ground, declared);
          rounds.get(system)?.push(await closedLoop(ground.bench, { system, traffic, connections, forS: effort.forS }));
        }
      }
      for (const [system, all] of rounds) lines.push({ system, operation, connections, measured: medianOf(all) });
    }
  }
  return lines;
}

const titles = { read: 'Authenticated read of one container', create: 'Durable create' } as const;

/** `bases`: what is compared with, one that logs requests and one that does not. */
export function closedTables(lines: readonly Line[], bases: readonly System[], remarks: readonly string[]): Table[] {
  const measuredOf = (operation: Operation, connections: number, system: System | undefined): Measured | undefined =>
    lines.find((line) => line.operation === operation && line.connections === connections && line.system === system)
      ?.measured;
  const systems = [...new Set(lines.map(({ system }) => system))];
  return operations.map((operation) => ({
    title: titles[operation],
    columns: ['', ...connectionCounts.flatMap((count) => [`${count}: a second`, 'p50 ms', 'p99 ms', 'beside Fastify'])],
    rows: systems.map((system) => {
      const base = bases.find(({ logsRequests }) => logsRequests === system.logsRequests);
      return [
        system.name,
        ...connectionCounts.flatMap((count) => {
          const { perSecond = NaN, p50Ms = NaN, p99Ms = NaN } = measuredOf(operation, count, system) ?? {};
          const beside = measuredOf(operation, count, base)?.perSecond ?? NaN;
          return [figure(perSecond), figure(p50Ms), figure(p99Ms), ratio(perSecond, beside)];
        }),
      ];
    }),
    remarks: operation === 'read' ? [] : remarks,
  }));
}
