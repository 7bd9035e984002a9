/** Latency below saturation: an open loop at half of each system's peak in the closed loop. */
import { figure, median } from '../statistics.ts';
import type { Table } from '../section.ts';
import { operations, trafficOf, rotated, type Effort, type Line, type Operation, type Seeded } from './closed.ts';
import type { Ground, System } from './ground.ts';
import { openLoop, type OpenMeasured } from './load/open-loop.ts';

interface OpenLine {
  readonly system: System;
  readonly operation: Operation;
  readonly perSecond: number;
  readonly measured: OpenMeasured;
}

const share = 0.5;

const peakOf = (closed: readonly Line[], system: System, operation: Operation): number =>
  Math.max(
    ...closed
      .filter((line) => line.system.name === system.name && line.operation === operation)
      .map(({ measured }) => measured.perSecond),
  );

export async function measureOpen(
  seeded: readonly Seeded[],
  closed: readonly Line[],
  ground: Ground,
  { rounds, forS }: Effort,
): Promise<OpenLine[]> {
  const systems = seeded.flatMap(({ store, declared }) =>
    store.systems.filter(({ logsRequests }) => logsRequests).map((system) => ({ system, declared })),
  );
  const lines: OpenLine[] = [];
  for (const operation of operations) {
    const all = new Map<System, OpenMeasured[]>(systems.map(({ system }) => [system, []]));
    const rateOf = (system: System): number => Math.floor(peakOf(closed, system, operation) * share);
    for (let round = 0; round < rounds; round++) {
      for (const { system, declared } of rotated(systems, round)) {
        const traffic = trafficOf(operation, system, ground, declared);
        const rate = { perSecond: rateOf(system), forMs: forS * 1000 };
        all.get(system)?.push(await openLoop(ground.bench, system, traffic, rate));
      }
    }
    for (const [system, measured] of all) {
      const [p50Ms, p99Ms] = [median(measured.map((one) => one.p50Ms)), median(measured.map((one) => one.p99Ms))];
      lines.push({ system, operation, perSecond: rateOf(system), measured: { p50Ms, p99Ms } });
    }
  }
  return lines;
}

export function openTable(lines: readonly OpenLine[], { rounds, forS }: Effort): Table {
  const systems = [...new Set(lines.map(({ system }) => system))];
  return {
    title: 'Open loop at half of each system’s peak, 64 connections',
    columns: ['', ...operations.flatMap((operation) => [`${operation}s per second`, 'p50 ms', 'p99 ms'])],
    rows: systems.map((system) => [
      system.name,
      ...operations.flatMap((operation) => {
        const line = lines.find((one) => one.system === system && one.operation === operation);
        return [line?.perSecond, line?.measured.p50Ms, line?.measured.p99Ms].map((value) => figure(value ?? NaN));
      }),
    ]),
    remarks: [
      `The generator runs in Node. A latency counts from the scheduled time of its request; the schedule has steps of 1 ms. ${forS} s, median of ${rounds} rounds.`,
    ],
  };
}
