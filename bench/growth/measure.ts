/** Measures a running fleet: reads, lists, further creates, and the sync of a host. */
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { NatsConnection } from '@nats-io/transport-node';
import { within } from '../../lib/time/backoff.ts';
import type { HostKey } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { senderOfSubject, subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { createContainers, generate, listAll, until } from '../fleet/measure.ts';
import { asControlPlane } from '../messages.ts';
import type { FleetWorld } from '../fleet/world.ts';
import type { Bench } from '../section.ts';
import { median, quantile } from '../statistics.ts';
import { protocolFields } from '../../schemas/wire/version.ts';

const connections = { reads: 64, lists: 4 } as const;
const syncRounds = 50;
const syncDeadlineMs = 30_000;
const burstDeadlineMs = 120_000;
const compute = '/api/v2/compute';

export interface Work {
  readonly readsPerSecond: number;
  readonly readP99Ms: number;
  readonly listP50Ms: number;
  /** Rate of a burst of creates while all other containers run. */
  readonly createsPerSecond: number;
  /** Time from a host's request for its whole desired state to the last answer. */
  readonly syncP50Ms: number;
}

export interface WorkPlan {
  readonly readMs: number;
  readonly burst: number;
}

export async function measureWork(bench: Bench, world: FleetWorld, plan: WorkPlan): Promise<Work> {
  const { tokens, gatewayPorts: ports } = world;
  const lists = await listAll(world);
  const get = (kind: keyof typeof connections, paths: readonly (readonly string[])[]) =>
    generate(bench, {
      ports,
      connections: connections[kind],
      tokens,
      work: { kind: 'get', paths, forMs: plan.readMs },
    });
  const reads = await get(
    'reads',
    lists.map((ofTenant) => ofTenant.map(({ id }) => `${compute}/${id}`)),
  );
  const listed = await get(
    'lists',
    lists.map(() => [`${compute}?limit=${limits.listMax}`]),
  );
  const syncP50Ms = await syncsOf(world);
  const known = lists.flat().length;
  const burst = await createContainers(bench, world, { from: known, count: plan.burst });
  const runs = async (): Promise<boolean> => (await world.engineCounts()).running >= known + plan.burst;
  await until(bench, 'the further containers run', burstDeadlineMs, runs);
  return {
    readsPerSecond: (reads.answered * 1000) / reads.elapsedMs,
    readP99Ms: quantile(reads.tookMs, 0.99),
    listP50Ms: quantile(listed.tookMs, 0.5),
    createsPerSecond: (burst.answered * 1000) / burst.elapsedMs,
    syncP50Ms,
  };
}

const syncsOf = (world: FleetWorld): Promise<number> =>
  asControlPlane(world.nats, async (nc) => {
    const sender = await within(senderOf(nc, 'h0' as HostKey), syncDeadlineMs, 'a heartbeat');
    const tookMs: number[] = [];
    for (let round = 0; round < syncRounds; round++) {
      const startMs = performance.now();
      await within(syncOnce(nc, sender), syncDeadlineMs, 'a sync');
      tookMs.push(performance.now() - startMs);
    }
    return median(tookMs);
  });

/** The identity of a host's agent, from the subject of its heartbeat. */
const senderOf = (nc: NatsConnection, host: HostKey): Promise<Sender> =>
  new Promise((resolve, reject) => {
    nc.subscribe(subjects.hostBeat({ host, user: '*' }), {
      max: 1,
      callback: (error, { subject }) => {
        if (error === null) resolve({ host, user: senderOfSubject(subject).user });
        else reject(error);
      },
    });
  });

/**
 * Syncs like an agent that has no desired state yet (host-agent/link/sync.ts).
 * Resolves when every partition has sent all of its parts.
 */
function syncOnce(nc: NatsConnection, sender: Sender): Promise<void> {
  return new Promise((resolve, reject) => {
    const inbox = `_INBOX.${randomUUID()}`;
    let [parts, answers] = [0, 0];
    const seen = new Set<number>();
    const subscription = nc.subscribe(inbox, {
      callback: (error, message) => {
        if (error !== null) {
          reject(error);
          return;
        }
        const answer = message.json<{ partition: number; partitions: number; parts: number }>();
        answers += 1;
        if (!seen.has(answer.partition)) parts += answer.parts;
        seen.add(answer.partition);
        if (seen.size < answer.partitions || answers < parts) return;
        subscription.unsubscribe();
        resolve();
      },
    });
    nc.publish(subjects.hostSync(sender), JSON.stringify({ v: 1, ...protocolFields, held: {} }), { reply: inbox });
  });
}
