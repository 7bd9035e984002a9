/**
 * One tenant asks without end for what there is not: each refusal leaves a line in the audit, until
 * there is no room for more of them.
 */
import { randomUUID } from 'node:crypto';
import { sleep } from '../../../lib/time/backoff.ts';
import { limits } from '../../../schemas/limits.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import type { Operation } from '../check/history.ts';
import type { World } from '../world/world.ts';
import { createHttpClient } from './client.ts';
import { callOf, resultOf } from './requests.ts';

export interface Rush {
  readonly operations: readonly Operation[];
  /** The number that was refused because there was no room. */
  refused(): number;
  /** Resolves to the answers that such a tenant must not get, in words. */
  stop(): Promise<string[]>;
}

const lanes = 16;
const pauseMs = 20;

/** Another tenant of the same partition. */
function neighbourOf(tenant: string): string {
  const partition = partitionOf(tenant, limits.partitions);
  for (let number = 0; ; number++) {
    const name = `greedy${number}`;
    if (partitionOf(name, limits.partitions) === partition) return name;
  }
}

export async function startRush(world: World, beside: string): Promise<Rush> {
  const tenant = neighbourOf(beside);
  const token = await world.token(tenant);
  const http = createHttpClient(lanes);
  const operations: Operation[] = [];
  let isOver = false;

  const ask = async (process: string, baseUrl: string): Promise<void> => {
    while (!isOver) {
      const request = { kind: 'start', id: randomUUID() } as const;
      const requestId = randomUUID();
      const call = callOf(request, tenant, { withStatus: false });
      const invokedMs = performance.now();
      const heard = await http.send({ baseUrl, token, ...call, headers: { 'x-request-id': requestId } });
      const result = resultOf(request, heard, tenant);
      operations.push({ process, tenant, request, requestId, invokedMs, answeredMs: performance.now(), result });
      if (result.kind !== 'refused' || result.code !== 'not_found') await sleep(pauseMs);
    }
  };
  const asking = Promise.all(
    Array.from({ length: lanes }, (_, index) =>
      ask(`${tenant}-${index}`, world.gateways[index % world.gateways.length]!.baseUrl),
    ),
  );
  // `stop` awaits it and throws.
  asking.catch(() => undefined);
  const codes = (): string[] =>
    operations.map(({ result }) =>
      result.kind === 'refused' ? result.code : `${result.kind}: ${JSON.stringify(result)}`,
    );
  const noRoom = new Set(['unavailable', 'rate_limited']);
  return {
    operations,
    refused: () => codes().filter((code) => noRoom.has(code)).length,
    stop: async () => {
      isOver = true;
      await asking;
      http.close();
      const wrong = new Set(codes().filter((code) => code !== 'not_found' && !noRoom.has(code)));
      return [...wrong].map((code) => `${tenant} asked for what there is not, and got ${code}`);
    },
  };
}
