/**
 * The judgements of a run that need more than its history: what runs on the engine, what grows, and
 * what failed when nothing may.
 */
import Type from 'typebox';
import { sleep } from '../../lib/time/backoff.ts';
import { decoder } from '../../lib/decode.ts';
import { createHttpClient, type HttpClient } from './load/client.ts';
import type { Growth } from './world/memory.ts';
import { encoded } from './load/requests.ts';
import { tenants } from './load/tenants.ts';
import type { Failure } from './load/workload.ts';
import type { World } from './world/world.ts';

export interface Judgement {
  readonly what: string;
  /** What is wrong, in words; none: the judgement holds. */
  readonly faults: readonly string[];
}

const settleDeadlineMs = 60_000;
const settlePollMs = 500;

interface Wanted {
  readonly tenant: string;
  readonly id: string;
  readonly desired: string;
}

const decodeList = decoder(Type.Object({ data: Type.Array(Type.Object({ id: Type.String() })) }));
const decodeStatus = decoder(Type.Object({ data: Type.Object({ desired: Type.String() }) }));

async function wantedNow(world: World, http: HttpClient): Promise<Wanted[]> {
  const wanted: Wanted[] = [];
  const [gateway] = world.gateways;
  for (const tenant of tenants) {
    const token = await world.token(tenant);
    const ask = async <T>(path: string, decode: (bytes: Uint8Array) => T): Promise<T> => {
      const heard = await http.send({ baseUrl: gateway?.baseUrl ?? '', method: 'GET', path, token });
      if (heard.kind === 'answer' && heard.status === 200) return decode(encoded(heard.body));
      throw new Error(`${tenant}: ${path}: ${heard.kind === 'answer' ? heard.status : heard.why}`);
    };
    for (const { id } of (await ask('/api/v2/compute', decodeList)).data) {
      const { desired } = (await ask(`/api/v2/compute/${id}/status`, decodeStatus)).data;
      wanted.push({ tenant, id, desired });
    }
  }
  return wanted;
}

function differences(wanted: readonly Wanted[], world: World): string[] {
  const running = world.engine.running();
  const shouldRun = new Map(wanted.filter(({ desired }) => desired === 'running').map((each) => [each.id, each]));
  const counts = new Map<string, number>();
  for (const { container } of running) counts.set(container, (counts.get(container) ?? 0) + 1);
  return [
    ...wanted.filter(({ desired }) => desired === 'removed').map(({ tenant, id }) => `${tenant} ${id} is still there`),
    ...[...shouldRun.values()]
      .filter(({ id }) => !counts.has(id))
      .map(({ tenant, id }) => `${tenant} ${id} does not run`),
    ...running
      .filter(({ container }) => !shouldRun.has(container))
      .map(({ tenant, container }) => `${tenant} ${container} runs, and should not`),
    ...running
      .filter(({ hasNetwork }) => !hasNetwork)
      .map(({ tenant, container }) => `${tenant} ${container} has no network`),
    ...[...counts].filter(([, count]) => count > 1).map(([id, count]) => `${id} runs ${count} times`),
  ];
}

/** Once all faults are healed and no client sends requests, what is desired is what runs. */
export async function judgeConvergence(world: World): Promise<Judgement> {
  const http = createHttpClient(1);
  const endMs = performance.now() + settleDeadlineMs;
  let faults: string[] = ['it was not checked'];
  try {
    while (performance.now() < endMs) {
      faults = await wantedNow(world, http).then(
        (wanted) => differences(wanted, world),
        (error: unknown) => [error instanceof Error ? error.message : String(error)],
      );
      if (faults.length === 0) break;
      await sleep(settlePollMs);
    }
  } finally {
    http.close();
  }
  return { what: `what is desired is what runs, within ${settleDeadlineMs / 1000} s`, faults };
}

export const judgeDoubles = (world: World): Judgement => ({
  what: 'no container runs twice at a time',
  faults: world.engine.doubles,
});

/**
 * A program's heap grows in steps until its first full collections, and a nats-server's with the
 * caches of streams. So only growth by a third, and by at least this, counts.
 */
const growthFloorBytes = 96 * 1024 ** 2;
const growthFraction = 1 / 3;

export const judgeMemory = (growths: readonly Growth[]): Judgement => ({
  what: 'memory does not grow',
  faults: growths
    .filter(({ fromBytes, toBytes }) => toBytes - fromBytes > Math.max(growthFloorBytes, fromBytes * growthFraction))
    .map(({ place, fromBytes, toBytes, overMs }) => {
      const mib = (bytes: number): string => (bytes / 1024 ** 2).toFixed(0);
      return `${place}: from ${mib(fromBytes)} to ${mib(toBytes)} MiB in ${(overMs / 1000).toFixed(0)} s`;
    }),
});

/** During a rolling restart no request may fail. */
export const judgeGraceful = (failures: readonly Failure[], fromMs: number, untilMs: number): string[] =>
  failures
    .filter(({ atMs, isKeptConnection }) => atMs >= fromMs && atMs <= untilMs && !isKeptConnection)
    .map(({ process, gateway, what, why }) => `a ${what} of ${process} at ${gateway}: ${why}`);
