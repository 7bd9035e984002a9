/** The gateway. */
import type { Mutant } from '../mutant.ts';

export const gatewayMutants: readonly Mutant[] = [
  {
    name: 'route to everything opens private networks',
    guard: 'Peers reach private ranges only where a route names them (docs/security.md)',
    file: 'gateway/vpn/render/wireguard/nftables.ts',
    changes: [
      {
        in: 'setsOf',
        replace: 'reserved[family].some((range) => contains(range, route))',
        by: 'reserved[family].some((range) => contains(range, route) || contains(route, range))',
      },
    ],
    killedBy: 'test/gateway/vpn/render/wireguard/nftables.test.ts',
  },
  {
    name: 'operators of any issuer',
    guard: 'An issuer names operators only where its entry says so (ADR 18)',
    file: 'gateway/auth/claims.ts',
    changes: [{ in: 'identityOf', never: 'powers.length > 0 && !issuer.operators' }],
    killedBy: 'test/attacks/tokens/narrow-operator-token.test.ts',
  },
  {
    name: 'narrow token opens its tenant',
    guard: 'A token for a part of the operator API opens nothing of its tenant (ADR 18)',
    file: 'gateway/auth/scopes.ts',
    changes: [{ in: 'lackOf', replace: "powers.length > 0 ? 'tenant' : undefined", by: 'undefined' }],
    killedBy: 'test/attacks/tokens/narrow-operator-token.test.ts',
  },
  {
    name: 'redis believed without bound',
    guard: 'What Redis says leaves every tenant a share of its rate (docs/security.md)',
    file: 'gateway/auth/rate-limits.ts',
    changes: [{ in: 'RateLimiter.#waitOf', omit: 'floor >= 1' }],
    killedBy: 'test/integration/gateway/limits.test.ts',
  },
  {
    name: 'forged signatures not counted',
    guard: 'Wrong signatures of a published key are limited (docs/security.md)',
    file: 'gateway/auth/gate.ts',
    changes: [{ in: 'Gate.#conclude', never: 'verdict.forgedFor !== undefined' }],
    killedBy: 'test/attacks/tokens/junk-tokens.test.ts',
  },
  {
    name: 'junk in URLs asked about',
    guard: 'A malformed token in a URL costs nothing (docs/security.md)',
    file: 'gateway/auth/url-tokens.ts',
    changes: [{ in: 'UrlTokens.#byToken', replace: 'token?.scope !== scope', by: 'token === undefined' }],
    killedBy: 'test/attacks/tokens/junk-tokens.test.ts',
  },
  {
    name: 'port taken for a part of the client',
    guard: 'Another port of a client is not another client (docs/security.md)',
    file: 'gateway/auth/client-address.ts',
    changes: [{ in: 'addressOfHop', replace: "withPort.exec(hop)?.[1] ?? ''", by: 'hop' }],
    killedBy: 'test/integration/gateway/auth.test.ts',
  },
  {
    name: 'seats without a bound for a client',
    guard: 'One address does not take all places (docs/security.md)',
    file: 'gateway/http/seats.ts',
    changes: [{ in: 'Seats.take', never: '(holder?.count ?? 0) + size > this.bounds.perClient' }],
    killedBy: 'test/gateway/http/seats.test.ts',
  },
  {
    name: 'bodies without a bound for a tenant',
    guard: 'Unfinished bodies of one tenant do not fill the memory for all (docs/security.md)',
    file: 'gateway/http/seats.ts',
    changes: [{ in: 'Seat.grow', never: 'this.#tenant.count + more > bounds.perTenant' }],
    killedBy: 'test/gateway/http/seats.test.ts',
  },
  {
    name: 'pieces of a body not counted',
    guard: 'A body in tiny chunks is cut off (docs/security.md)',
    file: 'gateway/http/engine/body.ts',
    changes: [{ in: 'Body.#take', never: 'this.#pieces > limits.bodyPieces' }],
    killedBy: 'test/gateway/http/engine/body.test.ts',
  },
  {
    name: 'connection kept after a stream with chunks',
    guard: 'Nothing runs behind a request that is not whole, also where a stream answers it (docs/security.md)',
    file: 'gateway/http/engine/uws-exchange.ts',
    changes: [{ in: 'UwsExchange.stream.end', never: "ending === 'ended'" }],
    killedBy: 'test/integration/gateway/http.test.ts',
  },
  {
    name: 'connection kept after chunks',
    guard: 'Nothing runs behind a chunked body of uWebSockets.js (docs/security.md)',
    file: 'gateway/http/engine/uws.ts',
    changes: [
      {
        in: 'uwsEngine.accept',
        replace: "framing.kind === 'unframed' || framing.kind === 'chunked'",
        by: "framing.kind === 'unframed'",
      },
    ],
    killedBy: 'test/integration/gateway/http.test.ts',
  },
  {
    name: 'reply waits for a body without end',
    guard: 'A reply does not wait for a body that does not come (docs/security.md)',
    file: 'gateway/http/engine/body.ts',
    changes: [{ in: 'Body.isOver', omit: 'nowMs - state.fromMs >= limits.bodyDrainMs' }],
    killedBy: 'test/integration/gateway/http.test.ts',
  },
  {
    name: 'damaged tenant covered',
    guard: 'Tokens of a tenant whose record is damaged are not served (ADR 13)',
    file: 'gateway/auth/revocation-feed.ts',
    changes: [{ in: 'RevocationFeed.knowledgeOf', never: 'heard.unreadable.has(tenant)' }],
    killedBy: 'test/integration/gateway/limits.test.ts',
  },
  {
    name: 'tenant from the query',
    guard: 'The tenant of a request is the token’s (A6)',
    file: 'gateway/http/call.ts',
    changes: [
      {
        in: 'tenantOf',
        replace: 'call.identity?.tenant ?? call.grant?.tenant',
        by: "new URLSearchParams(call.exchange.head.query).get('tenant_id') ?? call.identity?.tenant ?? call.grant?.tenant",
      },
    ],
    killedBy: 'test/integration/gateway/contract.test.ts',
  },
  {
    name: 'log lines of any host',
    guard: 'Log lines count only from the hosts that a container was placed on (A7)',
    file: 'gateway/streams/logs.ts',
    changes: [
      {
        in: 'LogReader.#newestOfHost',
        replace: 'subjects.hostLog(host, tenant, id)',
        by: "subjects.hostLog('*', tenant, id)",
      },
    ],
    killedBy: 'test/integration/gateway/streams.test.ts',
  },
];
