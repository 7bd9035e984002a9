/** The gateway. */
import type { Mutant } from '../mutant.ts';

export const gatewayMutants: readonly Mutant[] = [
  {
    name: 'default route opens private networks',
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
    name: 'file of an earlier generation',
    guard: 'A kept file of a peer never outlives a change that it shows (ADR 7)',
    file: 'gateway/vpn/service/artifacts.ts',
    changes: [{ in: 'keyOf', replace: 'peer.generation', by: "''" }],
    killedBy: 'test/gateway/vpn/service/artifacts.test.ts',
  },
  {
    name: 'operators of any issuer accepted',
    guard: 'An issuer names operators only where its entry says so (ADR 18)',
    file: 'gateway/auth/claims.ts',
    changes: [{ in: 'identityOf', never: 'scopes.some(isOfOperator) && !issuer.operators' }],
    killedBy: 'test/attacks/tokens/narrow-token.test.ts',
  },
  {
    name: 'narrow token opens its tenant',
    guard: 'A token for a part of the operator API opens nothing of its tenant (ADR 18)',
    file: 'gateway/auth/scopes.ts',
    changes: [{ in: 'scopesOf', omit: 'isOfOperator(word)' }],
    killedBy: 'test/attacks/tokens/narrow-token.test.ts',
  },
  {
    name: 'scopes of a tenant not looked at',
    guard: 'A token with scopes opens only what they name (docs/security.md)',
    file: 'gateway/auth/scopes.ts',
    changes: [{ in: 'lackOf', omit: 'scopes.length === 0' }],
    killedBy: 'test/attacks/tokens/narrow-token.test.ts',
  },
  {
    name: 'Redis counts accepted without a bound',
    guard: 'Whatever Redis answers, every tenant keeps a share of its rate (docs/security.md)',
    file: 'gateway/auth/rate-limits.ts',
    changes: [{ in: 'RateLimiter.#waitOf', omit: 'floor >= 1' }],
    killedBy: 'test/gateway/auth/rate-limits.test.ts',
  },
  {
    name: 'forged signatures not limited',
    guard: 'Wrong signatures of a published key are limited (docs/security.md)',
    file: 'gateway/auth/gate.ts',
    changes: [{ in: 'Gate.#conclude', never: 'verdict.forgedFor !== undefined' }],
    killedBy: 'test/attacks/tokens/junk-tokens.test.ts',
  },
  {
    name: 'malformed token in a URL looked up',
    guard: 'A malformed token in a URL costs nothing (docs/security.md)',
    file: 'gateway/auth/url-tokens.ts',
    changes: [{ in: 'UrlTokens.#byToken', replace: 'token?.scope !== scope', by: 'token === undefined' }],
    killedBy: 'test/attacks/tokens/junk-tokens.test.ts',
  },
  {
    name: 'client identified by address and port',
    guard: 'Another port of a client is not another client (docs/security.md)',
    file: 'gateway/auth/client-address.ts',
    changes: [{ in: 'addressOfHop', replace: "withPort.exec(hop)?.[1] ?? ''", by: 'hop' }],
    killedBy: 'test/gateway/auth/client-address.test.ts',
  },
  {
    name: 'seats of a client without a bound',
    guard: 'One address cannot take all seats (docs/security.md)',
    file: 'gateway/http/seats.ts',
    changes: [{ in: 'Seats.take', never: '(holder?.count ?? 0) + size > this.bounds.perClient' }],
    killedBy: 'test/gateway/http/seats.test.ts',
  },
  {
    name: 'body bytes of a tenant without a bound',
    guard: 'Unfinished bodies of one tenant do not fill the memory for all (docs/security.md)',
    file: 'gateway/http/seats.ts',
    changes: [{ in: 'Seat.grow', never: 'this.#tenant.count + more > bounds.perTenant' }],
    killedBy: 'test/gateway/http/seats.test.ts',
  },
  {
    name: 'chunks of a body not counted',
    guard: 'A body in tiny chunks is cut off (docs/security.md)',
    file: 'gateway/http/engine/body.ts',
    changes: [{ in: 'Body.#take', never: 'this.#pieces > limits.bodyPieces' }],
    killedBy: 'test/gateway/http/engine/body.test.ts',
  },
  {
    name: 'connection kept after a chunked stream',
    guard: 'No request runs behind an incomplete one, even if a stream answers it (docs/security.md)',
    file: 'gateway/http/engine/uws-exchange.ts',
    changes: [{ in: 'UwsExchange.stream.end', never: "ending === 'ended'" }],
    killedBy: 'test/integration/gateway/http.test.ts',
  },
  {
    name: 'connection kept after a chunked body',
    guard: 'No request runs behind a chunked body of uWebSockets.js (docs/security.md)',
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
    name: 'reply waits for an endless body',
    guard: 'A reply does not wait for a body that never ends (docs/security.md)',
    file: 'gateway/http/engine/body.ts',
    changes: [{ in: 'Body.isOver', omit: 'nowMs - state.fromMs >= limits.bodyDrainMs' }],
    killedBy: 'test/integration/gateway/http.test.ts',
  },
  {
    name: 'tokens of a damaged tenant accepted',
    guard: 'Tokens of a tenant whose record is damaged are refused (ADR 13)',
    file: 'gateway/auth/revocation-feed.ts',
    changes: [{ in: 'RevocationFeed.knowledgeOf', never: 'heard.unreadable.has(tenant)' }],
    killedBy: 'test/integration/gateway/limits.test.ts',
  },
  {
    name: 'tenant taken from the query',
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
    name: 'kept lines and events never read again',
    guard: 'Purged lines and events, and those of before a restore, end within seconds (ADR 23)',
    file: 'gateway/streams/tails.ts',
    changes: [{ in: 'Tails.of', never: 'this.#clock.monotonicMs() - kept.readAtMs >= limits.tailFreshMs' }],
    killedBy: 'test/gateway/streams/tails.test.ts',
  },
  {
    name: 'read shared that began earlier',
    guard: 'A read of log lines or events begins after the request that it serves (ADR 23)',
    file: 'gateway/streams/shared-reads.ts',
    changes: [{ in: 'SharedReads.of', replace: 'line.next ??= line.underWay.then(begin, begin)', by: 'line.underWay' }],
    killedBy: 'test/gateway/streams/shared-reads.test.ts',
  },
  {
    name: 'log lines of any host accepted',
    guard: 'Log lines count only from the hosts that a container was placed on (A7)',
    file: 'gateway/streams/logs.ts',
    changes: [
      {
        in: 'LogReader.newest',
        replace: 'subjects.hostLog(host, tenant, id)',
        by: "subjects.hostLog('*', tenant, id)",
      },
    ],
    killedBy: 'test/integration/gateway/streams.test.ts',
  },
  {
    name: 'secret opens in the place of another',
    guard: 'A sealed secret opens for its tenant, name and version alone (ADR 37)',
    file: 'gateway/vault/vault.ts',
    changes: [
      {
        in: 'textOf',
        replace: '`secret/${place.tenant}/${place.name}/${place.version}`',
        by: '`secret/${place.tenant}/${place.name}`',
      },
    ],
    killedBy: 'test/gateway/vault/vault.test.ts',
  },
];
