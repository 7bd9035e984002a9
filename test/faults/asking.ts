/** Requests of judgements to a gateway, sent once or until a condition holds. */
import { messageOf } from '../../lib/error-message.ts';
import { sleep } from '../../lib/time/backoff.ts';
import { createHttpClient } from './load/client.ts';
import { encoded } from './load/requests.ts';
import type { World } from './world/world.ts';

/** Asks as a tenant. Rejects where it is not answered with 200. */
export type Ask = <T>(path: string, decode: (bytes: Uint8Array) => T) => Promise<T>;
type AskerOf = (tenant: string) => Promise<Ask>;

export const settleMs = 60_000;
const settlePollMs = 500;

export const textOf = (error: unknown): string => messageOf(error);

export async function withAskers<T>(world: World, work: (askerOf: AskerOf) => Promise<T>): Promise<T> {
  const http = createHttpClient(1);
  const [gateway] = world.gateways;
  try {
    return await work(async (tenant) => {
      const token = await world.token(tenant);
      return async (path, decode) => {
        const heard = await http.send({ baseUrl: gateway?.baseUrl ?? '', method: 'GET', path, token });
        if (heard.kind === 'answer' && heard.status === 200) return decode(encoded(heard.body));
        throw new Error(`${tenant}: ${path}: ${heard.kind === 'answer' ? heard.status : heard.why}`);
      };
    });
  } finally {
    http.close();
  }
}

/** Looks again until there are no faults, or for `settleMs`; resolves to those that are left. */
export const settledFaults = (world: World, look: (askerOf: AskerOf) => Promise<string[]>): Promise<string[]> =>
  withAskers(world, async (askerOf) => {
    const endMs = performance.now() + settleMs;
    for (;;) {
      const faults = await look(askerOf).catch((error: unknown) => [textOf(error)]);
      if (faults.length === 0 || performance.now() >= endMs) return faults;
      await sleep(settlePollMs);
    }
  });
