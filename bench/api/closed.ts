/**
 * Reads and creates in a closed loop at several numbers of connections. Each round measures all
 * systems in turn.
 */
import { ratio, figure, median } from '../statistics.ts';
import type { Table } from '../section.ts';
import type { Declared, Ground, Store, System } from './ground.ts';
import { creates, reads, type Traffic } from './load/traffic.ts';
import { closedLoop, type Measured } from './load/wrk.ts';

export const connectionCounts = [64, 256] as const;
export const operations = ['read', 'create'] as const;
export type Operation = (typeof operations)[number];

/** A store and the containers declared in it before the measurements. */
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
/** Each call gets its own prefix of names, so that creates never conflict. */
export const trafficOf = (
  operation: Operation,
  system: System,
  ground: Ground,
  declared: readonly Declared[],
): Traffic => (operation === 'read' ? reads(system, declared) : creates(system, ground.tenants, `c${trafficCount++}`));

/** Rotates the order, so that each round begins with another system. */
export const rotated = <T>(items: readonly T[], by: number): T[] => [
  ...items.slice(by % items.length),
  ...items.slice(0, by % items.length),
];

export const medianOf = (all: readonly Measured[]): Measured => ({
  perSecond: median(all.map(({ perSecond }) => perSecond)),
  p50Ms: median(all.map(({ p50Ms }) => p50Ms)),
  p99Ms: median(all.map(({ p99Ms }) => p99Ms)),
});

/** One round; the stores are new. */
export async function measureRound(
  seeded: readonly Seeded[],
  ground: Ground,
  forS: number,
  round: number,
): Promise<Line[]> {
  const systems = seeded.flatMap(({ store, declared }) => store.systems.map((system) => ({ system, declared })));
  const lines: Line[] = [];
  for (const operation of operations) {
    // Warm-up: code is slow until it is compiled, and a token until it is cached.
    for (const { system, declared } of systems) {
      const traffic = trafficOf(operation, system, ground, declared);
      await closedLoop(ground.bench, { system, traffic, connections: connectionCounts[0], forS: warmS });
    }
    for (const connections of connectionCounts) {
      for (const { system, declared } of rotated(systems, round)) {
        const traffic = trafficOf(operation, system, ground, declared);
        const measured = await closedLoop(ground.bench, { system, traffic, connections, forS });
        lines.push({ system, operation, connections, measured });
      }
    }
  }
  return lines;
}

const kindOf = ({ system, operation, connections }: Line): string => [system.name, operation, connections].join(' ');

/** The median of each line over all rounds, in the order of the first round. */
export function mediansOf(rounds: readonly (readonly Line[])[]): Line[] {
  const byKind = new Map<string, Line[]>();
  for (const line of rounds.flat()) byKind.set(kindOf(line), [...(byKind.get(kindOf(line)) ?? []), line]);
  return [...byKind.values()].flatMap((all) => {
    const [first] = all;
    return first === undefined ? [] : [{ ...first, measured: medianOf(all.map(({ measured }) => measured)) }];
  });
}

const titles = { read: 'Authenticated read of one container', create: 'Durable create' } as const;

/** Compares each system with the system of `base` that logs as much. */
export function closedTables(lines: readonly Line[], base: Store, remarks: readonly string[]): Table[] {
  const measuredOf = (operation: Operation, connections: number, name: string | undefined): Measured | undefined =>
    lines.find((line) => line.operation === operation && line.connections === connections && line.system.name === name)
      ?.measured;
  const systems = new Map(lines.map(({ system }) => [system.name, system]));
  return operations.map((operation) => ({
    title: titles[operation],
    columns: ['', ...connectionCounts.flatMap((count) => [`${count}: per second`, 'p50 ms', 'p99 ms', 'vs Fastify'])],
    rows: [...systems.values()].map(({ name, logsRequests }) => {
      const peer = base.systems.find((system) => system.logsRequests === logsRequests);
      return [
        name,
        ...connectionCounts.flatMap((count) => {
          const { perSecond = NaN, p50Ms = NaN, p99Ms = NaN } = measuredOf(operation, count, name) ?? {};
          const beside = measuredOf(operation, count, peer?.name)?.perSecond ?? NaN;
          return [figure(perSecond), figure(p50Ms), figure(p99Ms), ratio(perSecond, beside)];
        }),
      ];
    }),
    remarks: operation === 'read' ? [] : remarks,
  }));
}
