/** Turns requests of the workload into HTTP calls, and answers into results of the history. */
import Type from 'typebox';
import { decoder } from '../../../lib/decode.ts';
import { Container, ContainerStatusView } from '../../../schemas/api/container.ts';
import { QuotaView } from '../../../schemas/api/tenant.ts';
import { variablesOf } from '../check/filling.ts';
import { seenOf, type Quota, type Request, type Result, type Told, type Version } from '../check/history.ts';
import type { Heard, HttpCall } from './client.ts';
import { exactTenants } from './tenants.ts';

export const compute = '/api/v2/compute';
export const documentOf = (id: string): string => `/api/v2/containers/${id}/spec`;
export type Size = Omit<Version, 'tag' | 'filling'>;
export const sizes: readonly [Size, ...Size[]] = [
  { cpuMillis: 250, memBytes: 64 * 1024 ** 2 },
  { cpuMillis: 500, memBytes: 128 * 1024 ** 2 },
  { cpuMillis: 1_000, memBytes: 256 * 1024 ** 2 },
];

export const fieldsOf = ({ tag, cpuMillis, memBytes, filling }: Partial<Version>): object => ({
  tag,
  cpu_limit: cpuMillis === undefined ? undefined : (cpuMillis / 1000).toFixed(2),
  mem_limit: memBytes === undefined ? undefined : `${memBytes / 1024 ** 2}m`,
  env: filling === undefined ? undefined : variablesOf(filling),
});

/** A parsed body as the bytes that decoders take. */
export const encoded = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));
const decodeContainer = decoder(Type.Object({ data: Type.Union([Container, ContainerStatusView]) }));
const decodeMade = decoder(Type.Object({ data: Container }));
/** The container in the answer to a create. */
export const containerIn = (body: unknown): Container => decodeMade(encoded(body)).data;
const decodeList = decoder(
  Type.Object({ data: Type.Array(Container), next_cursor: Type.Optional(Type.Union([Type.String(), Type.Null()])) }),
);
const decodeQuota = decoder(Type.Object({ data: QuotaView }));
const decodeError = decoder(
  Type.Object({
    error: Type.String(),
    details: Type.Optional(Type.Record(Type.String(), Type.Array(Type.String()))),
  }),
);

/**
 * The HTTP call of a request, without gateway and token.
 * @param etag for `If-Match`
 */
export function callOf(
  request: Request,
  tenant: string,
  { withStatus, etag }: { readonly withStatus: boolean; readonly etag?: string },
): Pick<HttpCall, 'method' | 'path' | 'body' | 'headers'> {
  switch (request.kind) {
    case 'create': {
      const { name, version, idempotencyKey } = request;
      return {
        method: 'POST',
        path: compute,
        body: { name, registry: 'registry.test', repository: tenant, ...fieldsOf(version) },
        ...(idempotencyKey === null ? {} : { headers: { 'idempotency-key': idempotencyKey } }),
      };
    }
    case 'start':
    case 'stop':
      return { method: 'POST', path: `${compute}/${request.id}/${request.kind}` };
    case 'patch':
      return {
        method: 'PATCH',
        path: `${compute}/${request.id}`,
        body: fieldsOf(request.change),
        ...(etag === undefined ? {} : { headers: { 'if-match': etag } }),
      };
    case 'delete':
      return { method: 'DELETE', path: `${compute}/${request.id}` };
    case 'get':
      return { method: 'GET', path: `${compute}/${request.id}${withStatus ? '/status' : ''}` };
    case 'list':
      return { method: 'GET', path: compute };
    case 'quota':
      return { method: 'GET', path: `${compute}/quota` };
  }
}

function toldOf(request: Request, body: unknown): Told {
  switch (request.kind) {
    case 'list': {
      const { data, next_cursor } = decodeList(encoded(body));
      return { of: 'list', containers: data.map(seenOf), isWhole: next_cursor == null };
    }
    case 'quota': {
      const { usage, caps: given } = decodeQuota(encoded(body)).data;
      const amounts = (from: Readonly<Record<string, number | null>>) => ({
        containers: from['containers'] ?? null,
        cpuMillis: from['cpu_millis'] ?? null,
        memBytes: from['mem_bytes'] ?? null,
      });
      return { of: 'quota', quota: { usage: amounts(usage), caps: amounts(given) } as Quota };
    }
    default:
      return { of: 'container', container: seenOf(decodeContainer(encoded(body)).data) };
  }
}

function fullResultOf(request: Request, heard: Heard): Result {
  if (heard.kind === 'broken') {
    return heard.sent ? { kind: 'unknown', why: heard.why } : { kind: 'refused', code: 'unavailable' };
  }
  const { status, body } = heard;
  if (status >= 200 && status < 300) return { kind: 'ok', told: toldOf(request, body) };
  const { error, details } = decodeError(encoded(body));
  if (status >= 500 && status !== 503) return { kind: 'unknown', why: error };
  const nameTaken = details?.['name']?.includes('has already been taken') === true;
  return { kind: 'refused', code: error, ...(nameTaken ? { nameTaken } : {}) };
}

/** Result for a client, without the generation if the checker does not judge it (tenants.ts). */
export function resultOf(request: Request, heard: Heard, tenant: string): Result {
  const result = fullResultOf(request, heard);
  if (exactTenants.includes(tenant) || result.kind !== 'ok' || result.told.of !== 'container') return result;
  return { kind: 'ok', told: { of: 'container', container: { ...result.told.container, generation: null } } };
}
