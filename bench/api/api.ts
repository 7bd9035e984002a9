/**
 * The HTTP API beside what people would write or run in its place: reads, durable creates, lists,
 * quotas, logs.
 */
import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { step } from '../../dev/steps.ts';
import { createScope } from '../../test/faults/scope.ts';
import type { Bench, Results, Section } from '../section.ts';
import { check } from './checks.ts';
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

const whole: Size = { tenants: 200, containersEach: 10, rounds: 3, forS: 3 };
const short: Size = { tenants: 20, containersEach: 5, rounds: 1, forS: 1 };

interface Stores {
  readonly ground: Ground;
  readonly longshore: Longshore;
  readonly fastify: Store;
  readonly all: readonly Store[];
}

/** Open to the user that PostgreSQL runs as. */
function openFolder(path: string): string {
  mkdirSync(path, { recursive: true });
  chmodSync(path, 0o711);
  return path;
}

/**
 * Stores that are empty, stopped after the work. Whoever makes ten thousand containers a second has
 * millions after some rounds, and what that costs is another section's question.
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
  const told: string[] = [];
  for (const store of all) {
    told.push(await step(`${store.name}: quota, name, token, disk`, () => check(store, ground)));
  }
  return told;
}

async function measure(bench: Bench): Promise<Results> {
  const size = bench.isShort ? short : whole;
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
    const open = await step('half of the peaks', () => measureOpen(seeded, lines, ground, size));
    const pages = await step('lists, quotas and logs', () => measurePages(longshore, fastify, ground, size));
    const remarks = [
      `wrk ${(await bench.tool('wrk')).version}, one thread, ${size.forS} s, median of ${size.rounds} rounds, systems in turn, each round with new stores; its latencies are corrected for coordinated omission.`,
      `${size.tenants} tenants with ${size.containersEach} containers and more each; tokens are EdDSA JWTs, remembered after they were verified.`,
      ...all.map(({ remark }) => remark),
      ...durability,
    ];
    return { tables: [...closedTables(lines, fastify, remarks), openTable(open, size), pages] };
  });
}

export const api: Section = { name: 'api', run: measure };
