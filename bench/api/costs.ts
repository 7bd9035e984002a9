/**
 * The cost of a request under load: CPU time of each program, messages through NATS, and disk
 * syncs.
 */
import { figure, median } from '../statistics.ts';
import type { Table } from '../section.ts';
import { messagesNow } from '../messages.ts';
import { useOf } from '../usage.ts';
import { connectionCounts, operations, trafficOf, type Effort, type Operation, type Seeded } from './closed.ts';
import type { Ground } from './ground.ts';
import { closedLoop } from './load/wrk.ts';
import { countSyncs } from './syncs.ts';
import type { Longshore } from './systems/longshore.ts';

/** For each request. */
interface Cost {
  readonly cpuMicros: readonly number[];
  readonly toNats: number;
  readonly fromNats: number;
}

const perMicro = 1e6;

async function measureOnce(
  { nats, parts, systems: [system] }: Longshore,
  { declared }: Seeded,
  ground: Ground,
  load: { readonly operation: Operation; readonly connections: number; readonly forS: number },
): Promise<Cost> {
  const cpuSeconds = (): number[] => Object.values(parts).map((pid) => useOf(pid).cpuSeconds);
  const traffic = trafficOf(load.operation, system, ground, declared);
  const [messages, before] = [await messagesNow(nats), cpuSeconds()];
  const { perSecond } = await closedLoop(ground.bench, { system, traffic, ...load });
  const [after, messagesAfter] = [cpuSeconds(), await messagesNow(nats)];
  const requests = perSecond * load.forS;
  return {
    cpuMicros: after.map((seconds, at) => ((seconds - (before[at] ?? 0)) * perMicro) / requests),
    toNats: (messagesAfter.taken - messages.taken) / requests,
    fromNats: (messagesAfter.given - messages.given) / requests,
  };
}

const medianCost = (all: readonly Cost[]): Cost => ({
  cpuMicros: (all[0]?.cpuMicros ?? []).map((_, at) => median(all.map(({ cpuMicros }) => cpuMicros[at] ?? NaN))),
  toNats: median(all.map(({ toNats }) => toNats)),
  fromNats: median(all.map(({ fromNats }) => fromNats)),
});

/** Disk syncs of nats-server for each create under load. */
const syncsOf = (longshore: Longshore, { declared }: Seeded, ground: Ground, connections: number, forS: number) =>
  countSyncs(longshore.nats.server().pid, ground, async () => {
    const [system] = longshore.systems;
    const traffic = trafficOf('create', system, ground, declared);
    return (await closedLoop(ground.bench, { system, traffic, connections, forS })).perSecond * forS;
  }).catch(() => undefined);

export async function measureCosts(
  longshore: Longshore,
  seeded: Seeded,
  ground: Ground,
  { rounds, forS }: Effort,
): Promise<Table> {
  const rows: string[][] = [];
  for (const operation of operations) {
    for (const connections of connectionCounts) {
      const costs: Cost[] = [];
      // The first is not counted: code is slow until it is compiled.
      for (let round = 0; round <= rounds; round++) {
        costs.push(await measureOnce(longshore, seeded, ground, { operation, connections, forS }));
      }
      const { cpuMicros, toNats, fromNats } = medianCost(costs.slice(1));
      const syncs = operation === 'create' ? await syncsOf(longshore, seeded, ground, connections, forS) : undefined;
      rows.push([
        `${operation}, ${connections} connections`,
        ...cpuMicros.map(figure),
        figure(toNats),
        figure(fromNats),
        operation === 'create' ? figure(syncs ?? NaN) : '0',
      ]);
    }
  }
  const cpu = Object.keys(longshore.parts).map((part) => `${part}: CPU µs`);
  return {
    title: 'Cost of a request of Longshore',
    columns: ['', ...cpu, 'messages to NATS', 'from NATS', 'disk syncs'],
    rows,
    remarks: [
      `wrk as above, median of ${rounds} rounds after one that is not counted; everything that the programs do meanwhile counts, such as checkpoints. Disk syncs are counted under strace, which slows nats-server down, so that fewer creates share one.`,
    ],
  };
}
