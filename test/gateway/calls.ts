/** A call as handlers get it, and the services that they use, without sockets and servers. */
import type { Call, CallOf, Services } from '../../gateway/http/call.ts';
import type { Exchange, Reply, RequestHead } from '../../gateway/http/engine/engine.ts';
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
  ...more,
});

/** An exchange whose body is what the test says, and whose replies it reads. */
export function exchangeOf(head: Partial<RequestHead> = {}, body = ''): Exchange & { readonly replies: Reply[] } {
  const replies: Reply[] = [];
  return {
    head: headOf(head),
    bodyBytes: Buffer.byteLength(body),
    expectBody: () => {},
    claimBody: () => {},
    readBody: (done) => done(Buffer.from(body)),
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
  leaveSeat: () => {},
};

/** A call of `route`; `more` has what its handler reads of path, query and body. */
export const callOf = <R extends RouteName>(route: R, more: Partial<CallOf<R>> = {}): CallOf<R> =>
  ({ ...anyCall, exchange: exchangeOf(), route, ...more }) as CallOf<R>;

export interface Asked {
  readonly lane: LaneKind;
  readonly question: Question;
}

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
    get logs() {
      return unexpected();
    },
    get events() {
      return unexpected();
    },
    get usage() {
      return unexpected();
    },
    get audit() {
      return unexpected();
    },
    get notes() {
      return unexpected();
    },
    get stats() {
      return unexpected();
    },
    get streams() {
      return unexpected();
    },
    get sessions() {
      return unexpected();
    },
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
