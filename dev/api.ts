/**
 * A client of Longshore's HTTP API for the tooling. It makes the same calls as a tenant or an
 * operator.
 */
import Type from 'typebox';
import { sleep } from '../lib/time/backoff.ts';
import { decoder } from '../lib/decode.ts';
import { Container, ContainerStatusView } from '../schemas/api/container.ts';
import { HostView } from '../schemas/api/host.ts';
import { LogEntry } from '../schemas/api/log.ts';
import { NetworkView, type NetworkCreateBody } from '../schemas/api/network.ts';
import { PolicyView } from '../schemas/api/policy.ts';
import { P12Password, PeerTokenWithText, PeerView, PeerWithSecrets } from '../schemas/api/peer.ts';
import { QuotaView } from '../schemas/api/tenant.ts';

const requestDeadlineMs = 10_000;
/** Deadline of calls that make RSA keys. */
const keyDeadlineMs = 60_000;
const hostDeadlineMs = 30_000;
const pollMs = 50;

const dataOf = <T extends Type.TSchema>(schema: T) => decoder(Type.Object({ data: schema }));
const decodeContainer = dataOf(Container);
const pageOf = <T extends Type.TSchema>(schema: T) =>
  decoder(Type.Object({ data: Type.Array(schema), next_cursor: Type.Optional(Type.String()) }));
const decodePage = pageOf(Container);
const decodeStatus = dataOf(ContainerStatusView);
const decodeLogs = dataOf(Type.Array(LogEntry));
const decodePolicy = dataOf(PolicyView);
const decodeQuota = dataOf(QuotaView);
const decodeHost = dataOf(Type.Object({ status: HostView.properties.status }));
const decodeJoin = dataOf(Type.Object({ join_token: Type.String() }));
const decodeNetwork = dataOf(NetworkView);
const decodePeers = pageOf(PeerView);
const decodeNewPeer = dataOf(PeerWithSecrets);
const decodeToken = dataOf(PeerTokenWithText);
const decodePassword = dataOf(P12Password);

export class ApiError extends Error {
  readonly status: number;

  constructor(what: string, status: number, body: string) {
    super(`${what}: ${status} ${body.slice(0, 500)}`);
    this.status = status;
  }
}

export type Api = ReturnType<typeof createApi>;

export function createApi(baseUrl: string) {
  const call = async (
    token: string,
    method: string,
    path: string,
    body?: unknown,
    deadlineMs = requestDeadlineMs,
  ): Promise<Uint8Array> => {
    const answer = await fetch(baseUrl + path, {
      method,
      signal: AbortSignal.timeout(deadlineMs),
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new ApiError(`${method} ${path}`, answer.status, await answer.text());
    return new Uint8Array(await answer.arrayBuffer());
  };
  /** Finds the tenant's container or peer by name, page by page. */
  async function named<T extends { readonly name: string }>(
    token: string,
    name: string,
    list: string,
    decode: (bytes: Uint8Array) => { readonly data: readonly T[]; readonly next_cursor?: string },
  ): Promise<T | undefined> {
    for (let path: string | undefined = list; path !== undefined;) {
      const page = decode(await call(token, 'GET', path));
      const found = page.data.find((item) => item.name === name);
      if (found !== undefined) return found;
      path = page.next_cursor === undefined ? undefined : `${list}?cursor=${page.next_cursor}`;
    }
    return undefined;
  }
  const compute = '/api/v2/compute';
  const hosts = '/api/v2/operator/hosts';
  const networks = '/api/v2/operator/networks';
  const peers = '/api/forage/peers';

  return {
    baseUrl,
    containerNamed: (token: string, name: string) => named(token, name, compute, decodePage),
    create: async (token: string, body: object) => decodeContainer(await call(token, 'POST', compute, body)).data,
    status: async (token: string, id: string) => decodeStatus(await call(token, 'GET', `${compute}/${id}/status`)).data,
    logs: async (token: string, id: string, limit: number) =>
      decodeLogs(await call(token, 'GET', `${compute}/${id}/logs?limit=${limit}`)).data,
    /** Resolves when nothing of it is left. */
    remove: async (token: string, id: string, withinS: number): Promise<void> => {
      await call(token, 'DELETE', `${compute}/${id}`);
      const path = `${compute}/${id}/wait?status=removed&timeout=${withinS}`;
      await call(token, 'GET', path, undefined, withinS * 1000).catch((error: unknown) => {
        // It was gone before the wait began.
        if (!(error instanceof ApiError) || error.status !== 404) throw error;
      });
    },
    patch: async (token: string, id: string, patch: object) =>
      decodeContainer(await call(token, 'PATCH', `${compute}/${id}`, patch)).data,
    putPolicy: async (token: string, id: string, policy: object) =>
      decodePolicy(await call(token, 'PUT', `${compute}/${id}/policy`, policy)).data,
    quota: async (token: string) => decodeQuota(await call(token, 'GET', `${compute}/quota`)).data,

    /** Returns the network of this name, or creates it. */
    async network(token: string, body: NetworkCreateBody): Promise<NetworkView> {
      try {
        return decodeNetwork(await call(token, 'GET', `${networks}/${body.name}`)).data;
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 404) throw error;
        return decodeNetwork(await call(token, 'POST', networks, body, keyDeadlineMs)).data;
      }
    },
    /** The host serves the network. */
    serve: async (token: string, network: string, host: string): Promise<void> => {
      await call(token, 'PUT', `${networks}/${network}/servers`, { host_keys: [host] });
    },
    peerNamed: (token: string, name: string) => named(token, name, peers, decodePeers),
    createPeer: async (token: string, body: object) =>
      decodeNewPeer(await call(token, 'POST', peers, body, keyDeadlineMs)).data,
    peerToken: async (token: string, id: string, scope: 'download' | 'pac') =>
      decodeToken(await call(token, 'POST', `${peers}/${id}/tokens`, { scope })).data.token,
    peerPassword: async (token: string, id: string) =>
      decodePassword(await call(token, 'POST', `/api/forage/p12/${id}/password`)).data.p12_password,

    /** A one-time join token for the host; creates the host at the first call. */
    async joinToken(token: string, host: { readonly key: string; readonly region: string }): Promise<string> {
      try {
        return decodeJoin(await call(token, 'POST', hosts, host)).data.join_token;
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 409) throw error;
        return decodeJoin(await call(token, 'POST', `${hosts}/${host.key}/join-token`)).data.join_token;
      }
    },

    /** Waits until the host is up. Rejects after a deadline, or when the signal aborts. */
    async hostIsUp(token: string, key: string, signal: AbortSignal): Promise<void> {
      const end = performance.now() + hostDeadlineMs;
      for (;;) {
        const { status } = decodeHost(await call(token, 'GET', `${hosts}/${key}`)).data;
        if (status === 'up') return;
        if (performance.now() > end) throw new Error(`host ${key} is still ${status} after ${hostDeadlineMs} ms`);
        await sleep(pollMs, signal);
        signal.throwIfAborted();
      }
    },
  };
}
