/** The HTTP API beside what people would write or run in its place: reads, durable creates, lists, quotas, logs. */
import { step } from '../../../deploy/steps.ts';
import { createScope } from '../../faults/scope.ts';
import type { Scope } from '../../support/machine.ts';
import type { Bench, Results, Section } from '../section.ts';
import { check } from './checks.ts';
import { closedTables, measureClosed, type Effort, type Seeded } from './closed.ts';
import { startFastify } from './fastify.ts';
import { prepareGround, seed } from './ground.ts';
import { startLongshore } from './longshore.ts';
import { measureOpen, openTable } from './open.ts';
import { measurePages } from './pages.ts';
import { startWorkerd } from './workerd.ts';

interface Size extends Effort {
  readonly tenants: number;
  readonly containersEach: number;
}

const whole: Size = { tenants: 200, containersEach: 10, rounds: 3, forS: 4 };
const short: Size = { tenants: 20, containersEach: 5, rounds: 1, forS: 1 };

async function measure(bench: Bench, scope: Scope): Promise<Results> {
  const size = bench.isShort ? short : whole;
  const ground = await prepareGround(bench, scope, size.tenants);
  const longshore = await step('Longshore', () => startLongshore(ground));
  const fastify = await step('Fastify + PostgreSQL', () => startFastify(ground));
  const workerd = await step('workerd', () => startWorkerd(ground));
  const stores = [longshore, fastify, workerd];

  const durability: string[] = [];
  for (const store of stores) {
    durability.push(await step(`${store.name}: quota, name, token, disk`, () => check(store, ground)));
  }
  const seeded: Seeded[] = [];
  for (const store of stores) {
    const declared = await step(`${store.name}: containers to read`, () =>
      seed(store.systems[0], ground, ground.tenants, size.containersEach),
    );
    seeded.push({ store, declared });
  }
  const lines = await step('reads and creates', () => measureClosed(seeded, ground, size));
  const remarks = [
    `wrk ${(await bench.tool('wrk')).version}, one thread, ${size.forS} s, median of ${size.rounds} rounds, systems in turn; its latencies are corrected for coordinated omission.`,
    `${size.tenants} tenants with ${size.containersEach} containers and more each; tokens are EdDSA JWTs, remembered after they were verified.`,
    ...stores.map(({ remark }) => remark),
    ...durability,
  ];
  const open = await step('reads and creates at half of the peaks', () => measureOpen(seeded, lines, ground, size));
  const pages = await step('lists, quotas and logs', () => measurePages(longshore, fastify, ground, size));
  return { tables: [...closedTables(lines, fastify.systems, remarks), openTable(open, size), pages] };
}

export const api: Section = {
  name: 'api',
  run: async (bench) => {
    const scope = createScope();
    try {
      return await measure(bench, scope);
    } finally {
      await scope.end();
    }
  },
};
