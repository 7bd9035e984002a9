/**
 * The HTTP route table. It drives routing, validation, the OpenAPI document and the tests; there is
 * no route beside it.
 */
import Type, { type Static, type TSchema } from 'typebox';
import { AuditLine } from './api/audit/line.ts';
import {
  Container,
  ContainerInspection,
  ContainerStatus,
  ContainerStatusView,
  ProjectBody,
  ProjectView,
  WaitedStatusView,
  ContainerItem,
  ContainerVersion,
  RollbackBody,
  CreateBody,
  OperatorContainer,
  OperatorFields,
  UpdateBody,
} from './api/container.ts';
import { ApiDocument, Health } from './components.ts';
import type { ErrorCode, SuccessCode } from './errors.ts';
import { Event, eventTypes } from './api/event.ts';
import { EventFrame, LogFrame, OperatorEventFrame, StatsFrame, WatchFrame } from './api/frames.ts';
import { HostDetail } from './api/drain.ts';
import {
  EnrolBody,
  HostCreateBody,
  HostEnrolment,
  HostUpdateBody,
  HostView,
  HostWithToken,
  RenewBody,
  TenantHost,
} from './api/host.ts';
import { ContainerId, HostKey, KeyId, NetworkName, PeerId, PeerTokenId, TenantId } from './ids.ts';
import { KeyBody, KeyView, KeyWithToken } from './api/keys/key.ts';
import { DeviceBody, DeviceSignIn, DeviceToken, DeviceTokenBody } from './api/keys/session.ts';
import { KeySet, SigningKeyView } from './api/keys/signing-key.ts';
import { limits } from './limits.ts';
import { ContainerLogEntry, LogEntry } from './api/log.ts';
import { containerFields, labelFilterPattern } from './api/fields/container.ts';
import {
  NetworkBody,
  NetworkCreateBody,
  NetworkServersBody,
  NetworkServersView,
  NetworkView,
  Resealed,
} from './api/network.ts';
import {
  P12Password,
  PeerCreateBody,
  PeerTokenBody,
  PeerTokenWithText,
  PeerUpdateBody,
  PeerTraffic,
  PeerView,
  PeerWithSecrets,
  VpnProfile,
} from './api/peer.ts';
import { LinkRedeemBody, PeerLinkBody, PeerLinkView, PeerLinkWithUrl, RedeemedLink } from './api/peer-link.ts';
import { PolicyBody, PolicyView } from './api/policy.ts';
import { RunBody, RunView } from './api/sessions/run.ts';
import { Spec, SpecBody, SpecPatch, SpecPlan } from './api/spec.ts';
import { ContainerSecrets, ContainerSecretsBody, LoginBody, LoginView, SecretBody, SecretView } from './api/secret.ts';
import { ContainerStats } from './api/usage/stats.ts';
import { OperatorUsage, usageGrains, UsageView } from './api/usage/usage.ts';
import { QuotaView, RevocationBody, RevocationView, TenantBody, TenantSummary, TenantView } from './api/tenant.ts';
import { TenantName, TenantNetwork } from './api/tenant-network.ts';
import type { Scope } from './scopes.ts';
import { containerStatuses } from './words.ts';

export const eventStream = 'text/event-stream';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * The callers that a route allows: anyone; a tenant's token; a token with the scope `operator`; a
 * tenant's token or, as `?token=`, a download token of a peer; only a PAC token of a peer.
 */
export type Access = 'public' | 'tenant' | 'operator' | 'download' | 'pac';

/** A token that a public route checks itself, or a signature in its place. */
export type OwnToken = 'join token' | 'host key' | 'link token' | 'metrics token';

/** Of a query: texts, integers, flags, and texts that come several times. */
export type QueryValue = string | number | boolean | readonly string[];

export interface QueryParameter {
  readonly schema: TSchema;
  readonly description: string;
  /** The value of a request without the parameter. */
  readonly fallback?: QueryValue;
  /** A request without the parameter is invalid. */
  readonly required?: true;
  /** Description of a text of its pattern, after "must be". */
  readonly form?: string;
}

export interface Route {
  readonly name: string;
  readonly method: Method;
  /** Segments that begin with `:` are parameters. */
  readonly path: string;
  readonly access: Access;
  /**
   * Any of these scopes opens the route to a token that has scopes, and a refusal names the first.
   * Of every route but public ones and those that a PAC token opens.
   */
  readonly scopes?: readonly [Scope, ...Scope[]];
  readonly summary: string;
  readonly query?: Readonly<Record<string, QueryParameter>>;
  readonly body?: TSchema;
  /** The gateway refuses larger bodies without reading them. Default: `limits.bodyDefaultBytes`. */
  readonly maxBodyBytes?: number;
  readonly success: SuccessCode;
  /** Schema of `data`. */
  readonly data: TSchema;
  /** Keys beside `data`. */
  readonly beside?: Readonly<Record<string, TSchema>>;
  readonly errors: readonly ErrorCode[];
  /**
   * The answer is a stream of Server-Sent Events, of the items of a list after the one that the
   * client names, or of values as they are now. Of a route that has other answers, too: with
   * `?follow=true`, as of `/stream` below its path.
   */
  readonly streams?: 'resumable' | 'live';
  /** The connection goes on with WebSocket. With a cookie, an `Origin` of our own is needed. */
  readonly upgrades?: true;
  /** A GET that uses something up or signs in, so there is no HEAD of it (RFC 9110 9.2.1). */
  readonly acts?: true;
  /** The answer is not wrapped in `data`: health, OpenAPI. */
  readonly bare?: true;
  /**
   * Media types of an answer that is a file and not JSON of the API. Of a stream alone
   * (`eventStream`), `data` is the schema of its frames.
   */
  readonly media?: readonly string[];
  /**
   * For people in a browser: errors are pages, success is a page or leads to one, and cookies are
   * set.
   */
  readonly forPeople?: true;
  /**
   * The answer has an ETag that stands for all of it; `If-None-Match` with it gets 304. Not for
   * what shows anything that is not declared, such as a status.
   */
  readonly conditional?: true;
  /** With `dry_run=true` the answer is 200, with these keys. */
  readonly plans?: Readonly<Record<string, TSchema>>;
  /** The answer has the ETag of the resource, which stands for what is declared of it. */
  readonly tagged?: true;
  /**
   * Of a write: nothing that has an ETag is there before it, so `If-Match` never holds. Every other
   * write with credentials evaluates `If-Match` and `If-None-Match` against its resource.
   */
  readonly withoutPrior?: true;
  /** The answer names the generation of the container in `Longshore-Generation`. */
  readonly generates?: true;
  /**
   * Path of what a 201 made, for `Location`, with parameters of the route's path or fields of the
   * answer. That of a PUT is its own path.
   */
  readonly made?: string;
  /** A PUT that may make something: 201 then, and else the route's success. */
  readonly makes?: true;
  /** Keys that the body has by mistake are named in `Longshore-Warning`. */
  readonly warns?: true;
  /**
   * For query parameters that are unknown, or come twice and are no list. If absent, they are
   * refused with 422. `named`: they are named in `Longshore-Warning`, because the owner of the API
   * has fixed these answers. `all`: what comes with a sign-in or a probe is not ours to judge.
   */
  readonly ignores?: 'named' | 'all';
  /** Its `Idempotency-Key` is kept in the record of the container that it makes. */
  readonly keepsKey?: true;
  /** A POST whose answer is not kept: with the same `Idempotency-Key` it is refused again. */
  readonly forgets?: true;
  /** The body is a JSON merge patch, and may say so in its media type (RFC 7396). */
  readonly patches?: true;
  /**
   * The gateway checks this token itself, and answers 429 to an address with too many wrong ones
   * before it reads the body.
   */
  readonly ownToken?: OwnToken;
  /** Needs no credentials but costs work, so requests are limited by address. */
  readonly publicRate?: true;
  /** Takes no permit, because load balancers need an answer from a busy gateway too. */
  readonly isProbe?: true;
  /** Default: the gateway's deadline for requests. */
  readonly deadlineMs?: number;
}

/** Statuses that a wait can wait for. */
const waitedStatuses = [...containerStatuses, 'removed'] as const;

const compute = '/api/v2/compute';
const operator = '/api/v2/operator';
const { labels } = containerFields;
const forage = '/api/forage';
const keys = '/api/v2/keys';
const signIn = '/api/v2/sign-in';

const execUserPattern = '^[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?$';
const execWorkdirPattern = '^/[^\\0]*$';
/** The scope `deploy` includes reads of the results; `exec` and `vpn` do not. */
const readers = ['read', 'deploy'] as const;
/** Scopes that set secrets and logins, or use them, list them, too. */
const secretReaders = ['read', 'deploy', 'admin'] as const;
const peerReaders = ['read', 'vpn'] as const;
const networkErrors = ['forbidden', 'not_found'] as const;
const bodyErrors = ['bad_request', 'unsupported_media_type', 'too_large', 'invalid'] as const;
const ipv6OfDevice = {
  schema: Type.Enum(['on', 'off']),
  description: '`off` leaves out IPv6 addresses, routes and DNS servers, for a device with IPv6 disabled.',
  fallback: 'on',
} as const;
const downloadToken = {
  schema: Type.String(),
  description: 'Download token of the peer, in place of other credentials.',
} satisfies QueryParameter;

/** A file of the VPN server, whose ETag changes with the file. */
const serverFile = <Name extends string>(name: Name, file: string, media: string, summary: string) =>
  ({
    name: `network.${name}` as const,
    method: 'GET',
    path: `${operator}/networks/:network/${file}`,
    access: 'operator',
    scopes: ['network:', 'operator:networks'],
    summary,
    success: 'ok',
    data: Type.String(),
    errors: networkErrors,
    media: [media],
    conditional: true,
    deadlineMs: limits.keyDeadlineMs,
  }) as const;

/** A step of a sign-in in a browser, which ends with the way to the next. */
const step = <Name extends string, Path extends string>(
  name: Name,
  method: 'GET' | 'POST',
  path: Path,
  summary: string,
) =>
  ({
    name,
    method,
    path,
    access: 'public',
    summary,
    success: 'see_other',
    data: Type.Null(),
    forPeople: true,
    publicRate: true,
    ignores: 'all',
  }) as const;
const htmlPage = { success: 'ok', data: Type.String(), media: ['text/html; charset=utf-8'] } as const;

const integer = (minimum: number, maximum: number, fallback: number, description: string) =>
  ({ schema: Type.Integer({ minimum, maximum }), description, fallback }) satisfies QueryParameter;
const flag = (description: string) =>
  ({ schema: Type.Boolean(), description, fallback: false }) satisfies QueryParameter;
const cursor = {
  schema: Type.String(),
  description: 'The `next_cursor` of the previous page.',
} satisfies QueryParameter;
/** A filter of the lists of containers; a page of a filtered list may be short or empty. */
const label = {
  schema: Type.Array(Type.String({ pattern: labelFilterPattern, maxLength: limits.labelFilterChars }), {
    maxItems: limits.labelFilters,
  }),
  description:
    'Only containers with this label: `key=value`, or `key` for any value. May be repeated; any of them will do. A page may then be short or empty: the list ends where `next_cursor` is absent.',
  form: '`key=value` or `key`',
} satisfies QueryParameter;
/** A filter of the overview. */
const listOf = <S extends TSchema>(item: S, which: string) =>
  ({
    schema: Type.Array(item, { maxItems: limits.overviewFilterValues }),
    description: `Only containers ${which}. May be repeated; any of them will do.`,
  }) satisfies QueryParameter;
const overviewFilters = {
  status: listOf(ContainerStatus, 'with this status'),
  name: listOf(Type.String(), 'with this name'),
  project: listOf(Type.String(), 'of this project'),
  host_key: listOf(Type.String(), 'on this host'),
  label,
} satisfies Record<string, QueryParameter>;
/** Query parameters of both lists of the audit. */
const auditQuery = {
  from: { schema: Type.String(), description: 'Start of the period, RFC 3339. Default: everything that is kept.' },
  to: { schema: Type.String(), description: 'End of the period, RFC 3339. Default: now.' },
  action: { schema: Type.String(), description: 'Only this operation, such as `container.create`.' },
  subject: { schema: Type.String(), description: 'Only actions by this subject.' },
  outcome: { schema: Type.String(), description: 'Only this outcome: `done`, or the code of a refusal.' },
  limit: integer(1, limits.auditMax, limits.auditDefault, 'Lines in a page; there may be fewer before the end.'),
  cursor,
} satisfies Record<string, QueryParameter>;
/** Query parameters of what a stream has kept, in pages. */
const pastQuery = {
  since: { schema: Type.String(), description: 'Only what is of this time or later, RFC 3339.' },
  until: { schema: Type.String(), description: 'Only what is of an earlier time, RFC 3339.' },
  order: {
    schema: Type.Enum(['desc', 'asc']),
    description:
      'Goes back from the newest (`desc`), or on from the oldest (`asc`), and lists in this order. Without it a page goes back, and lists the oldest first.',
  },
  cursor,
} satisfies Record<string, QueryParameter>;
const logsQuery = {
  limit: integer(1, limits.logsMax, limits.logsDefault, 'Lines in a page; there may be fewer before the end.'),
  contains: {
    schema: Type.String({ maxLength: limits.logFilterChars }),
    description:
      'Only lines with this text in them. A page may then be short or empty: the list ends where `next_cursor` is absent.',
  },
  ...pastQuery,
} satisfies Record<string, QueryParameter>;
const follow = flag('Keep the connection open and stream Server-Sent Events; `Last-Event-ID` resumes.');
const onlyTypes = Type.Array(Type.Enum([...eventTypes]), { maxItems: eventTypes.length });
const eventsQuery = {
  limit: integer(1, limits.eventsMax, limits.eventsDefault, 'Events in a page; there may be fewer before the end.'),
  type: {
    schema: onlyTypes,
    description:
      'Only events of this type. May be repeated; any of them will do. A page may then be short or empty: the list ends where `next_cursor` is absent.',
  },
  ...pastQuery,
  follow,
} satisfies Record<string, QueryParameter>;
const usagePeriod = {
  from: {
    schema: Type.String(),
    description: 'Start of the period, RFC 3339. Default: the start of the month (UTC) of `to`.',
  },
  to: {
    schema: Type.String(),
    description: 'End of the period, RFC 3339, at most 31 days after `from`. Default: now.',
  },
} satisfies Record<string, QueryParameter>;
const eventsFirst = integer(1, limits.eventsMax, limits.eventsDefault, 'Newest events to begin with.');
const force = flag('Remove the host even if containers may run on it: it stays fenced until they have stopped.');
const dead = flag(
  'With `force`: you confirm that nothing runs on the host any more; its containers are placed elsewhere at once.',
);
const pull = {
  schema: Type.Enum(['always']),
  description:
    '`always`: look again at what the tag names, although nothing else changes. If it names another image, an update brings that in; else what runs goes on, and `update` in the status has `unmoved`.',
} satisfies QueryParameter;
const dryRun = flag('Check, and answer what would change, as `plan`: nothing is written.');
const plan = { plan: Type.Optional(SpecPlan) };
const nextCursor = { next_cursor: Type.String() };

export const pathParameters = {
  id: ContainerId,
  tenant: TenantId,
  key: HostKey,
  peer: PeerId,
  token: PeerTokenId,
  link: PeerTokenId,
  network: NetworkName,
  key_id: KeyId,
  // A wrong one in a PUT is answered by 422 with the reason, not by 404.
  secret: Type.String({ description: 'A name: 1 to 64 of A-Z a-z 0-9 _ -' }),
  registry: Type.String({ description: 'A registry: `host` or `host:port`; `docker.io` is Docker Hub.' }),
} as const;

export const routes = [
  {
    name: 'container.list',
    method: 'GET',
    path: compute,
    access: 'tenant',
    scopes: readers,
    summary: 'List the caller’s containers, newest first.',
    query: { label, limit: integer(1, limits.listMax, limits.listDefault, 'Items in a page.'), cursor },
    success: 'ok',
    data: Type.Array(Container),
    beside: nextCursor,
    errors: ['invalid'],
    ignores: 'named',
  },
  {
    name: 'container.overview',
    method: 'GET',
    path: '/api/v2/containers',
    access: 'tenant',
    scopes: readers,
    summary:
      'List the caller’s containers with labels and project, newest first. Several of one filter are alternatives, and different ones must all hold.',
    query: {
      ...overviewFilters,
      include: {
        schema: Type.Array(Type.Enum(['status', 'spec']), { maxItems: 2 }),
        description: '`status`: with what `GET /:id/status` shows. `spec`: with the document and its ETag.',
      },
      limit: integer(1, limits.overviewMax, limits.listDefault, 'Items in a page.'),
      cursor,
    },
    success: 'ok',
    data: Type.Array(ContainerItem),
    beside: nextCursor,
    errors: ['invalid'],
  },
  {
    name: 'container.watch',
    method: 'GET',
    path: '/api/v2/containers/watch',
    access: 'tenant',
    scopes: readers,
    summary:
      'Follow the caller’s containers as Server-Sent Events: all with their status, and then each that changes, without a gap. The filters are those of the list; one that ceases to match is `removed`.',
    query: overviewFilters,
    success: 'ok',
    data: WatchFrame,
    errors: ['invalid'],
    media: [eventStream],
    streams: 'resumable',
  },
  {
    name: 'spec.create',
    method: 'POST',
    path: '/api/v2/containers',
    access: 'tenant',
    scopes: ['deploy'],
    summary: 'Create a container from its document: all that is declared of it, in one write.',
    query: { dry_run: dryRun, pull },
    body: SpecBody,
    maxBodyBytes: limits.documentBytes,
    success: 'created',
    data: Container,
    plans: { data: Spec, plan: SpecPlan },
    errors: [...bodyErrors, 'over_quota', 'conflict'],
    tagged: true,
    withoutPrior: true,
    generates: true,
    made: '/api/v2/containers/:id/spec',
    keepsKey: true,
  },
  {
    name: 'spec.get',
    method: 'GET',
    path: '/api/v2/containers/:id/spec',
    access: 'tenant',
    scopes: readers,
    summary: 'Get the document of a container: all that is declared of it.',
    success: 'ok',
    data: Spec,
    errors: ['not_found'],
    tagged: true,
  },
  {
    name: 'spec.put',
    method: 'PUT',
    path: '/api/v2/containers/:id/spec',
    access: 'tenant',
    scopes: ['deploy'],
    summary:
      'Replace the document: one write, one generation, one update. An absent part is its default; absent `desired` and `host_key` stay. With `If-Match`, only if it is still as the ETag says.',
    query: { dry_run: dryRun, pull },
    body: SpecBody,
    maxBodyBytes: limits.documentBytes,
    success: 'ok',
    data: Spec,
    beside: plan,
    errors: [...bodyErrors, 'not_found', 'over_quota', 'conflict'],
    tagged: true,
    generates: true,
  },
  {
    name: 'spec.patch',
    method: 'PATCH',
    path: '/api/v2/containers/:id/spec',
    access: 'tenant',
    scopes: ['deploy'],
    summary: 'Change the document by a JSON merge patch (RFC 7396), likewise: null is the default of a part.',
    query: { dry_run: dryRun, pull },
    body: SpecPatch,
    maxBodyBytes: limits.documentBytes,
    success: 'ok',
    data: Spec,
    beside: plan,
    errors: [...bodyErrors, 'not_found', 'over_quota', 'conflict'],
    patches: true,
    tagged: true,
    generates: true,
  },
  {
    name: 'container.create',
    method: 'POST',
    path: compute,
    access: 'tenant',
    scopes: ['deploy'],
    summary: 'Create a container, which is then placed and started.',
    query: {
      start: {
        schema: Type.Boolean(),
        description: 'If `false`, the container is created stopped.',
        fallback: true,
      },
    },
    body: CreateBody,
    maxBodyBytes: limits.bodyBytes,
    success: 'created',
    data: Container,
    errors: ['bad_request', 'unsupported_media_type', 'too_large', 'invalid', 'over_quota', 'conflict'],
    tagged: true,
    warns: true,
    withoutPrior: true,
    generates: true,
    made: `${compute}/:id`,
    ignores: 'named',
    keepsKey: true,
  },
  {
    name: 'tenant.quota',
    method: 'GET',
    path: `${compute}/quota`,
    access: 'tenant',
    scopes: readers,
    summary: 'Get quota usage.',
    query: { region: { schema: Type.String(), description: 'A region, or `*` for all.', fallback: '*' } },
    success: 'ok',
    data: QuotaView,
    errors: ['invalid'],
    ignores: 'named',
  },
  {
    name: 'tenant.hosts',
    method: 'GET',
    path: `${compute}/hosts`,
    access: 'tenant',
    scopes: readers,
    summary: 'List the hosts of the caller’s regions, by key; `host_key` may name them.',
    query: { limit: integer(1, limits.listMax, limits.listMax, 'Hosts in a page.'), cursor },
    success: 'ok',
    data: Type.Array(TenantHost),
    beside: nextCursor,
    errors: ['invalid'],
  },
  {
    name: 'tenant.network',
    method: 'GET',
    path: '/api/v2/network',
    access: 'tenant',
    scopes: readers,
    summary: 'Get the network that the caller’s containers reach each other in.',
    success: 'ok',
    data: TenantNetwork,
    errors: [],
  },
  {
    name: 'tenant.names',
    method: 'GET',
    path: '/api/v2/network/names',
    access: 'tenant',
    scopes: readers,
    summary: 'List the names in the network of the caller’s containers, in their order.',
    query: { limit: integer(1, limits.listMax, limits.listDefault, 'Names in a page.'), cursor },
    success: 'ok',
    data: Type.Array(TenantName),
    beside: nextCursor,
    errors: ['invalid'],
  },
  {
    name: 'usage.get',
    method: 'GET',
    path: `${compute}/usage`,
    access: 'tenant',
    scopes: readers,
    summary: 'Get the usage of each container, in whole UTC hours of the last 90 days.',
    query: {
      ...usagePeriod,
      limit: integer(1, limits.listMax, limits.listDefault, 'Containers in a page.'),
      cursor,
    },
    success: 'ok',
    data: UsageView,
    beside: nextCursor,
    errors: ['invalid'],
  },
  {
    name: 'event.list',
    method: 'GET',
    path: `${compute}/events`,
    access: 'tenant',
    scopes: readers,
    summary: 'List the events of the caller’s containers, oldest first. They are kept for seven days.',
    query: eventsQuery,
    success: 'ok',
    data: Type.Array(Event),
    beside: nextCursor,
    errors: ['invalid'],
    streams: 'resumable',
  },
  {
    name: 'event.stream',
    method: 'GET',
    path: `${compute}/events/stream`,
    access: 'tenant',
    scopes: readers,
    summary:
      'Stream the events of the caller’s containers as Server-Sent Events: the newest, and then each that comes.',
    query: { limit: eventsFirst },
    success: 'ok',
    data: EventFrame,
    errors: ['invalid'],
    media: [eventStream],
    streams: 'resumable',
  },
  {
    name: 'log.list',
    method: 'GET',
    path: `${compute}/logs`,
    access: 'tenant',
    scopes: readers,
    summary: `List the newest log lines of several containers, at most ${limits.logsContainers}, oldest first; the filters are those of the overview. With a cursor, or a time, those of the seven days before.`,
    query: { ...overviewFilters, ...logsQuery },
    success: 'ok',
    data: Type.Array(ContainerLogEntry),
    beside: nextCursor,
    errors: ['invalid', 'conflict'],
  },
  {
    name: 'registry.list',
    method: 'GET',
    path: `${compute}/registries`,
    access: 'tenant',
    scopes: secretReaders,
    summary: 'List the caller’s registry logins, without their passwords.',
    success: 'ok',
    data: Type.Array(LoginView),
    errors: [],
  },
  {
    name: 'registry.put',
    method: 'PUT',
    path: `${compute}/registries/:registry`,
    access: 'tenant',
    scopes: ['admin'],
    summary: 'Set the login for pulls from this registry. Containers that the registry refused are tried again.',
    body: LoginBody,
    // Room for a password whose characters are escaped.
    maxBodyBytes: 4 * limits.bodyDefaultBytes,
    success: 'ok',
    data: LoginView,
    errors: [...bodyErrors, 'conflict'],
    tagged: true,
    makes: true,
  },
  {
    name: 'registry.remove',
    method: 'DELETE',
    path: `${compute}/registries/:registry`,
    access: 'tenant',
    scopes: ['admin'],
    summary: 'Remove a login; later pulls from this registry are anonymous.',
    success: 'no_content',
    data: Type.Null(),
    errors: ['not_found'],
  },
  {
    name: 'secret.list',
    method: 'GET',
    path: `${compute}/secrets`,
    access: 'tenant',
    scopes: secretReaders,
    summary: 'List the caller’s secrets, without their values.',
    success: 'ok',
    data: Type.Array(SecretView),
    errors: [],
  },
  {
    name: 'secret.put',
    method: 'PUT',
    path: `${compute}/secrets/:secret`,
    access: 'tenant',
    scopes: ['admin'],
    summary:
      'Set the value of a secret. Another value is a new version, to which the containers that use the secret are updated; the same value changes nothing.',
    query: {
      stage: flag(
        'Store the value alone: containers come to it with their next start or update. The same value without it brings them to it.',
      ),
    },
    body: SecretBody,
    // Room for a value whose characters are escaped.
    maxBodyBytes: limits.bodyBytes,
    success: 'ok',
    data: SecretView,
    errors: [...bodyErrors, 'conflict'],
    tagged: true,
    makes: true,
  },
  {
    name: 'secret.remove',
    method: 'DELETE',
    path: `${compute}/secrets/:secret`,
    access: 'tenant',
    scopes: ['admin'],
    summary: 'Remove a secret that no container uses.',
    success: 'no_content',
    data: Type.Null(),
    errors: ['not_found', 'conflict'],
  },
  {
    name: 'container.get',
    method: 'GET',
    path: `${compute}/:id`,
    access: 'tenant',
    scopes: readers,
    summary: 'Get a container. Its ETag changes with the declaration, not with the status.',
    success: 'ok',
    data: Container,
    errors: ['not_found'],
    tagged: true,
    ignores: 'named',
  },
  {
    name: 'container.update',
    method: 'PATCH',
    path: `${compute}/:id`,
    access: 'tenant',
    scopes: ['deploy'],
    summary:
      'Change what the container is made from (JSON merge patch). The old one runs until the new one is made, and runs again if that fails: see `update` in its status. With `If-Match`, only if it is still declared as the ETag says.',
    query: { pull },
    body: UpdateBody,
    maxBodyBytes: limits.bodyBytes,
    success: 'ok',
    data: Container,
    errors: [...bodyErrors, 'not_found', 'over_quota', 'conflict'],
    patches: true,
    tagged: true,
    generates: true,
  },
  {
    name: 'container.delete',
    method: 'DELETE',
    path: `${compute}/:id`,
    access: 'tenant',
    scopes: ['deploy'],
    summary: 'Stop and remove the container; its logs and events stay readable for seven days.',
    success: 'accepted',
    data: Container,
    errors: ['not_found'],
    generates: true,
  },
  {
    name: 'container.status',
    method: 'GET',
    path: `${compute}/:id/status`,
    access: 'tenant',
    scopes: readers,
    summary: 'Get the desired and observed state, with reason, retries and addresses.',
    success: 'ok',
    data: ContainerStatusView,
    errors: ['not_found'],
  },
  {
    name: 'container.versions',
    method: 'GET',
    path: `${compute}/:id/versions`,
    access: 'tenant',
    scopes: readers,
    summary:
      'List what the container declared, newest first: the last ten versions, or fewer where they differ in much. A secret is named, never shown.',
    success: 'ok',
    data: Type.Array(ContainerVersion),
    errors: ['not_found'],
  },
  {
    name: 'container.rollback',
    method: 'POST',
    path: `${compute}/:id/rollback`,
    access: 'tenant',
    scopes: ['deploy'],
    summary:
      'Declare again what a version declared, as a new version. Host, labels, project and desired state stay. With `If-Match`, only if it is still as the ETag says.',
    body: RollbackBody,
    success: 'ok',
    data: Spec,
    errors: [...bodyErrors, 'not_found', 'over_quota', 'conflict'],
    tagged: true,
    generates: true,
  },
  {
    name: 'labels.get',
    method: 'GET',
    path: `${compute}/:id/labels`,
    access: 'tenant',
    scopes: readers,
    summary: 'Get the labels of a container.',
    success: 'ok',
    data: labels.shown,
    errors: ['not_found'],
    tagged: true,
    conditional: true,
  },
  {
    name: 'labels.put',
    method: 'PUT',
    path: `${compute}/:id/labels`,
    access: 'tenant',
    scopes: ['deploy'],
    summary: 'Replace the labels. They change nothing that runs, and no generation.',
    body: labels.given,
    success: 'ok',
    data: labels.shown,
    errors: [...bodyErrors, 'not_found', 'conflict'],
    tagged: true,
    generates: true,
  },
  {
    name: 'labels.patch',
    method: 'PATCH',
    path: `${compute}/:id/labels`,
    access: 'tenant',
    scopes: ['deploy'],
    summary: 'Set and remove single labels by a JSON merge patch; null removes one.',
    body: labels.patch,
    success: 'ok',
    data: labels.shown,
    errors: [...bodyErrors, 'not_found', 'conflict'],
    tagged: true,
    generates: true,
  },
  {
    name: 'project.get',
    method: 'GET',
    path: `${compute}/:id/project`,
    access: 'tenant',
    scopes: readers,
    summary: 'Get the project of a container: the file of `longshore apply` that made it.',
    success: 'ok',
    data: ProjectView,
    errors: ['not_found'],
    tagged: true,
    conditional: true,
  },
  {
    name: 'project.put',
    method: 'PUT',
    path: `${compute}/:id/project`,
    access: 'tenant',
    scopes: ['deploy'],
    summary: 'Set the project of a container, or none. That changes nothing that runs.',
    body: ProjectBody,
    success: 'ok',
    data: ProjectView,
    errors: [...bodyErrors, 'not_found', 'conflict'],
    tagged: true,
    generates: true,
  },
  {
    name: 'policy.get',
    method: 'GET',
    path: `${compute}/:id/policy`,
    access: 'tenant',
    scopes: readers,
    summary: 'Get the policy: how the container is restarted, stopped and checked.',
    success: 'ok',
    data: PolicyView,
    errors: ['not_found'],
    tagged: true,
    conditional: true,
  },
  {
    name: 'policy.put',
    method: 'PUT',
    path: `${compute}/:id/policy`,
    access: 'tenant',
    scopes: ['deploy'],
    summary:
      'Replace the policy; absent fields have their defaults. Only another `command` or `none` of a health check makes the container again, as an update does.',
    body: PolicyBody,
    success: 'ok',
    data: PolicyView,
    errors: [...bodyErrors, 'not_found', 'conflict'],
    tagged: true,
    generates: true,
  },
  {
    name: 'container.secrets',
    method: 'GET',
    path: `${compute}/:id/secrets`,
    access: 'tenant',
    scopes: readers,
    summary: 'Get the secrets that the container uses, by variable and by file.',
    success: 'ok',
    data: ContainerSecrets,
    errors: ['not_found'],
    tagged: true,
    conditional: true,
  },
  {
    name: 'container.secrets.put',
    method: 'PUT',
    path: `${compute}/:id/secrets`,
    access: 'tenant',
    scopes: ['deploy'],
    summary:
      'Replace the secrets that the container uses, as environment variables and as files on tmpfs. This is an update.',
    body: ContainerSecretsBody,
    // Room for the paths of all files.
    maxBodyBytes: 4 * limits.bodyDefaultBytes,
    success: 'ok',
    data: ContainerSecrets,
    errors: [...bodyErrors, 'not_found', 'conflict'],
    tagged: true,
    generates: true,
  },
  {
    name: 'container.logs',
    method: 'GET',
    path: `${compute}/:id/logs`,
    access: 'tenant',
    scopes: readers,
    summary: 'List the newest log lines, oldest first; with a cursor, or a time, those of the seven days before.',
    query: { ...logsQuery, follow },
    success: 'ok',
    data: Type.Array(LogEntry),
    beside: nextCursor,
    errors: ['not_found', 'invalid'],
    streams: 'resumable',
    ignores: 'named',
  },
  {
    name: 'container.logs.stream',
    method: 'GET',
    path: `${compute}/:id/logs/stream`,
    access: 'tenant',
    scopes: readers,
    summary: 'Stream log lines as Server-Sent Events: the newest, and then each that comes.',
    query: { limit: integer(1, limits.logsMax, limits.logsDefault, 'Newest lines to begin with.') },
    success: 'ok',
    data: LogFrame,
    errors: ['not_found', 'invalid'],
    media: [eventStream],
    streams: 'resumable',
  },
  {
    name: 'container.events',
    method: 'GET',
    path: `${compute}/:id/events`,
    access: 'tenant',
    scopes: readers,
    summary: 'List the events of a container, oldest first.',
    query: eventsQuery,
    success: 'ok',
    data: Type.Array(Event),
    beside: nextCursor,
    errors: ['not_found', 'invalid'],
    streams: 'resumable',
  },
  {
    name: 'container.events.stream',
    method: 'GET',
    path: `${compute}/:id/events/stream`,
    access: 'tenant',
    scopes: readers,
    summary: 'Stream the events of a container as Server-Sent Events: the newest, and then each that comes.',
    query: { limit: eventsFirst },
    success: 'ok',
    data: EventFrame,
    errors: ['not_found', 'invalid'],
    media: [eventStream],
    streams: 'resumable',
  },
  {
    name: 'container.stats',
    method: 'GET',
    path: `${compute}/:id/stats`,
    access: 'tenant',
    scopes: readers,
    summary: 'Get the CPU, memory, network and processes in use. With `follow=true`, once a second.',
    query: { follow: flag('Keep the connection open and stream Server-Sent Events.') },
    success: 'ok',
    data: ContainerStats,
    errors: ['not_found', 'invalid', 'conflict'],
    streams: 'live',
  },
  {
    name: 'container.stats.stream',
    method: 'GET',
    path: `${compute}/:id/stats/stream`,
    access: 'tenant',
    scopes: readers,
    summary: 'Stream what is in use as Server-Sent Events, once a second.',
    success: 'ok',
    data: StatsFrame,
    errors: ['not_found', 'conflict'],
    media: [eventStream],
    streams: 'live',
  },
  {
    name: 'container.exec',
    method: 'GET',
    path: `${compute}/:id/exec`,
    access: 'tenant',
    scopes: ['exec'],
    summary: 'Run a process in the container, over a WebSocket with the subprotocol `longshore.exec.v1`.',
    query: {
      command: {
        schema: Type.Array(Type.String({ maxLength: limits.execArgumentChars }), {
          minItems: 1,
          maxItems: limits.execArguments,
        }),
        description: 'The program and its arguments, each a parameter of its own.',
        required: true,
      },
      tty: flag('Give the process a terminal.'),
      stdin: flag('Give the process the input of this session.'),
      user: {
        schema: Type.String({ maxLength: limits.execUserChars, pattern: execUserPattern }),
        description:
          'User that runs the program, as `user` or `user:group`, by name or number. Default: the user of the container.',
        form: 'user or user:group, each a name or a number',
      },
      workdir: {
        schema: Type.String({ maxLength: limits.execWorkdirChars, pattern: execWorkdirPattern }),
        description: 'Working directory of the program. Default: that of the container.',
        form: 'an absolute path',
      },
    },
    success: 'switching_protocols',
    data: Type.Null(),
    errors: ['not_found', 'bad_request', 'upgrade_required', 'invalid', 'conflict'],
    upgrades: true,
  },
  {
    name: 'container.forward',
    method: 'GET',
    path: `${compute}/:id/forward`,
    access: 'tenant',
    scopes: ['exec'],
    summary:
      'Connect to a TCP port of the container, published or not, over a WebSocket with the subprotocol `longshore.forward.v1`.',
    query: {
      port: {
        schema: Type.Integer({ minimum: 1, maximum: 65_535 }),
        description: 'Port on which the program in the container listens.',
        required: true,
      },
    },
    success: 'switching_protocols',
    data: Type.Null(),
    errors: ['not_found', 'bad_request', 'upgrade_required', 'invalid', 'conflict'],
    upgrades: true,
  },
  {
    name: 'container.run',
    method: 'POST',
    path: `${compute}/:id/runs`,
    access: 'tenant',
    scopes: ['exec'],
    summary:
      'Run a process in the container, as `exec` does, and answer its output when it has ended: for programs without WebSocket. Not known to have ended: 504.',
    body: RunBody,
    success: 'ok',
    data: RunView,
    errors: [...bodyErrors, 'not_found', 'conflict'],
    withoutPrior: true,
    forgets: true,
  },
  {
    name: 'container.wait',
    method: 'GET',
    path: `${compute}/:id/wait`,
    access: 'tenant',
    scopes: readers,
    summary:
      'Answers as soon as the container has the status, or with `until` is settled; 504 at the timeout, 409 once the status can not come any more. `removed` waits until it is gone and answers with its last status.',
    query: {
      status: {
        schema: Type.Array(Type.Enum([...waitedStatuses]), { maxItems: waitedStatuses.length }),
        description: 'The status to wait for. May be repeated: any of them will do.',
        fallback: ['running'],
      },
      until: {
        schema: Type.Enum(['settled']),
        description: 'Waits for the `outcome` of the newest change, in place of a status.',
      },
      generation: {
        schema: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
        description: 'With `until`: generation to wait for. Default: the newest.',
      },
      stable_seconds: integer(
        0,
        limits.waitStableMaxSeconds,
        limits.waitStableSeconds,
        'With `until`: seconds for which a container without a health check must stay up.',
      ),
      job: {
        schema: Type.Boolean(),
        description:
          'With `until`: if true, a container is settled only when it has ended. Default: true with the policy `never`.',
      },
      timeout: integer(1, limits.waitMaxSeconds, limits.waitDefaultSeconds, 'Seconds.'),
    },
    success: 'ok',
    data: WaitedStatusView,
    errors: ['not_found', 'invalid', 'conflict', 'timeout'],
  },
  {
    name: 'container.start',
    method: 'POST',
    path: `${compute}/:id/start`,
    access: 'tenant',
    scopes: ['deploy'],
    summary: 'Set the desired state to running; a container that failed or backs off is tried again at once.',
    success: 'ok',
    data: Container,
    errors: ['not_found', 'conflict'],
    tagged: true,
    generates: true,
    ignores: 'named',
  },
  {
    name: 'container.stop',
    method: 'POST',
    path: `${compute}/:id/stop`,
    access: 'tenant',
    scopes: ['deploy'],
    summary: 'Set the desired state to stopped.',
    success: 'ok',
    data: Container,
    errors: ['not_found', 'conflict'],
    tagged: true,
    generates: true,
    ignores: 'named',
  },
  {
    name: 'tenant.list',
    method: 'GET',
    path: `${operator}/tenants`,
    access: 'operator',
    scopes: ['operator:read', 'operator:tenants'],
    summary: 'List the tenants that have anything stored, by id.',
    query: { limit: integer(1, limits.listMax, limits.listDefault, 'Items in a page.'), cursor },
    success: 'ok',
    data: Type.Array(TenantSummary),
    beside: nextCursor,
    errors: ['forbidden', 'invalid'],
  },
  {
    name: 'container.find',
    method: 'GET',
    path: `${operator}/containers`,
    access: 'operator',
    scopes: ['operator:read', 'operator:tenants'],
    summary:
      'Containers of all tenants, in an order that stays the same. A page may be short or empty: the list ends where `next_cursor` is absent.',
    query: {
      tenant: { schema: TenantId, description: 'Only containers of this tenant.' },
      host: { schema: HostKey, description: 'Only containers on this host.' },
      status: { schema: ContainerStatus, description: 'Only containers with this status.' },
      limit: integer(1, limits.listMax, limits.listDefault, 'Items in a page.'),
      cursor,
    },
    success: 'ok',
    data: Type.Array(OperatorContainer),
    beside: nextCursor,
    errors: ['forbidden', 'invalid'],
  },
  {
    name: 'tenant.get',
    method: 'GET',
    path: `${operator}/tenants/:tenant`,
    access: 'operator',
    scopes: ['operator:read', 'operator:tenants'],
    summary: 'Get the regions, caps and allowed registries of a tenant.',
    success: 'ok',
    data: TenantView,
    errors: ['forbidden', 'not_found'],
    tagged: true,
    conditional: true,
  },
  {
    name: 'tenant.put',
    method: 'PUT',
    path: `${operator}/tenants/:tenant`,
    access: 'operator',
    scopes: ['operator:tenants'],
    summary: 'Set regions, caps and allowed registries. An absent field gets its default.',
    body: TenantBody,
    // Room for 64 regions with their caps.
    maxBodyBytes: 4 * limits.bodyDefaultBytes,
    success: 'ok',
    data: TenantView,
    errors: ['forbidden', 'not_found', 'bad_request', 'unsupported_media_type', 'too_large', 'invalid'],
    tagged: true,
  },
  {
    name: 'tenant.revoke',
    method: 'POST',
    path: `${operator}/tenants/:tenant/revocations`,
    access: 'operator',
    scopes: ['operator:tenants'],
    summary: 'Revoke one token (`jti`), those of a subject (`sub`), or all tokens of the tenant issued until now.',
    body: RevocationBody,
    success: 'created',
    data: RevocationView,
    errors: ['forbidden', 'not_found', 'bad_request', 'unsupported_media_type', 'too_large', 'invalid'],
    withoutPrior: true,
    made: `${operator}/tenants/:tenant`,
  },
  {
    name: 'container.inspect',
    method: 'GET',
    path: `${operator}/tenants/:tenant/containers/:id`,
    access: 'operator',
    scopes: ['operator:read', 'operator:tenants'],
    summary: 'Get a container with its operator-only fields and reconciler state.',
    success: 'ok',
    data: ContainerInspection,
    errors: ['forbidden', 'not_found'],
    tagged: true,
  },
  {
    name: 'container.operate',
    method: 'PATCH',
    path: `${operator}/tenants/:tenant/containers/:id`,
    access: 'operator',
    scopes: ['operator:tenants'],
    summary: 'Set pull policy, secret references and config files. This is an update.',
    body: OperatorFields,
    // Room for config files.
    maxBodyBytes: limits.bodyBytes,
    success: 'ok',
    data: Container,
    errors: ['forbidden', 'not_found', 'conflict', 'bad_request', 'unsupported_media_type', 'too_large', 'invalid'],
    tagged: true,
    generates: true,
  },
  {
    name: 'audit.find',
    method: 'GET',
    path: `${operator}/audit`,
    access: 'operator',
    scopes: ['operator:read'],
    summary: 'List the audit log of all tenants and of operators, newest first.',
    query: { ...auditQuery, tenant: { schema: TenantId, description: 'Only actions that concern this tenant.' } },
    success: 'ok',
    data: Type.Array(AuditLine),
    beside: nextCursor,
    errors: ['forbidden', 'invalid'],
  },
  {
    name: 'event.stream_all',
    method: 'GET',
    path: `${operator}/events/stream`,
    access: 'operator',
    scopes: ['operator:read', 'operator:tenants'],
    summary:
      'Stream the events of all tenants as Server-Sent Events: the newest, and then each that comes. An event may come twice, with the same `id` in it.',
    query: {
      tenant: { schema: TenantId, description: 'Only events of this tenant.' },
      type: {
        schema: onlyTypes,
        description: 'Only events of this type. May be repeated; any of them will do.',
      },
      limit: integer(
        1,
        limits.eventsMax,
        limits.eventsDefault,
        'Newest events to begin with, of which those of another type are left out.',
      ),
    },
    success: 'ok',
    data: OperatorEventFrame,
    errors: ['forbidden', 'invalid'],
    media: [eventStream],
    streams: 'resumable',
  },
  {
    name: 'usage.find',
    method: 'GET',
    path: `${operator}/usage`,
    access: 'operator',
    scopes: ['operator:read', 'operator:tenants'],
    summary:
      'Get the usage of all tenants, in whole UTC hours of the last 90 days, those of tenants that are gone, too. A page may be short: the list ends where `next_cursor` is absent.',
    query: {
      ...usagePeriod,
      by: {
        schema: Type.Enum([...usageGrains]),
        description: 'Subject of a row: an hour, a tenant or a container.',
        fallback: 'tenant',
      },
      tenant: { schema: TenantId, description: 'Only usage of this tenant.' },
      limit: integer(1, limits.usageRowsMax, limits.listDefault, 'Rows in a page.'),
      cursor,
    },
    success: 'ok',
    data: Type.Array(OperatorUsage),
    beside: {
      from: Type.String({ description: 'The start of the first hour.' }),
      to: Type.String({ description: 'The end of the last hour.' }),
      ...nextCursor,
    },
    errors: ['forbidden', 'invalid'],
  },
  {
    name: 'host.list',
    method: 'GET',
    path: `${operator}/hosts`,
    access: 'operator',
    scopes: ['operator:read', 'operator:hosts'],
    summary: 'List all hosts, by key.',
    query: { limit: integer(1, limits.listMax, limits.listDefault, 'Items in a page.'), cursor },
    success: 'ok',
    data: Type.Array(HostView),
    beside: nextCursor,
    errors: ['forbidden', 'invalid'],
  },
  {
    name: 'host.create',
    method: 'POST',
    path: `${operator}/hosts`,
    access: 'operator',
    scopes: ['operator:hosts'],
    summary: 'Create a host and its one-time join token, which is shown only here.',
    body: HostCreateBody,
    success: 'created',
    data: HostWithToken,
    errors: ['forbidden', 'conflict', 'bad_request', 'unsupported_media_type', 'too_large', 'invalid'],
    tagged: true,
    withoutPrior: true,
    made: `${operator}/hosts/:key`,
  },
  {
    name: 'host.get',
    method: 'GET',
    path: `${operator}/hosts/:key`,
    access: 'operator',
    scopes: ['operator:read', 'operator:hosts'],
    summary: 'Get a host, and the progress of its drain.',
    success: 'ok',
    data: HostDetail,
    errors: ['forbidden', 'not_found'],
    tagged: true,
  },
  {
    name: 'host.update',
    method: 'PATCH',
    path: `${operator}/hosts/:key`,
    access: 'operator',
    scopes: ['operator:hosts'],
    summary: 'Cordon, drain, or approve the removal of held orphans.',
    body: HostUpdateBody,
    success: 'ok',
    data: HostView,
    errors: ['forbidden', 'not_found', 'bad_request', 'unsupported_media_type', 'too_large', 'invalid'],
    tagged: true,
  },
  {
    name: 'host.join_token',
    method: 'POST',
    path: `${operator}/hosts/:key/join-token`,
    access: 'operator',
    scopes: ['operator:hosts'],
    summary: 'Create a new one-time join token, for a host whose agent lost its identity.',
    success: 'created',
    data: HostWithToken,
    errors: ['forbidden', 'not_found'],
    tagged: true,
    made: `${operator}/hosts/:key`,
  },
  {
    name: 'host.remove',
    method: 'DELETE',
    path: `${operator}/hosts/:key`,
    access: 'operator',
    scopes: ['operator:hosts'],
    summary:
      'Remove a host that is drained or lost; `force` fences any other. Its containers are placed elsewhere; those that a tenant pinned to it are lost.',
    query: { force, dead },
    success: 'accepted',
    data: HostView,
    errors: ['forbidden', 'not_found', 'conflict', 'invalid'],
  },
  {
    name: 'host.enrol',
    method: 'POST',
    path: '/api/v2/hosts/enrol',
    access: 'public',
    summary: 'Exchange a join token for NATS credentials, once.',
    body: EnrolBody,
    maxBodyBytes: limits.enrolBodyBytes,
    success: 'created',
    data: HostEnrolment,
    errors: ['unauthenticated', 'bad_request', 'unsupported_media_type', 'too_large', 'invalid', 'rate_limited'],
    ownToken: 'join token',
  },
  {
    name: 'host.renew',
    method: 'POST',
    path: '/api/v2/hosts/renew',
    access: 'public',
    summary: 'Exchange a signature of a host’s enrolled key for NATS credentials, after the old ones have expired.',
    body: RenewBody,
    maxBodyBytes: limits.enrolBodyBytes,
    success: 'ok',
    data: HostEnrolment,
    errors: ['unauthenticated', 'bad_request', 'unsupported_media_type', 'too_large', 'invalid', 'rate_limited'],
    ownToken: 'host key',
  },
  {
    name: 'key.list',
    method: 'GET',
    path: keys,
    access: 'tenant',
    scopes: ['admin'],
    summary: 'List the caller’s API tokens, newest first, without their values.',
    success: 'ok',
    data: Type.Array(KeyView),
    errors: [],
  },
  {
    name: 'key.create',
    method: 'POST',
    path: keys,
    access: 'tenant',
    scopes: ['admin'],
    summary: 'Create an API token, with no scope that the caller lacks. It is shown only here.',
    body: KeyBody,
    success: 'created',
    data: KeyWithToken,
    errors: [...bodyErrors, 'conflict'],
    tagged: true,
    withoutPrior: true,
    made: `${keys}/:id`,
  },
  {
    name: 'key.remove',
    method: 'DELETE',
    path: `${keys}/:key_id`,
    access: 'tenant',
    scopes: ['admin'],
    summary: 'Revoke and delete an API token.',
    success: 'no_content',
    data: Type.Null(),
    errors: ['not_found'],
  },
  {
    name: 'audit.list',
    method: 'GET',
    path: '/api/v2/audit',
    access: 'tenant',
    scopes: ['admin'],
    summary:
      'List the caller’s audit log, newest first: writes, refused writes, sign-ins and sessions of the last 90 days.',
    query: auditQuery,
    success: 'ok',
    data: Type.Array(AuditLine),
    beside: nextCursor,
    errors: ['invalid'],
  },
  {
    name: 'peer.list',
    method: 'GET',
    path: `${forage}/peers`,
    access: 'tenant',
    scopes: peerReaders,
    summary: 'List the caller’s VPN peers, newest first.',
    query: { limit: integer(1, limits.listMax, limits.listDefault, 'Items in a page.'), cursor },
    success: 'ok',
    data: Type.Array(PeerView),
    beside: nextCursor,
    errors: ['invalid'],
  },
  {
    name: 'peer.create',
    method: 'POST',
    path: `${forage}/peers`,
    access: 'tenant',
    scopes: ['vpn'],
    summary: 'Create a peer with addresses, keys and a certificate. Its password and tokens are shown only here.',
    body: PeerCreateBody,
    success: 'created',
    data: PeerWithSecrets,
    errors: [...bodyErrors, 'over_quota', 'conflict'],
    deadlineMs: limits.keyDeadlineMs,
    tagged: true,
    withoutPrior: true,
    made: `${forage}/peers/:id`,
  },
  {
    name: 'peer.get',
    method: 'GET',
    path: `${forage}/peers/:peer`,
    access: 'tenant',
    scopes: peerReaders,
    summary: 'Get a peer.',
    success: 'ok',
    data: PeerView,
    errors: ['not_found'],
    tagged: true,
  },
  {
    name: 'peer.traffic',
    method: 'GET',
    path: `${forage}/peers/:peer/traffic`,
    access: 'tenant',
    scopes: peerReaders,
    summary: 'Get what a peer sent and got in each UTC hour of the last 90 days, oldest first.',
    query: usagePeriod,
    success: 'ok',
    data: Type.Array(PeerTraffic),
    errors: ['not_found', 'invalid'],
  },
  {
    name: 'peer.update',
    method: 'PATCH',
    path: `${forage}/peers/:peer`,
    access: 'tenant',
    scopes: ['vpn'],
    summary: 'Rename, disable or enable a peer; set its expiry, routes or DNS.',
    body: PeerUpdateBody,
    success: 'ok',
    data: PeerView,
    errors: ['not_found', ...bodyErrors],
    tagged: true,
  },
  {
    name: 'peer.remove',
    method: 'DELETE',
    path: `${forage}/peers/:peer`,
    access: 'tenant',
    scopes: ['vpn'],
    summary: 'Delete a peer: its certificates are revoked and its addresses released.',
    success: 'no_content',
    data: Type.Null(),
    errors: ['not_found'],
  },
  {
    name: 'peer.rotate',
    method: 'POST',
    path: `${forage}/peers/:peer/rotate`,
    access: 'tenant',
    scopes: ['vpn'],
    summary: 'Replace keys, certificate, password and tokens. The new secrets are shown only here.',
    success: 'ok',
    data: PeerWithSecrets,
    errors: ['not_found', 'conflict'],
    deadlineMs: limits.keyDeadlineMs,
    tagged: true,
  },
  {
    name: 'peer.token.create',
    method: 'POST',
    path: `${forage}/peers/:peer/tokens`,
    access: 'tenant',
    scopes: ['vpn'],
    summary: 'Create a download or PAC token, which is shown only here.',
    body: PeerTokenBody,
    success: 'created',
    data: PeerTokenWithText,
    errors: ['not_found', 'conflict', ...bodyErrors],
    made: `${forage}/peers/:peer/tokens/:id`,
  },
  {
    name: 'peer.token.remove',
    method: 'DELETE',
    path: `${forage}/peers/:peer/tokens/:token`,
    access: 'tenant',
    scopes: ['vpn'],
    summary: 'Revoke a download or PAC token.',
    success: 'no_content',
    data: Type.Null(),
    errors: ['not_found'],
  },
  {
    name: 'peer.link.list',
    method: 'GET',
    path: `${forage}/peers/:peer/links`,
    access: 'tenant',
    scopes: peerReaders,
    summary: 'List the one-time links of a peer that are still good, oldest first, without their URLs.',
    success: 'ok',
    data: Type.Array(PeerLinkView),
    errors: ['not_found'],
  },
  {
    name: 'peer.link.create',
    method: 'POST',
    path: `${forage}/peers/:peer/links`,
    access: 'tenant',
    scopes: ['vpn'],
    summary:
      'Create a link to the files of a peer that one browser can open, within 24 hours or until `expires_at`, which is at most seven days ahead. Its URL is shown only here.',
    body: PeerLinkBody,
    success: 'created',
    data: PeerLinkWithUrl,
    errors: ['not_found', 'conflict', ...bodyErrors],
    made: `${forage}/peers/:peer/links/:id`,
  },
  {
    name: 'peer.link.remove',
    method: 'DELETE',
    path: `${forage}/peers/:peer/links/:link`,
    access: 'tenant',
    scopes: ['vpn'],
    summary: 'Revoke a one-time link, and the download token of who has redeemed it.',
    success: 'no_content',
    data: Type.Null(),
    errors: ['not_found'],
  },
  {
    name: 'peer.link.redeem',
    method: 'POST',
    path: `${forage}/links/redeem`,
    access: 'public',
    summary:
      'Exchange the token of a one-time link for a download token of ten minutes. The first verifier may repeat that until it expires; the refusal of all others does not say why.',
    body: LinkRedeemBody,
    success: 'ok',
    data: RedeemedLink,
    errors: ['unauthenticated', ...bodyErrors, 'rate_limited'],
    ownToken: 'link token',
    publicRate: true,
  },
  {
    name: 'peer.password',
    method: 'POST',
    path: `${forage}/p12/:peer/password`,
    access: 'tenant',
    scopes: ['vpn'],
    summary: 'Replace the password of the PKCS#12 bundle; the new one is shown only here.',
    success: 'created',
    data: P12Password,
    errors: ['not_found'],
    made: `${forage}/peers/:peer`,
  },
  {
    name: 'artifact.config',
    method: 'GET',
    path: `${forage}/config/:peer`,
    access: 'download',
    scopes: ['vpn'],
    summary: 'Get the WireGuard configuration.',
    query: { token: downloadToken, ipv6: ipv6OfDevice },
    success: 'ok',
    data: Type.String(),
    errors: ['not_found', 'conflict', 'invalid'],
    media: ['text/plain; charset=utf-8'],
    ignores: 'named',
  },
  {
    name: 'artifact.qr',
    method: 'GET',
    path: `${forage}/config/:peer/qr`,
    access: 'download',
    scopes: ['vpn'],
    summary: 'Get the WireGuard configuration as a QR code.',
    query: { token: downloadToken, ipv6: ipv6OfDevice },
    success: 'ok',
    data: Type.String(),
    errors: ['not_found', 'conflict', 'invalid'],
    media: ['image/svg+xml'],
    ignores: 'named',
  },
  {
    name: 'artifact.profile',
    method: 'GET',
    path: `${forage}/profile/:peer`,
    access: 'download',
    scopes: ['vpn'],
    summary: 'Get the settings for built-in IKEv2 clients, as JSON or in the form of a platform.',
    query: {
      token: downloadToken,
      format: {
        schema: Type.Enum(['json', 'mobileconfig', 'sswan', 'ps1', 'swanctl']),
        description:
          'Form of the settings: JSON, or a file for Apple, strongSwan for Android, Windows or strongSwan for Linux.',
        fallback: 'json',
      },
    },
    success: 'ok',
    data: VpnProfile,
    errors: ['not_found', 'conflict', 'invalid'],
    media: [
      'application/json',
      'application/x-apple-aspen-config',
      'application/vnd.strongswan.profile',
      'text/plain; charset=utf-8',
    ],
    deadlineMs: limits.keyDeadlineMs,
    ignores: 'named',
  },
  {
    name: 'artifact.p12',
    method: 'GET',
    path: `${forage}/p12/:peer`,
    access: 'download',
    scopes: ['vpn'],
    summary: 'Get the certificate and key as PKCS#12, encrypted with the password that was shown once.',
    query: {
      token: downloadToken,
      encryption: {
        schema: Type.Enum(['compat', 'modern']),
        description: 'Encryption: 3DES and SHA-1, which every system imports, or AES-256 and SHA-256.',
        fallback: 'compat',
      },
    },
    success: 'ok',
    data: Type.String(),
    errors: ['not_found', 'conflict', 'invalid'],
    media: ['application/x-pkcs12'],
    deadlineMs: limits.keyDeadlineMs,
    ignores: 'named',
  },
  {
    name: 'artifact.pac',
    method: 'GET',
    path: `${forage}/pac`,
    access: 'pac',
    summary: 'Get the proxy auto-config (PAC) file.',
    query: { token: { schema: Type.String(), description: 'PAC token.' } },
    success: 'ok',
    data: Type.String(),
    errors: [],
    media: ['application/x-ns-proxy-autoconfig'],
    conditional: true,
    ignores: 'named',
  },
  {
    name: 'crl',
    method: 'GET',
    path: `${forage}/crl/:network`,
    access: 'public',
    summary: 'Get the certificate revocation list of a network, DER.',
    success: 'ok',
    data: Type.String(),
    errors: ['not_found', 'rate_limited'],
    media: ['application/pkix-crl'],
    publicRate: true,
  },
  {
    name: 'forage.metrics',
    method: 'GET',
    path: '/metrics/forage',
    access: 'public',
    summary: 'Get the VPN metrics. Needs a bearer token if one is configured.',
    success: 'ok',
    data: Type.String(),
    errors: ['unauthenticated', 'rate_limited'],
    media: ['text/plain; version=0.0.4; charset=utf-8'],
    ownToken: 'metrics token',
    publicRate: true,
    ignores: 'named',
  },
  {
    name: 'network.list',
    method: 'GET',
    path: `${operator}/networks`,
    access: 'operator',
    scopes: ['operator:read', 'operator:networks'],
    summary: 'List the VPN networks, by name.',
    query: { limit: integer(1, limits.listMax, limits.listDefault, 'Items in a page.'), cursor },
    success: 'ok',
    data: Type.Array(NetworkView),
    beside: nextCursor,
    errors: ['forbidden', 'invalid'],
  },
  {
    name: 'network.create',
    method: 'POST',
    path: `${operator}/networks`,
    access: 'operator',
    scopes: ['operator:networks'],
    summary: 'Create a VPN network with its certificate authority and the keys of its server.',
    body: NetworkCreateBody,
    // Room for thousands of tenants and domains.
    maxBodyBytes: limits.bodyBytes,
    success: 'created',
    data: NetworkView,
    errors: ['forbidden', 'conflict', ...bodyErrors],
    deadlineMs: limits.keyDeadlineMs,
    tagged: true,
    withoutPrior: true,
    made: `${operator}/networks/:name`,
  },
  {
    name: 'network.get',
    method: 'GET',
    path: `${operator}/networks/:network`,
    access: 'operator',
    scopes: ['operator:read', 'operator:networks'],
    summary: 'Get a VPN network.',
    success: 'ok',
    data: NetworkView,
    errors: networkErrors,
    tagged: true,
  },
  {
    name: 'network.put',
    method: 'PUT',
    path: `${operator}/networks/:network`,
    access: 'operator',
    scopes: ['operator:networks'],
    summary: 'Set everything but the name and the pools. An absent field gets its default.',
    body: NetworkBody,
    maxBodyBytes: limits.bodyBytes,
    success: 'ok',
    data: NetworkView,
    errors: [...networkErrors, 'conflict', ...bodyErrors],
    deadlineMs: limits.keyDeadlineMs,
    tagged: true,
  },
  {
    name: 'network.remove',
    method: 'DELETE',
    path: `${operator}/networks/:network`,
    access: 'operator',
    scopes: ['operator:networks'],
    summary: 'Delete a VPN network that has no peers.',
    success: 'no_content',
    data: Type.Null(),
    errors: [...networkErrors, 'conflict'],
  },
  {
    name: 'network.servers.get',
    method: 'GET',
    path: `${operator}/networks/:network/servers`,
    access: 'operator',
    scopes: ['operator:read', 'operator:networks'],
    summary: 'Get the host that serves a VPN network.',
    success: 'ok',
    data: NetworkServersView,
    errors: networkErrors,
  },
  {
    name: 'network.servers.put',
    method: 'PUT',
    path: `${operator}/networks/:network/servers`,
    access: 'operator',
    scopes: ['operator:networks'],
    summary: 'Let a host serve a VPN network, from now on in the place of any other.',
    body: NetworkServersBody,
    success: 'ok',
    data: NetworkServersView,
    errors: [...networkErrors, 'conflict', ...bodyErrors],
    deadlineMs: limits.keyDeadlineMs,
  },
  {
    name: 'network.servers.remove',
    method: 'DELETE',
    path: `${operator}/networks/:network/servers`,
    access: 'operator',
    scopes: ['operator:networks'],
    summary: 'Let no host serve a VPN network.',
    success: 'no_content',
    data: Type.Null(),
    errors: networkErrors,
  },
  serverFile(
    'wireguard',
    'wireguard.conf',
    'text/plain; charset=utf-8',
    'For `wg-quick` on the VPN server, with its private key.',
  ),
  serverFile('swanctl', 'swanctl.conf', 'text/plain; charset=utf-8', 'For strongSwan on the VPN server.'),
  serverFile(
    'nftables',
    'nftables.conf',
    'text/plain; charset=utf-8',
    'For `nft -f` on the VPN server: what the peers of each tenant may reach.',
  ),
  serverFile('server_certificate', 'server.pem', 'application/x-pem-file', 'Certificate of the VPN server.'),
  serverFile('server_key', 'server-key.pem', 'application/x-pem-file', 'Private key of the VPN server.'),
  serverFile('ca', 'ca.pem', 'application/x-pem-file', 'Certificate of the authority.'),
  {
    name: 'secret.reseal',
    method: 'POST',
    path: `${operator}/vpn-keys/reseal`,
    access: 'operator',
    scopes: ['operator:networks'],
    summary: 'Seal every secret under the current key of the vault; older keys can then be removed.',
    success: 'ok',
    data: Resealed,
    errors: ['forbidden'],
    deadlineMs: limits.keyDeadlineMs,
    withoutPrior: true,
  },
  {
    name: 'signing_key.list',
    method: 'GET',
    path: `${operator}/signing-keys`,
    access: 'operator',
    scopes: ['operator:read', 'operator:tenants'],
    summary: 'List the keys that sign the cluster’s own tokens, newest first, without their private parts.',
    success: 'ok',
    data: Type.Array(SigningKeyView),
    errors: ['forbidden'],
  },
  {
    name: 'signing_key.rotate',
    method: 'POST',
    path: `${operator}/signing-keys/rotate`,
    access: 'operator',
    scopes: ['operator:tenants'],
    summary: 'Create a signing key, and sign new tokens with it. Tokens of earlier keys stay valid.',
    query: {
      end_others: flag('Also end the earlier keys: every token that they signed is refused within two minutes.'),
    },
    success: 'created',
    data: Type.Array(SigningKeyView),
    errors: ['forbidden', 'conflict', 'invalid'],
    withoutPrior: true,
    made: `${operator}/signing-keys`,
  },
  {
    name: 'jwks',
    method: 'GET',
    path: '/.well-known/jwks.json',
    access: 'public',
    summary: 'Get the public keys of the cluster’s own tokens, as a JSON Web Key Set.',
    success: 'ok',
    data: KeySet,
    errors: ['rate_limited'],
    bare: true,
    publicRate: true,
  },
  {
    ...step('login', 'GET', '/login', 'Sign in: leads to the identity provider.'),
    query: {
      return_to: { schema: Type.String(), description: 'Path of this server to return to.' },
      tenant: { schema: TenantId, description: 'Tenant to sign in to. If absent, all are offered.' },
    },
    errors: ['bad_request', 'not_found', 'invalid', 'rate_limited'],
  },
  {
    ...step('login.callback', 'GET', '/login/callback', 'The way back from the identity provider.'),
    acts: true,
    errors: ['bad_request', 'forbidden', 'not_found', 'rate_limited', 'conflict'],
  },
  {
    ...step('login.tenants', 'GET', '/login/tenants', 'The page on which one of several tenants is chosen.'),
    ...htmlPage,
    errors: ['bad_request', 'not_found', 'rate_limited'],
  },
  {
    ...step('login.choose', 'POST', '/login/tenants/:tenant', 'Choose the tenant.'),
    errors: ['bad_request', 'forbidden', 'not_found', 'rate_limited', 'conflict'],
  },
  {
    ...step('login.session', 'GET', '/login/session', 'The page that says who is signed in.'),
    ...htmlPage,
    errors: ['rate_limited'],
  },
  {
    ...step('login.once', 'GET', '/login/once', 'Sign in with a one-time link, where those are allowed.'),
    acts: true,
    query: { code: { schema: Type.String(), description: 'The code of the link.', required: true } },
    errors: ['forbidden', 'not_found', 'invalid', 'rate_limited', 'conflict'],
  },
  {
    ...step('login.device', 'GET', '/login/device', 'The page that says which command line wants to sign in.'),
    ...htmlPage,
    query: { ask: { schema: Type.String(), description: 'Code from `verification_uri_complete`.', required: true } },
    errors: ['bad_request', 'not_found', 'invalid', 'rate_limited'],
  },
  {
    ...step('logout', 'POST', '/logout', 'Sign out: the session of this token ends at every gateway.'),
    errors: ['forbidden', 'conflict', 'rate_limited'],
  },
  {
    name: 'sign_in.device',
    method: 'POST',
    path: `${signIn}/device`,
    access: 'public',
    summary: 'Begin the sign-in of a command line. The response has a code that the user confirms in a browser.',
    body: DeviceBody,
    success: 'ok',
    data: DeviceSignIn,
    errors: [...bodyErrors, 'not_found', 'conflict', 'rate_limited'],
    publicRate: true,
  },
  {
    name: 'sign_in.device_token',
    method: 'POST',
    path: `${signIn}/device/token`,
    access: 'public',
    summary: 'Poll for the token of a sign-in that the user confirms in a browser.',
    body: DeviceTokenBody,
    maxBodyBytes: 2 * limits.signInHandleBytes,
    success: 'ok',
    data: DeviceToken,
    errors: [...bodyErrors, 'not_found', 'forbidden', 'conflict', 'rate_limited'],
    publicRate: true,
  },
  {
    name: 'openapi',
    method: 'GET',
    path: '/api/v2/openapi.json',
    access: 'public',
    summary: 'Get this API as an OpenAPI 3.1 document.',
    success: 'ok',
    data: ApiDocument,
    errors: [],
    bare: true,
    conditional: true,
  },
  {
    name: 'healthz',
    method: 'GET',
    path: '/healthz',
    access: 'public',
    summary: 'Check that the process answers.',
    success: 'ok',
    data: Health,
    errors: [],
    bare: true,
    isProbe: true,
    ignores: 'all',
  },
  {
    name: 'readyz',
    method: 'GET',
    path: '/readyz',
    access: 'public',
    summary: 'Check that the process can serve requests: NATS answers, keys are loaded, and it is not stopping.',
    success: 'ok',
    data: Health,
    errors: ['unavailable'],
    bare: true,
    isProbe: true,
    ignores: 'all',
  },
] as const satisfies readonly Route[];

type AnyRoute = (typeof routes)[number];
export type RouteName = AnyRoute['name'];
type AnyRouteWithBody = Extract<AnyRoute, { readonly body: TSchema }>;
export type RouteWithBody = AnyRouteWithBody['name'];
export type BodySchema<R extends RouteWithBody> = Extract<AnyRouteWithBody, { readonly name: R }>['body'];
type RouteByName = { readonly [R in AnyRoute as R['name']]: R };

type ParameterNames<Path extends string> = Path extends `${string}/:${infer Name}/${infer Rest}`
  ? Name | ParameterNames<`/${Rest}`>
  : Path extends `${string}/:${infer Name}`
    ? Name
    : never;

type ParamsByName = {
  readonly [R in RouteName]: {
    readonly [Name in ParameterNames<RouteByName[R]['path']>]: Name extends keyof typeof pathParameters
      ? Static<(typeof pathParameters)[Name]>
      : never;
  };
};

type ValueOf<Parameter extends QueryParameter> =
  | Extract<Static<Parameter['schema']>, QueryValue>
  | (Parameter extends { readonly fallback: QueryValue } | { readonly required: true } ? never : undefined);

type QueryByName = {
  readonly [R in RouteName]: RouteByName[R] extends {
    readonly query: infer Parameters extends Readonly<Record<string, QueryParameter>>;
  }
    ? { readonly [Name in keyof Parameters]: ValueOf<Parameters[Name]> }
    : Readonly<Record<never, never>>;
};

/** The parameters in the path of a route. */
export type Params<R extends RouteName> = ParamsByName[R];
/** The query of a route; a parameter without a fallback is undefined where it is not given. */
export type Query<R extends RouteName> = QueryByName[R];

/** Errors that any route may answer beside its own. */
export const commonErrors = ['method_not_allowed', 'internal', 'unavailable', 'timeout'] as const;
/** Errors that any route with credentials may answer. */
export const authErrors = ['unauthenticated', 'forbidden', 'rate_limited'] as const;

/** True if the route evaluates `If-Match` and `If-None-Match`: every write with credentials. */
export const isConditional = ({ method, access }: Pick<Route, 'method' | 'access'>): boolean =>
  method !== 'GET' && access !== 'public';

/**
 * True if the route honours `Idempotency-Key`: every POST of a tenant. Sign-in, enrolment and
 * links have rules of their own.
 */
export const isRepeatable = ({ method, access }: Pick<Route, 'method' | 'access'>): boolean =>
  method === 'POST' && access === 'tenant';

/** A name in the path that nothing can have is a 404, whatever the route. */
const errorsOfPath = ({ path }: Pick<Route, 'path'>): readonly ErrorCode[] =>
  path.includes('/:') ? ['not_found'] : [];

/** Every error that a route may answer, each once. */
export const errorsOf = (
  route: Pick<Route, 'method' | 'path' | 'access' | 'errors' | 'ignores'>,
): readonly ErrorCode[] => [
  ...new Set<ErrorCode>([
    ...route.errors,
    ...errorsOfPath(route),
    ...(route.ignores === undefined ? (['invalid'] as const) : []),
    ...(isRepeatable(route) ? (['invalid', 'conflict'] as const) : []),
    ...(isConditional(route) ? (['precondition_failed'] as const) : []),
    ...commonErrors,
    ...(route.access === 'public' ? [] : authErrors),
  ]),
];
