/** Sessions between gateways and hosts. */
import type { Mutant } from '../mutant.ts';

export const sessionMutants: readonly Mutant[] = [
  {
    name: 'lost messages of a tunnel passed over',
    guard: 'A session with a gap ends, and shows no byte in the wrong place (ADR 39)',
    file: 'lib/tunnel/tunnel.ts',
    changes: [{ in: 'Tunnel.receive', never: 'decoded.number !== this.#hears' }],
    killedBy: 'test/lib/tunnel/tunnel.test.ts',
  },
  {
    name: 'window of a tunnel not enforced',
    guard: 'An end that sends more than the window ends the session (ADR 39)',
    file: 'lib/tunnel/tunnel.ts',
    changes: [{ in: 'Tunnel.#take', never: 'this.#granted.bytes < 0' }],
    killedBy: 'test/lib/tunnel/tunnel.test.ts',
  },
  {
    name: 'control messages without a window',
    guard: 'Control messages that wait are few (ADR 39)',
    file: 'lib/tunnel/tunnel.ts',
    changes: [{ in: 'Tunnel.control', replace: 'this.#room.controls === 0', by: 'false' }],
    killedBy: 'test/lib/tunnel/tunnel.test.ts',
  },
  {
    name: 'silent end of a tunnel kept',
    guard: 'A session whose other end is gone ends (ADR 39)',
    file: 'lib/tunnel/tunnel.ts',
    changes: [{ in: 'Tunnel.look', never: 'nowMs - this.#heardAtMs >= limits.tunnelSilentMs' }],
    killedBy: 'test/lib/tunnel/tunnel.test.ts',
  },
  {
    name: 'any host told what a session is about',
    guard: 'A gateway answers only the host and the key at which it rang (ADR 39)',
    file: 'gateway/sessions/sessions.ts',
    changes: [{ in: 'Sessions.#answer', never: 'host !== rung.agent.host || user !== rung.agent.user' }],
    killedBy: 'test/attacks/hosts/host-sessions.test.ts',
  },
  {
    name: 'tunnels cross as streams',
    guard: 'A host does not choose where a gateway may answer (ADR 39)',
    file: 'ops/nats-keys/permissions.ts',
    changes: [
      {
        in: 'crossings',
        replace: "{ from: 'CP', type: 'service', subject: 'tunnel.*.*.*.*', responses: 'Singleton' }",
        by: "{ from: 'HOSTS', type: 'stream', subject: 'tunnel.*.*.*.*' }",
      },
    ],
    killedBy: 'test/attacks/hosts/host-sessions.test.ts',
  },
  {
    name: 'sessions of a container not counted',
    guard: 'A container has at most eight sessions (docs/api.md)',
    file: 'host-agent/sessions/places.ts',
    changes: [{ in: 'createSessionPlaces', never: 'count >= perContainer' }],
    killedBy: 'test/integration/sessions/sessions.test.ts',
  },
  {
    name: 'stats of another container shared',
    guard: 'Who watches shares the session of this container alone (ADR 39)',
    file: 'gateway/stats/watches.ts',
    changes: [
      {
        in: 'StatsWatches.watch',
        replace: '[tenant, id, place.host, place.agent, place.placement]',
        by: '[tenant, place.host, place.agent, place.placement]',
      },
    ],
    killedBy: 'test/integration/sessions/stats.test.ts',
  },
  {
    name: 'stats compared with an earlier run',
    guard: 'CPU is a rate within one run of a container (docs/api.md)',
    file: 'host-agent/usage/live-stats.ts',
    changes: [{ in: 'Reader.#read', never: 'before?.startedAt !== startedAt' }],
    killedBy: 'test/host-agent/usage/live-stats.test.ts',
  },
  {
    name: 'session in the container of another tenant',
    guard: 'An agent finds the container by its own desired set and labels (ADR 39)',
    file: 'host-agent/sessions/target.ts',
    changes: [{ in: 'targetOf', replace: 'wanted.container.tenant === tenant', by: 'true' }],
    killedBy: 'test/host-agent/sessions/target.test.ts',
  },
  {
    name: 'handshakes with a cookie from any site',
    guard: 'With the cookie only a page of our own opens a session (docs/security.md)',
    file: 'gateway/pipeline/check.ts',
    changes: [{ in: 'refusalOf', never: 'route.upgrades === true && !isOfOurs' }],
    killedBy: 'test/integration/sessions/websocket.test.ts',
  },
  {
    name: 'sessions outlive their token',
    guard: 'A session ends within a second of the end of its token (docs/security.md)',
    file: 'gateway/sessions/bridge.ts',
    changes: [{ in: 'Bridge.#look', never: '!this.#parts.isStillGood()' }],
    killedBy: 'test/gateway/sessions/bridge.test.ts',
  },
  {
    name: 'window of a client not enforced',
    guard: 'What a client has sent and the host has no room for is bounded (docs/security.md)',
    file: 'gateway/sessions/bridge.ts',
    changes: [{ in: 'Bridge.#take', never: 'this.#allowed < 0' }],
    killedBy: 'test/gateway/sessions/bridge.test.ts',
  },
  {
    name: 'processes of other containers killed',
    guard: 'A process is signalled only if its cgroup names the container (docs/security.md)',
    file: 'host-agent/sessions/process-tree.ts',
    changes: [{ in: 'createProcessTree', never: '!(await belongs(pid, dockerId))' }],
    killedBy: 'test/host-agent/sessions/process-tree.test.ts',
  },
  {
    name: 'handshake with a body',
    guard: 'Bytes behind a handshake are WebSocket’s and never a request’s (ADR 39)',
    file: 'gateway/http/engine/sockets/handshake.ts',
    changes: [{ in: 'handshakeOf', replace: '!isBare', by: 'false' }],
    killedBy: 'test/gateway/http/engine/handshake.test.ts',
  },
  {
    name: 'handshakes in the cork of their own response',
    guard: 'A WebSocket is not taken for a request that ends its connection (ADR 5)',
    file: 'gateway/http/engine/sockets/uws-cork.ts',
    changes: [{ in: 'LentCork.around', replace: 'this.#lender ?? response', by: 'response' }],
    killedBy: 'test/gateway/http/engine/uws-cork.test.ts',
  },
];
