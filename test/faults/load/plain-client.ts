/** A client of the loads without a history. It goes to the other gateway when one fails. */
import { sleep } from '../../../lib/time/backoff.ts';
import type { World } from '../world/world.ts';
import { createHttpClient, type HttpCall } from './client.ts';

export type Outcome =
  | { readonly kind: 'done'; readonly body: unknown }
  /** Nothing was executed. */
  | { readonly kind: 'refused'; readonly status: number | undefined }
  /** It may have been executed, or may be yet. */
  | { readonly kind: 'unknown' };

export type Call = Pick<HttpCall, 'method' | 'path' | 'body' | 'headers'>;

export interface PlainClient {
  send(call: Call): Promise<Outcome>;
  /** Repeats until the request is done or refused with 4xx; `undefined` if the signal aborted. */
  insist(call: Call, signal: AbortSignal): Promise<Exclude<Outcome, { kind: 'unknown' }> | undefined>;
  close(): void;
}

const retryMs = 300;

export async function createPlainClient(world: World, tenant: string, index: number): Promise<PlainClient> {
  const http = createHttpClient(1);
  const token = await world.token(tenant);
  let home = index;

  const send = async (call: Call): Promise<Outcome> => {
    const { baseUrl } = world.gateways[home % world.gateways.length]!;
    const heard = await http.send({ baseUrl, token, ...call });
    if (heard.kind === 'answer' && heard.status < 300) return { kind: 'done', body: heard.body };
    if (heard.kind === 'answer' && heard.status < 500) return { kind: 'refused', status: heard.status };
    home += 1;
    const isRefused = heard.kind === 'answer' ? heard.status === 503 : !heard.sent;
    return isRefused ? { kind: 'refused', status: undefined } : { kind: 'unknown' };
  };

  return {
    send,
    insist: async (call, signal) => {
      while (!signal.aborted) {
        const outcome = await send(call);
        if (outcome.kind === 'done') return outcome;
        if (outcome.kind === 'refused' && outcome.status !== undefined && outcome.status !== 429) return outcome;
        await sleep(retryMs, signal);
      }
      return undefined;
    },
    close: () => http.close(),
  };
}
