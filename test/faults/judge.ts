/**
 * The judgements of a run that need more than its history: what runs on the engine, what grows, and
 * what failed when nothing may.
 */
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { Container, ContainerStatusView } from '../../schemas/api/container.ts';
import { Event } from '../../schemas/api/event.ts';
import { Spec } from '../../schemas/api/spec.ts';
import { QuotaView } from '../../schemas/api/tenant.ts';
import { settledFaults, settleMs, textOf, withAskers, type Ask } from './asking.ts';
import { isFilledAlike } from './check/filling.ts';
import { seenOf, type Version } from './check/history.ts';
import type { Growth } from './world/memory.ts';
import { compute, documentOf } from './load/requests.ts';
import { allTenants, crashingTag, missingTag, updatesTenant } from './load/tenants.ts';
import type { Span } from './load/silence.ts';
import type { Failure } from './load/workload.ts';
import type { World } from './world/world.ts';

export interface Judgement {
  readonly what: string;
  /** Descriptions of what is wrong; empty if the judgement holds. */
  readonly faults: readonly string[];
}

interface Wanted {
  readonly tenant: string;
  readonly id: string;
  readonly desired: string;
  readonly tag: string;
  readonly version: Version | null;
  readonly update: ContainerStatusView['update'];
}

const decodeList = decoder(Type.Object({ data: Type.Array(Container) }));
const decodeStatus = decoder(Type.Object({ data: ContainerStatusView }));
const decodeQuota = decoder(Type.Object({ data: QuotaView }));
const decodeSpec = decoder(Type.Object({ data: Spec }));
const decodeEvents = decoder(Type.Object({ data: Type.Array(Event) }));

async function wantedOf(tenant: string, ask: Ask): Promise<Wanted[]> {
  const wanted: Wanted[] = [];
  for (const container of (await ask(compute, decodeList)).data) {
    const { id, tag } = container;
    const { desired, update } = (await ask(`${compute}/${id}/status`, decodeStatus)).data;
    wanted.push({ tenant, id, desired, tag: tag ?? '', version: seenOf(container).version, update });
  }
  return wanted;
}

const isBad = (tag: string): boolean => tag === crashingTag || tag === missingTag;

function differences(wanted: readonly Wanted[], world: World): string[] {
  const running = world.engine.running();
  const shouldRun = new Map(wanted.filter(({ desired }) => desired === 'running').map((each) => [each.id, each]));
  const counts = new Map<string, number>();
  for (const { container } of running) counts.set(container, (counts.get(container) ?? 0) + 1);
  return [
    ...wanted.filter(({ desired }) => desired === 'removed').map(({ tenant, id }) => `${tenant} ${id} is still there`),
    ...[...shouldRun.values()]
      .filter(({ id, tag }) => !counts.has(id) && !isBad(tag))
      .map(({ tenant, id }) => `${tenant} ${id} does not run`),
    ...running
      .filter(({ container }) => !shouldRun.has(container))
      .map(({ tenant, container }) => `${tenant} ${container} runs, and should not`),
    ...running.flatMap(({ tenant, container, tag }) => {
      const declared = shouldRun.get(container)?.tag ?? tag;
      return declared === tag ? [] : [`${tenant} ${container} runs ${tag}, and ${declared} is declared`];
    }),
    ...wanted
      .filter(({ update }) => update?.phase === 'preparing' || update?.phase === 'verifying')
      .map(({ tenant, id, update }) => `${tenant} ${id}: its update is ${update?.phase}`),
    ...running
      .filter(({ hasNetwork }) => !hasNetwork)
      .map(({ tenant, container }) => `${tenant} ${container} has no network`),
    ...[...counts].filter(([, count]) => count > 1).map(([id, count]) => `${id} runs ${count} times`),
  ];
}

/** Once all faults are healed and no client sends requests, what is desired is what runs. */
export async function judgeConvergence(world: World): Promise<Judgement> {
  const faults = await settledFaults(world, async (askerOf) => {
    const asked = allTenants.map(async (tenant) => wantedOf(tenant, await askerOf(tenant)));
    return differences((await Promise.all(asked)).flat(), world);
  });
  return { what: `what is desired is what runs, within ${settleMs / 1000} s`, faults };
}

/**
 * After all updates, the quota counts exactly what is declared, each roll-back that a status shows
 * has an event with the reason, and a large document is whole.
 * @param forgotten events of then may be missing
 */
export async function judgeUpdates(world: World, forgotten: readonly Span[]): Promise<Judgement> {
  const faults: string[] = [];
  const look = async (tenant: string, ask: Ask): Promise<void> => {
    const wanted = await wantedOf(tenant, ask);
    const { usage } = (await ask(`${compute}/quota`, decodeQuota)).data;
    const sum = (of: (version: Version) => number): number =>
      wanted.reduce((total, { version }) => total + (version === null ? 0 : of(version)), 0);
    const declared = [wanted.length, sum(({ cpuMillis }) => cpuMillis), sum(({ memBytes }) => memBytes)].join();
    const counted = [usage.containers, usage.cpu_millis, usage.mem_bytes].join();
    if (counted !== declared) faults.push(`${tenant}: the quota counts ${counted}, and ${declared} is declared`);
    for (const { id, update } of wanted) {
      const { env, process } = (await ask(documentOf(id), decodeSpec)).data;
      if (tenant === updatesTenant && !isFilledAlike(env, process?.command ?? []))
        faults.push(`${tenant} ${id}: its variables and its command are not of one write`);
      if (update?.phase !== 'rolled_back') continue;
      const { data: events } = await ask(`${compute}/${id}/events?limit=500`, decodeEvents);
      const last = events.findLast(({ type }) => type === 'update_failed' || type === 'updated');
      const isTold = last?.type === 'update_failed' && last.reason !== null;
      if (!isTold && forgotten.length === 0)
        faults.push(`${tenant} ${id} was rolled back, and no event says why: ${JSON.stringify(last)}`);
    }
  };
  await withAskers(world, async (askerOf) => {
    for (const tenant of allTenants) await look(tenant, await askerOf(tenant));
  }).catch((error: unknown) => faults.push(textOf(error)));
  return { what: 'when updates are over, caps are exact, and an event says why one was rolled back', faults };
}

export const judgeDoubles = (world: World): Judgement => ({
  what: 'no container runs twice at a time',
  faults: world.engine.doubles,
});

/**
 * An owner's heap grows with the partitions that it takes over, and a nats-server with the caches
 * of streams. So only growth by a third, and by at least this, counts.
 */
const growthFloorBytes = 48 * 1024 ** 2;
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
