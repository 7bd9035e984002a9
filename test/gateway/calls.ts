/** A call as handlers get it, and what they are made with, without sockets and servers. */
import type { AuditRoutesOptions } from '../../gateway/audit/routes.ts';
import type { ContainerRoutesOptions } from '../../gateway/compute/routes.ts';
import type { UsageRoutesOptions } from '../../gateway/stats/usage.ts';
import type { Call, CallOf } from '../../gateway/call.ts';
import type { Exchange, Reply, RequestHead } from '../../gateway/http/engine/engine.ts';
import type { KeyRoutesOptions } from '../../gateway/keys/routes.ts';
import type { OperatorEventsOptions } from '../../gateway/operator/events.ts';
import type { HostRoutesOptions } from '../../gateway/operator/hosts.ts';
import type { TenantRoutesOptions } from '../../gateway/operator/tenants.ts';
import type { OperatorUsageOptions } from '../../gateway/operator/usage.ts';
import type { SessionRoutesOptions } from '../../gateway/sessions/routes.ts';
import type { StatsRouteOptions } from '../../gateway/stats/handler.ts';
import type { EventRoutesOptions } from '../../gateway/streams/event-handlers.ts';
import type { LogRouteOptions } from '../../gateway/streams/log-handler.ts';
import type { WaitRouteOptions } from '../../gateway/streams/wait/handler.ts';
import type { LaneKind, Outcome, Question } from '../../lib/rpc/partition-client.ts';
import type { ContainerId, KeyId, OperationId, TenantId } from '../../schemas/ids.ts';
import type { RouteName } from '../../schemas/routes.ts';
import { quietLog } from './support.ts';

export const headOf = (more: Partial<RequestHead> = {}): RequestHead => ({
  method: 'GET',
  path: '/',
  query: '',
  address: '192.0.2.1',
  headers: {},
  isMalformed: false,
  ...more,
});

/** An exchange whose body is what the test says, and whose replies it reads. */
export function exchangeOf(head: Partial<RequestHead> = {}, body = ''): Exchange & { readonly replies: Reply[] } {
  const replies: Reply[] = [];
  return {
    head: headOf(head),
    body: {
      declaredBytes: Buffer.byteLength(body),
      expect: () => {},
      claim: () => {},
      whenKnown: (listener) => listener(Buffer.from(body)),
    },
    reply: (reply) => void replies.push(reply),
    stream: () => {
      throw new Error('no stream is expected');
    },
    handshake: undefined,
    isUpgraded: false,
    upgrade: () => {
      throw new Error('no WebSocket is expected');
    },
    whenFinished: (listener) => listener(),
    aborted: false,
    onAborted: () => {},
    replies,
  };
}

/** A call of a route that reads nothing of path, query and body. */
export const anyCall: Call = {
  exchange: exchangeOf(),
  route: 'container.get',
  params: {},
  query: {},
  body: undefined,
  identity: {
    tenant: 'acme' as TenantId,
    subject: 'alice',
    scopes: [],
    tokenId: undefined,
    tokenName: 'token',
    issuedAtS: 0,
    expiresAtS: 1e10,
  },
  grant: undefined,
  requestId: 'r',
  origin: { rid: 'r' },
  deadlineMs: 1000,
  client: '192.0.2.1',
  releasePermit: () => {},
};

/** A call of `route`; `more` has what its handler reads of path, query and body. */
export const callOf = <R extends RouteName>(route: R, more: Partial<CallOf<R>> = {}): CallOf<R> =>
  ({ ...anyCall, exchange: exchangeOf(), route, ...more }) as CallOf<R>;

export interface Asked {
  readonly lane: LaneKind;
  readonly question: Question;
}

/** Services of the handlers of all areas. */
export type Services = ContainerRoutesOptions &
  UsageRoutesOptions &
  Omit<KeyRoutesOptions, 'signingKeys'> &
  TenantRoutesOptions &
  HostRoutesOptions &
  OperatorEventsOptions &
  OperatorUsageOptions &
  AuditRoutesOptions &
  SessionRoutesOptions &
  LogRouteOptions &
  EventRoutesOptions &
  WaitRouteOptions &
  StatsRouteOptions;

/** Services that answer every ask alike, and keep what they were asked. */
export function servicesWith(
  answer: (question: Question) => Outcome = () => ({ code: 'ok', body: '{"data":{}}' }),
  more: Partial<Services> = {},
): Services & { readonly asked: Asked[]; readonly failures: string[] } {
  const asked: Asked[] = [];
  const failures: string[] = [];
  const unexpected = (): never => {
    throw new Error('not expected');
  };
  return {
    ask: async (lane, question) => {
      asked.push({ lane, question });
      return Promise.resolve(answer(question));
    },
    partitions: () => 2,
    announceRevocation: unexpected,
    tokenLifeMaxMs: 60_000,
    clock: { nowMs: () => 0, monotonicMs: () => 0 },
    log: quietLog,
    logs: { newest: unexpected, past: unexpected, after: unexpected, resume: unexpected },
    events: { newest: unexpected, past: unexpected, after: unexpected, resume: unexpected },
    allEvents: { newest: unexpected, after: unexpected, resume: unexpected },
    usage: { sums: unexpected, byHour: unexpected, tenants: unexpected },
    audit: { find: unexpected },
    notes: { begin: unexpected, noteLater: unexpected },
    stats: { watch: unexpected },
    streams: {
      withPermit: unexpected,
      withDoorbell: unexpected,
      follow: unexpected,
      waitsOver: unexpected,
      polls: { streamMs: 1, waitMs: 1 },
    },
    sessions: { open: unexpected, withPermit: unexpected, stillGood: unexpected },
    newOperationId: () => 'operation-00000000' as OperationId,
    newContainerId: () => 'container' as ContainerId,
    newKeyId: () => '01890000-0000-7000-8000-00000000000a' as KeyId,
    newSecret: () => 's'.repeat(43),
    countAuthFailure: (_call, token) => void failures.push(token),
    ...more,
    asked,
    failures,
  };
}
