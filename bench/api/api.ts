/**
 * Compares the HTTP API with what people would write or run instead: reads, durable creates, lists,
 * quotas and logs.
 */
import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { step } from '../../dev/steps.ts';
import { createScope } from '../../test/faults/world/scope.ts';
import type { Bench, Results, Section } from '../section.ts';
import { check } from './checks.ts';
import { measureCosts } from './costs.ts';
import { closedTables, measureRound, mediansOf, type Effort, type Line, type Seeded } from './closed.ts';
import { startFastify } from './systems/fastify.ts';
import { prepareGround, seed, type Ground, type Store } from './ground.ts';
import { startLongshore, type Longshore } from './systems/longshore.ts';
import { measureOpen, openTable } from './open.ts';
import { measurePages } from './pages.ts';
import { startWorkerd } from './systems/workerd.ts';

interface Size extends Effort {
  readonly tenants: number;
  readonly containersEach: number;
}

const full: Size = { tenants: 200, containersEach: 10, rounds: 3, forS: 3 };
const short: Size = { tenants: 20, containersEach: 5, rounds: 1, forS: 1 };

interface Stores {
  readonly ground: Ground;
  readonly longshore: Longshore;
  readonly fastify: Store;
  readonly all: readonly Store[];
}

/** Creates a folder that the user of PostgreSQL may enter. */
function openFolder(path: string): string {
  mkdirSync(path, { recursive: true });
  chmodSync(path, 0o711);
  return path;
}

/**
 * Starts empty stores and stops them after `work`. Each round needs new ones: at ten thousand
 * creates per second a store holds millions of containers after some rounds, and the section
 * `growth` measures the cost of that.
 */
async function withStores<T>(base: Omit<Ground, 'scope'>, work: (stores: Stores) => Promise<T>): Promise<T> {
  const scope = createScope();
  const folder = openFolder(join(openFolder(base.bench.folder), 'stores'));
  const ground = { ...base, scope, bench: { ...base.bench, folder } };
  try {
    const longshore = await step('Longshore', () => startLongshore(ground));
    const fastify = await step('Fastify + PostgreSQL', () => startFastify(ground));
    const workerd = await step('workerd', () => startWorkerd(ground));
    return await work({ ground, longshore, fastify, all: [longshore, fastify, workerd] });
  } finally {
    await scope.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function fill({ all, ground }: Stores, containersEach: number): Promise<Seeded[]> {
  const seeded: Seeded[] = [];
  for (const store of all) {
    const declared = await seed(store.systems[0], ground, ground.tenants, containersEach);
    seeded.push({ store, declared });
  }
  return seeded;
}

async function checked({ all, ground }: Stores): Promise<string[]> {
  const remarks: string[] = [];
  for (const store of all) {
    remarks.push(await step(`${store.name}: quota, name, token, disk`, () => check(store, ground)));
  }
  return remarks;
}

async function measure(bench: Bench): Promise<Results> {
  const size = bench.isShort ? short : full;
  const base = await prepareGround(bench, size.tenants);
  const durability: string[] = [];
  const rounds: Line[][] = [];
  for (let round = 0; round < size.rounds; round++) {
    const lines = await withStores(base, async (stores) => {
      if (round === 0) durability.push(...(await checked(stores)));
      const seeded = await fill(stores, size.containersEach);
      return step(`round ${round + 1}`, () => measureRound(seeded, stores.ground, size.forS, round));
    });
    rounds.push(lines);
  }
  const lines = mediansOf(rounds);
  return withStores(base, async (stores) => {
    const { ground, longshore, fastify, all } = stores;
    const seeded = await fill(stores, size.containersEach);
    const [own] = seeded;
    if (own === undefined) throw new Error('nothing was seeded');
    const costs = await step('cost of a request', () => measureCosts(longshore, own, ground, size));
    const open = await step('open loop at half of the peaks', () => measureOpen(seeded, lines, ground, size));
    const pages = await step('lists, quotas and logs', () => measurePages(longshore, fastify, ground, size));
    const remarks = [
      `wrk ${(await bench.tool('wrk')).version}, one thread, ${size.forS} s, median of ${size.rounds} rounds. Each round measures the systems in turn, with new stores. wrk corrects latencies for coordinated omission.`,
      `${size.tenants} tenants with at least ${size.containersEach} containers each. Tokens are EdDSA JWTs; all systems cache verified tokens.`,
      ...all.map(({ remark }) => remark),
      ...durability,
    ];
    return { tables: [...closedTables(lines, fastify, remarks), costs, openTable(open, size), pages] };
  });
}

export const api: Section = { name: 'api', run: measure };
