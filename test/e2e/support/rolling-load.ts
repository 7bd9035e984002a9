/**
 * A load that must not notice a rolling restart: clients that ask only gateways whose `/readyz` is
 * 200, as a proxy in front of them does.
 */
import { sleep } from '../../../lib/backoff.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import type { Client } from './client.ts';

/** Between two checks of a gateway; a gateway's SHUTDOWN_DELAY_MS is longer (docs/deploy.md). */
const checkMs = 100;
/** Within it the checks notice that a gateway stops, on a starved machine too. */
export const shutdownDelayMs = 10_000;

/** A gateway as one tenant sees it through the proxy. */
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

/** What all clients together have seen. */
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
  /** Between one container and the next. */
  readonly pauseMs: number;
  /** Whether hosts run the containers: a deleted one is readable until its host has removed it. */
  readonly hasHosts: boolean;
  readonly signal: AbortSignal;
}

/** A client lets no more containers than these live. */
const keptMax = 10;

/**
 * One request at a time: creates a container, stops, starts, reads and lists it, and deletes every
 * other one. Resolves with what must be there at the end.
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
    // A refusal has no data; the failure is reported at the end.
    if (seen.failures.length > 0) break;
    kept.add(data.id);
    await ask('stop', [200], async (client) => client.stop(data));
    await ask('start', [200], async (client) => client.start(data));
    const { data: status } = await ask('status', [200], async (client) => client.status(data));
    // Created, stopped, started; placed on a host, where the owner has heard of one by now.
    const generations = load.hasHosts ? [3, 4] : [3];
    if (!generations.includes(status.generation))
      seen.failures.push(`generation ${status.generation} after two changes`);
    const listed = await ask('list', [200], async (client) => client.list());
    const ids = new Set(listed.data.map(({ id }) => id));
    for (const id of kept) if (!ids.has(id)) seen.failures.push(`a list lacks ${id}`);
    if (kept.size > keptMax || round % 2 === 1) {
      await ask('delete', [202], async (client) => client.remove(data));
      kept.delete(data.id);
      await ask('read of what is deleted', load.hasHosts ? [200, 404] : [404], async (client) => client.get(data));
    }
    await sleep(load.pauseMs);
  }
  return kept;
}
