/**
 * Reads of more than one record: a list of 100 containers, the quota, and log lines of a container
 * whose history is full.
 */
import { BlockQueue } from '../../host-agent/logs/block.ts';
import { limits } from '../../schemas/limits.ts';
import type { Table } from '../section.ts';
import { figure, ratio } from '../statistics.ts';
import { medianOf, rotated, type Effort } from './closed.ts';
import { compute, seed, type Declared, type Ground, type Store, type System, type Tenant } from './ground.ts';
import type { Longshore } from './systems/longshore.ts';
import { gets } from './load/traffic.ts';
import { closedLoop, type Measured } from './load/wrk.ts';

const connections = 64;
const listed = limits.listMax;
const blocksAtOnce = 32;
const lineText = '2026-01-01 INFO request served path=/index.html status=200 ms=3';
const shortBlocks = 40;

/** Fills the history of a container with full blocks, encoded as an agent encodes them. */
async function fillHistory({ host }: Longshore, { tenant, id }: Declared, ground: Ground): Promise<number> {
  const blocks = ground.bench.isShort ? shortBlocks : limits.logBlocksPerContainer;
  const queue = new BlockQueue(0);
  const bytes = Buffer.byteLength(lineText);
  const ts = new Date().toISOString();
  let nth = 0;
  for (let made = 0; made < blocks;) {
    ground.bench.signal.throwIfAborted();
    const encoded: string[] = [];
    for (; encoded.length < blocksAtOnce && made < blocks; made++) {
      queue.push(
        Array.from({ length: limits.logBlockLines }, () => ({
          ts,
          stream: 'stdout',
          text: lineText,
          bytes,
          nth: nth++,
        })),
      );
      const block = queue.take();
      if (block !== undefined) encoded.push(block.payload);
    }
    await Promise.all(encoded.map((block) => host.publishLog(tenant.name, id, block)));
  }
  return blocks;
}

interface Page {
  readonly name: string;
  readonly path: string;
  readonly system: System;
  readonly tenant: Tenant;
  readonly connections: number;
  /** True if Longshore's page of the same path is compared with this one. */
  readonly isPeer: boolean;
}

export async function measurePages(
  longshore: Longshore,
  fastify: Store,
  ground: Ground,
  { rounds, forS }: Effort,
): Promise<Table> {
  const tenant = await ground.tenant('lister');
  const [ours, theirs] = [longshore.systems[0], fastify.systems[0]];
  const [container] = await seed(ours, ground, [tenant], listed);
  await seed(theirs, ground, [tenant], listed);
  if (container === undefined) throw new Error('no container to write logs for');
  const blocks = await fillHistory(longshore, container, ground);
  const lines = [limits.logsDefault, limits.logsMax];
  const page = (what: string, path: string, system: System): Page => ({
    name: `${system.name}: ${what}, ${connections} connections`,
    path,
    system,
    tenant,
    connections,
    isPeer: system === theirs,
  });
  const both = (what: string, path: string): Page[] => [page(what, path, theirs), page(what, path, ours)];
  const pages: Page[] = [
    ...both(`list of ${listed}`, compute),
    ...both('quota', `${compute}/quota`),
    ...lines.map((count) => page(`${count} log lines`, `${compute}/${container.id}/logs?limit=${count}`, ours)),
  ];
  const measured = new Map<Page, Measured[]>(pages.map((one) => [one, []]));
  for (let round = 0; round < rounds; round++) {
    for (const one of rotated(pages, round)) {
      const traffic = gets(one.system, [one]);
      const all = await closedLoop(ground.bench, { ...one, traffic, forS });
      measured.get(one)?.push(all);
    }
  }
  const results = [...measured].map(([one, all]) => ({ one, measured: medianOf(all) }));
  return {
    title: 'Lists, quotas and logs',
    columns: ['', 'per second', 'p50 ms', 'p99 ms', 'vs Fastify'],
    rows: results.map(({ one, measured: { perSecond, p50Ms, p99Ms } }) => {
      const base = results.find((other) => other.one.isPeer && other.one.path === one.path);
      const beside = base === undefined ? '–' : ratio(perSecond, base.measured.perSecond);
      return [one.name, figure(perSecond), figure(p50Ms), figure(p99Ms), beside];
    }),
    remarks: [
      `wrk as above. The container’s history holds ${blocks} blocks of lines${ground.bench.isShort ? '' : ', the most that is stored for one container'}.`,
    ],
  };
}
