/** The HTTP route table. It drives routing, validation, the OpenAPI document and the tests; there is no route beside it. */
import Type, { type TSchema } from 'typebox';
import { Container, ContainerStatus, ContainerStatusView, CreateBody, OperatorFields } from './container.ts';
import type { ErrorCode, SuccessCode } from './errors.ts';
import { Event } from './event.ts';
import { EnrolBody, HostCreateBody, HostUpdateBody, HostView } from './host.ts';
import { ContainerId, HostKey, TenantId } from './ids.ts';
import { limits } from './limits.ts';
import { LogEntry } from './log.ts';
import { QuotaView, RevocationBody, TenantSettings, TenantView } from './tenant.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Who may call: anybody, a tenant's token, or a token with the scope `operator`. */
export type Access = 'public' | 'tenant' | 'operator';

export interface QueryParameter {
  readonly schema: TSchema;
  readonly description: string;
}

export interface Route {
  readonly name: string;
  readonly method: Method;
  /** Segments that begin with `:` are parameters. */
  readonly path: string;
  readonly access: Access;
  readonly summary: string;
  readonly query?: Readonly<Record<string, QueryParameter>>;
  readonly body?: TSchema;
  readonly success: SuccessCode;
  /** Schema of `data`. */
  readonly data: TSchema;
  /** Keys beside `data`. */
  readonly beside?: Readonly<Record<string, TSchema>>;
  readonly errors: readonly ErrorCode[];
  /** The other media type of the answer: Server-Sent Events where `?follow=true`. */
  readonly streams?: true;
  /** Not wrapped in `data`, and not JSON of the API: health, OpenAPI. */
  readonly bare?: true;
}

const compute = '/api/v2/compute';
const operator = '/api/v2/operator';

const integer = (minimum: number, maximum: number, fallback: number, description: string): QueryParameter => ({
  schema: Type.Integer({ minimum, maximum, default: fallback }),
  description,
});
const cursor: QueryParameter = { schema: Type.String(), description: 'The `next_cursor` of the page before.' };
const follow: QueryParameter = {
  schema: Type.Boolean({ default: false }),
  description: 'Stay and stream as Server-Sent Events; `Last-Event-ID` resumes.',
};
const nextCursor = { next_cursor: Type.String() };

export const pathParameters = { id: ContainerId, tenant: TenantId, key: HostKey } as const;

const HostWithToken = Type.Object({ host: HostView, join_token: Type.String(), expires_at: Type.String() });

export const routes = [
  {
    name: 'container.list',
    method: 'GET',
    path: compute,
    access: 'tenant',
    summary: 'The caller’s containers, newest first.',
    query: { limit: integer(1, limits.listMax, limits.listDefault, 'How many at most.'), cursor },
    success: 'ok',
    data: Type.Array(Container),
    beside: nextCursor,
    errors: ['invalid'],
  },
  {
    name: 'container.create',
    method: 'POST',
    path: compute,
    access: 'tenant',
    summary: 'Declare a container; it is placed and started.',
    body: CreateBody,
    success: 'created',
    data: Container,
    errors: ['bad_request', 'unsupported_media_type', 'too_large', 'invalid', 'over_quota'],
  },
  {
    name: 'tenant.quota',
    method: 'GET',
    path: `${compute}/quota`,
    access: 'tenant',
    summary: 'What the caller uses of its caps.',
    query: { region: { schema: Type.String({ default: '*' }), description: 'A region, or `*` for all.' } },
    success: 'ok',
    data: QuotaView,
    errors: ['invalid'],
  },
  {
    name: 'event.list',
    method: 'GET',
    path: `${compute}/events`,
    access: 'tenant',
    summary: 'What happened to the caller’s containers, oldest of the chosen first; kept for seven days.',
    query: { limit: integer(1, limits.eventsMax, limits.eventsDefault, 'How many of the newest.'), follow },
    success: 'ok',
    data: Type.Array(Event),
    errors: ['invalid'],
    streams: true,
  },
  {
    name: 'container.get',
    method: 'GET',
    path: `${compute}/:id`,
    access: 'tenant',
    summary: 'One container of the caller.',
    success: 'ok',
    data: Container,
    errors: ['not_found'],
  },
  {
    name: 'container.delete',
    method: 'DELETE',
    path: `${compute}/:id`,
    access: 'tenant',
    summary: 'Stop and remove; its logs and events stay readable for seven days.',
    success: 'accepted',
    data: Container,
    errors: ['not_found'],
  },
  {
    name: 'container.status',
    method: 'GET',
    path: `${compute}/:id/status`,
    access: 'tenant',
    summary: 'Desired and observed state, with reason, retries and addresses.',
    success: 'ok',
    data: ContainerStatusView,
    errors: ['not_found'],
  },
  {
    name: 'container.logs',
    method: 'GET',
    path: `${compute}/:id/logs`,
    access: 'tenant',
    summary: 'The newest captured lines, oldest first.',
    query: { limit: integer(1, limits.logsMax, limits.logsDefault, 'How many of the newest.'), follow },
    success: 'ok',
    data: Type.Array(LogEntry),
    errors: ['not_found', 'invalid'],
    streams: true,
  },
  {
    name: 'container.events',
    method: 'GET',
    path: `${compute}/:id/events`,
    access: 'tenant',
    summary: 'What happened to one container, oldest of the chosen first.',
    query: { limit: integer(1, limits.eventsMax, limits.eventsDefault, 'How many of the newest.'), follow },
    success: 'ok',
    data: Type.Array(Event),
    errors: ['not_found', 'invalid'],
    streams: true,
  },
  {
    name: 'container.wait',
    method: 'GET',
    path: `${compute}/:id/wait`,
    access: 'tenant',
    summary:
      'Answers when the container has the status; 504 when it has not by the timeout, 409 when it is being removed. `removed`: when it is gone, with the last that was seen of it.',
    query: {
      status: {
        schema: Type.Enum([...ContainerStatus.enum, 'removed'], { default: 'running' }),
        description: 'The status to wait for.',
      },
      timeout: integer(1, limits.waitMaxSeconds, limits.waitDefaultSeconds, 'Seconds.'),
    },
    success: 'ok',
    data: ContainerStatusView,
    errors: ['not_found', 'invalid', 'conflict', 'timeout'],
  },
  {
    name: 'container.start',
    method: 'POST',
    path: `${compute}/:id/start`,
    access: 'tenant',
    summary: 'Desired state running; a failed or backing-off container tries again at once.',
    success: 'ok',
    data: Container,
    errors: ['not_found', 'conflict'],
  },
  {
    name: 'container.stop',
    method: 'POST',
    path: `${compute}/:id/stop`,
    access: 'tenant',
    summary: 'Desired state stopped.',
    success: 'ok',
    data: Container,
    errors: ['not_found', 'conflict'],
  },
  {
    name: 'tenant.get',
    method: 'GET',
    path: `${operator}/tenants/:tenant`,
    access: 'operator',
    summary: 'Regions and caps of a tenant.',
    success: 'ok',
    data: TenantView,
    errors: ['forbidden', 'not_found'],
  },
  {
    name: 'tenant.put',
    method: 'PUT',
    path: `${operator}/tenants/:tenant`,
    access: 'operator',
    summary: 'Set regions and caps; what is absent goes back to its default.',
    body: TenantSettings,
    success: 'ok',
    data: TenantView,
    errors: ['forbidden', 'not_found', 'bad_request', 'unsupported_media_type', 'too_large', 'invalid'],
  },
  {
    name: 'tenant.revoke',
    method: 'POST',
    path: `${operator}/tenants/:tenant/revocations`,
    access: 'operator',
    summary: 'Refuse one token (`jti`), a subject’s (`sub`), or all of the tenant’s that were issued until now.',
    body: RevocationBody,
    success: 'created',
    data: Type.Object({ issued_until: Type.String(), expires_at: Type.String() }),
    errors: ['forbidden', 'not_found', 'bad_request', 'unsupported_media_type', 'too_large', 'invalid'],
  },
  {
    name: 'container.inspect',
    method: 'GET',
    path: `${operator}/tenants/:tenant/containers/:id`,
    access: 'operator',
    summary: 'A container with its operator-only fields and reconciler state.',
    success: 'ok',
    data: Type.Object({
      container: Container,
      status: ContainerStatusView,
      secret_refs: Type.Array(Type.Unknown()),
      config_files: Type.Array(Type.Unknown()),
      reconciler: Type.Record(Type.String(), Type.Unknown()),
    }),
    errors: ['forbidden', 'not_found'],
  },
  {
    name: 'container.operate',
    method: 'PATCH',
    path: `${operator}/tenants/:tenant/containers/:id`,
    access: 'operator',
    summary: 'Set pull policy, secret references and config files; the container is made anew with them.',
    body: OperatorFields,
    success: 'ok',
    data: Container,
    errors: ['forbidden', 'not_found', 'conflict', 'bad_request', 'unsupported_media_type', 'too_large', 'invalid'],
  },
  {
    name: 'host.list',
    method: 'GET',
    path: `${operator}/hosts`,
    access: 'operator',
    summary: 'The fleet, by key.',
    success: 'ok',
    data: Type.Array(HostView),
    errors: ['forbidden'],
  },
  {
    name: 'host.create',
    method: 'POST',
    path: `${operator}/hosts`,
    access: 'operator',
    summary: 'Make a host and its one-time join token, shown here alone.',
    body: HostCreateBody,
    success: 'created',
    data: HostWithToken,
    errors: ['forbidden', 'conflict', 'bad_request', 'unsupported_media_type', 'too_large', 'invalid'],
  },
  {
    name: 'host.get',
    method: 'GET',
    path: `${operator}/hosts/:key`,
    access: 'operator',
    summary: 'One host.',
    success: 'ok',
    data: HostView,
    errors: ['forbidden', 'not_found'],
  },
  {
    name: 'host.update',
    method: 'PATCH',
    path: `${operator}/hosts/:key`,
    access: 'operator',
    summary: 'Cordon, drain, or give the word that held orphans may be removed.',
    body: HostUpdateBody,
    success: 'ok',
    data: HostView,
    errors: ['forbidden', 'not_found', 'bad_request', 'unsupported_media_type', 'too_large', 'invalid'],
  },
  {
    name: 'host.join_token',
    method: 'POST',
    path: `${operator}/hosts/:key/join-token`,
    access: 'operator',
    summary: 'A new one-time join token, for a host whose agent lost its identity.',
    success: 'created',
    data: HostWithToken,
    errors: ['forbidden', 'not_found'],
  },
  {
    name: 'host.remove',
    method: 'DELETE',
    path: `${operator}/hosts/:key`,
    access: 'operator',
    summary: 'Forget a host; its containers are placed elsewhere, those that a tenant pinned to it are lost.',
    success: 'accepted',
    data: HostView,
    errors: ['forbidden', 'not_found'],
  },
  {
    name: 'host.enrol',
    method: 'POST',
    path: '/api/v2/hosts/enrol',
    access: 'public',
    summary: 'An agent trades its join token for NATS credentials; the token is then spent.',
    body: EnrolBody,
    success: 'created',
    data: Type.Object({
      host: HostKey,
      region: Type.String(),
      cluster: Type.String(),
      natsUrls: Type.Array(Type.String()),
      jwt: Type.String(),
    }),
    errors: ['unauthenticated', 'bad_request', 'unsupported_media_type', 'too_large', 'invalid', 'rate_limited'],
  },
  {
    name: 'openapi',
    method: 'GET',
    path: '/api/v2/openapi.json',
    access: 'public',
    summary: 'This table as OpenAPI 3.1.',
    success: 'ok',
    data: Type.Object({}),
    errors: [],
    bare: true,
  },
  {
    name: 'healthz',
    method: 'GET',
    path: '/healthz',
    access: 'public',
    summary: 'The process answers.',
    success: 'ok',
    data: Type.Object({ status: Type.String() }),
    errors: [],
    bare: true,
  },
  {
    name: 'readyz',
    method: 'GET',
    path: '/readyz',
    access: 'public',
    summary: 'The process can serve: NATS answers, keys are loaded, it is not stopping.',
    success: 'ok',
    data: Type.Object({ status: Type.String() }),
    errors: ['unavailable'],
    bare: true,
  },
] as const satisfies readonly Route[];

export type RouteName = (typeof routes)[number]['name'];

/** What any route may answer beside its own errors. */
export const commonErrors = ['method_not_allowed', 'internal', 'unavailable', 'timeout'] as const;
/** What any route that wants credentials may answer. */
export const authErrors = ['unauthenticated', 'forbidden', 'rate_limited'] as const;
