/**
 * A load for which a rolling restart must fail no request. Like a proxy, it sends requests only to
 * gateways whose `/readyz` answers 200.
 */
import { sleep } from '../../../lib/time/backoff.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import type { Client } from './client.ts';

/** Interval of the readiness checks; SHUTDOWN_DELAY must be longer (docs/deploy.md). */
const checkMs = 100;
/** Long enough for the checks to see that a gateway stops, even on a busy machine. */
export const shutdownDelayMs = 10_000;

/** A gateway in the pool of one tenant's client. */
export interface Member {
  readonly baseUrl: string;
  readonly client: Client;
  isReady: boolean;
}

async function isReady(baseUrl: string): Promise<boolean> {
  try {
    return (await fetch(`${baseUrl}/readyz`, { signal: AbortSignal.timeout(10_000) })).ok;
  } catch {
    return false;
  }
}

/** Keeps `isReady` of each member up to date. */
export async function check(members: readonly Member[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await Promise.all(members.map(async (member) => (member.isReady = await isReady(member.baseUrl))));
    await sleep(checkMs, signal);
  }
}

/** Counts over all clients. */
export interface Seen {
  requests: number;
  slowestMs: number;
  readonly failures: string[];
}

export interface Load {
  /** Body of a create, without the name. */
  readonly body: object;
  /** Prefix of the containers' names. */
  readonly name: string;
  /** Pause between two containers. */
  readonly pauseMs: number;
  /** True if hosts run the containers: a deleted one is readable until its host has removed it. */
  readonly hasHosts: boolean;
  readonly signal: AbortSignal;
}

/** A client keeps at most this many containers. */
const keptMax = 10;

/**
 * Creates, stops, starts, reads and lists containers, and deletes every other one; one request at a
 * time. Resolves to the ids of the containers that must exist at the end.
 */
export async function work(members: readonly Member[], load: Load, seen: Seen): Promise<Set<ContainerId>> {
  const kept = new Set<ContainerId>();
  let turn = 0;
  const ask = async <T>(
    what: string,
    wanted: readonly number[],
    call: (client: Client) => Promise<{ status: number; text: string; body: T }>,
  ): Promise<T> => {
    const ready = members.filter((member) => member.isReady);
    const member = ready[turn++ % ready.length];
    if (member === undefined) throw new Error('no gateway is ready');
    const startMs = performance.now();
    const { status, text, body } = await call(member.client);
    seen.requests++;
    seen.slowestMs = Math.max(seen.slowestMs, performance.now() - startMs);
    if (!wanted.includes(status)) seen.failures.push(`${what}: ${status} ${text}`);
    return body;
  };
  for (let round = 0; !load.signal.aborted; round++) {
    const { data } = await ask('create', [201], async (client) =>
      client.create({ ...load.body, name: `${load.name}-${round}` }),
    );
    // A refused create has no data. The test reports the failure at the end.
    if (seen.failures.length > 0) break;
    kept.add(data.id);
    await ask('stop', [200], async (client) => client.stop(data));
    await ask('start', [200], async (client) => client.start(data));
    const { data: status } = await ask('status', [200], async (client) => client.status(data));
    // Create, stop and start make generation 3; placement on a host adds one if it has happened.
    const generations = load.hasHosts ? [3, 4] : [3];
    if (!generations.includes(status.generation))
      seen.failures.push(`generation ${status.generation} after two changes`);
    const listed = await ask('list', [200], async (client) => client.list());
    const ids = new Set(listed.data.map(({ id }) => id));
    for (const id of kept) if (!ids.has(id)) seen.failures.push(`a list lacks ${id}`);
    if (kept.size > keptMax || round % 2 === 1) {
      await ask('delete', [202], async (client) => client.remove(data));
      kept.delete(data.id);
      await ask('read of a deleted container', load.hasHosts ? [200, 404] : [404], async (client) => client.get(data));
    }
    await sleep(load.pauseMs);
  }
  return kept;
}
