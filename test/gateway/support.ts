/** Parts that tests of the gateway share, without a server: an owner in memory, logs, clocks. */
import type { RevocationPage } from '../../schemas/wire/answers.ts';
import type { Revocation } from '../../schemas/api/tenant.ts';
import type { NatsConnection, Msg } from '@nats-io/transport-node';
import type { EngineName } from '../../gateway/http/engine/engine.ts';
import { systemClock, type Clock } from '../../lib/time/clock.ts';
import type { Fields, Log } from '../../lib/log.ts';
import type { Container } from '../../schemas/api/container.ts';
import { etagOf, withHead } from '../../schemas/api/etag.ts';
import type { EventBody } from '../../schemas/api/event.ts';
import type { HostView } from '../../schemas/api/host.ts';
import type { ContainerId, HostKey, Region } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Ask } from '../../schemas/wire/asks.ts';
import { encodeAnswer, encodeAnswers, linesOf } from '../../schemas/wire/codec.ts';
import { decodeAsk } from '../../lib/rpc/decode.ts';
import { isSuccessCode, type OutcomeCode } from '../../schemas/errors.ts';

export const quietLog: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => quietLog };

/** Keeps every event, for tests that look at what was said. */
export function recordingLog(): Log & { readonly events: { event: string; fields: Fields }[] } {
  const events: { event: string; fields: Fields }[] = [];
  const say = (event: string, fields: Fields = {}): void => void events.push({ event, fields });
  const log = { events, debug: say, info: say, warn: say, error: say, child: () => log };
  return log;
}

export interface AnswerOf {
  readonly code: OutcomeCode;
  readonly body: string;
}

/** `undefined` if this ask never gets an answer. */
export type Owner = (ask: Ask, message: Msg) => AnswerOf | undefined | Promise<AnswerOf | undefined>;

/** Adds the head of the resource if the ask wants it, as owners do. */
const withEtag = (ask: Ask, { code, body }: AnswerOf): AnswerOf =>
  ask.head === true && isSuccessCode(code) && body.startsWith('{')
    ? { code, body: withHead(body, etagOf(body), undefined) }
    : { code, body };

/** Answers every partition's asks, as many of a batch in one message as fit. */
export function serveOwner(nc: NatsConnection, owner: Owner): { stop(): void } {
  const answer = async (message: Msg): Promise<void> => {
    const asks = linesOf(message.string()).map(decodeAsk);
    const lines: string[] = [];
    await Promise.all(
      asks.map(async (ask, index) => {
        const given = await owner(ask, message);
        if (given !== undefined) lines.push(encodeAnswer({ index, ...withEtag(ask, given) }));
      }),
    );
    let part: string[] = [];
    let bytes = 0;
    for (const line of lines) {
      if (part.length > 0 && bytes + Buffer.byteLength(line) > limits.answerPartBytes) {
        message.respond(encodeAnswers(part));
        part = [];
        bytes = 0;
      }
      part.push(line);
      bytes += Buffer.byteLength(line) + 1;
    }
    if (part.length > 0) message.respond(encodeAnswers(part));
  };
  const subscription = nc.subscribe('part.*', {
    callback: (error, message) => {
      if (error === null) void answer(message);
    },
  });
  return { stop: () => subscription.unsubscribe() };
}

export const okData = (data: unknown, code: OutcomeCode = 'ok'): AnswerOf => ({ code, body: JSON.stringify({ data }) });
/** A record that files are made from. */
export const okMaterial = (data: unknown): AnswerOf => ({
  code: 'ok',
  body: JSON.stringify({ data, version: 'v1' }),
});
/** A page of `revocation.list` with all revocations. */
export const revocationsOf = (data: readonly Revocation[], more: Partial<RevocationPage> = {}): AnswerOf => ({
  code: 'ok',
  body: JSON.stringify({ data, unreadable: [], whole: true, more: false, next: '1.1', ...more }),
});
export const refusal = (code: OutcomeCode): AnswerOf => ({ code, body: '' });

const timestamps = { inserted_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-01T00:00:00.000Z' };

/** An owner with containers in memory: enough of one to have every route answered. */
export function memoryOwner(): ((ask: Ask) => AnswerOf) & {
  readonly asks: Ask[];
  readonly containers: Map<string, Container>;
} {
  const asks: Ask[] = [];
  const containers = new Map<string, Container>();
  const owner = (ask: Ask): AnswerOf => {
    asks.push(ask);
    const found = 'id' in ask ? containers.get(`${ask.tenant} ${ask.id}`) : undefined;
    switch (ask.type) {
      case 'revocation.list':
        return revocationsOf([]);
      case 'container.find':
        return { code: 'ok', body: '{"data":[],"next":null}' };
      case 'metadata.list':
      case 'host.list':
      case 'network.list':
      case 'tenant.list':
      case 'tenant.hosts':
      case 'tenant.names':
        return { code: 'ok', body: '{"data":[],"more":false}' };
      case 'audit.recent':
        return okData({ lines: [], more: false });
      case 'answer.get':
      case 'audit.note':
      case 'audit.note_operator':
        return okData(null);
      case 'peer.list':
      case 'secret.list':
      case 'login.list':
      case 'secret.stale':
      case 'key.list':
      case 'signing_key.list':
        return okData([]);
      case 'secret.material':
      case 'login.material':
        return okData({ next: 1, current: null });
      case 'secret.put':
        return okData({ name: ask.name, version: 1, updated_at: timestamps.updated_at, used_by: [] });
      case 'login.put':
        return okData({ host: ask.registry, username: ask.username, updated_at: timestamps.updated_at });
      case 'signing_key.put':
        return okData([{ ...ask.key, insertedAtMs: 1, untilMs: null }], 'created');
      case 'key.create': {
        const { id, name, scopes, subject } = ask.made;
        const { inserted_at } = timestamps;
        return okData({ id, name, scopes, subject, inserted_at, expires_at: inserted_at, revoked: false }, 'created');
      }
      case 'container.create': {
        const { id, tenant: tenant_id, spec } = ask;
        const made = { id, tenant_id, ...spec, status: 'pending', ...timestamps } as unknown as Container;
        containers.set(`${tenant_id} ${id}`, made);
        return okData(made, 'created');
      }
      case 'spec.create': {
        const { id, tenant: tenant_id } = ask;
        const made = {
          id,
          tenant_id,
          ...ask.declaration.spec,
          status: 'pending',
          ...timestamps,
        } as unknown as Container;
        containers.set(`${tenant_id} ${id}`, made);
        return okData(made, 'created');
      }
      case 'container.list':
        return okData([...containers.values()].filter((one) => one.tenant_id === ask.tenant));
      case 'container.overview': {
        const own = [...containers.values()].filter((one) => one.tenant_id === ask.tenant);
        return okData(own.map((container) => ({ container, labels: {}, project: null })));
      }
      case 'container.watch':
        return { code: 'ok', body: '{"data":[],"position":{"epoch":1,"revision":0},"more":false}' };
      case 'container.get':
      case 'container.update':
      case 'container.start':
      case 'container.stop':
        return found === undefined ? refusal('not_found') : okData(found);
      case 'container.delete':
        return found === undefined ? refusal('not_found') : okData({ ...found, status: 'removing' }, 'accepted');
      case 'container.versions':
        return found === undefined ? refusal('not_found') : okData([]);
      case 'container.trace':
        return found === undefined ? refusal('not_found') : okData({ history: [], gone: false });
      case 'event.recent':
        return okData({ events: [], by: [], more: false, last: 1e9 });
      case 'container.status':
        return found === undefined ? refusal('not_found') : okData(statusView(ask.id, found.status));
      case 'tenant.network':
        return okData({ ipv4: null, ipv6: 'fd5e::/48', domain: 'internal', members: containers.size });
      case 'tenant.quota':
        return okData({ region: ask.region, usage: {}, caps: {} });
      case 'tenant.get':
      case 'tenant.put':
        return okData({
          id: ask.tenant,
          regions: ['default'],
          caps: {},
          region_caps: {},
          registries: null,
          region_registries: {},
        });
      case 'tenant.revoke':
        return okData({ issued_until: timestamps.inserted_at, expires_at: timestamps.updated_at }, 'created');
      case 'host.create':
        return okData(hostView(ask.host, ask.region), 'created');
      case 'peer.link.list':
        return okData([]);
      case 'host.enrol':
      case 'host.renew':
      case 'link.resolve':
        return refusal('unauthenticated');
      default:
        return refusal('not_found');
    }
  };
  return Object.assign(owner, { asks, containers });
}

const hostView = (key: HostKey, region: Region): HostView => ({
  key,
  region,
  status: 'joining',
  cordoned: false,
  draining: false,
  capacity: null,
  max_cpu_millis: null,
  max_mem_bytes: null,
  max_containers: null,
  drain_at_once: null,
  renew_expired: true,
  used: null,
  free_ports: null,
  free_disk_bytes: null,
  orphans_held: 0,
  volumes_left: 0,
  faults: [],
  agent_version: null,
  stops_after_ms: null,
  engine: null,
  last_heard_at: null,
  ...timestamps,
});

export const statusView = (id: string, status: string) => ({
  id,
  status,
  desired: 'running',
  generation: 1,
  host_key: null,
  observed_status: null,
  observed_at: null,
  reason: null,
  message: null,
  exit_code: null,
  restart_count: 0,
  next_retry_at: null,
  started_at: null,
  addresses: [],
  observed_generation: 0,
});

/**
 * The system's clock, which a test can stop: then no budget is refilled, however slow the machine
 * is. Waits that are timers go on. A gateway does not drain while its clock stands still: let it go
 * on before.
 */
export function stoppableClock(): Clock & { stop(): void; goOn(): void } {
  let stoppedAtMs: number | undefined;
  return {
    nowMs: () => systemClock.nowMs(),
    monotonicMs: () => stoppedAtMs ?? systemClock.monotonicMs(),
    stop: () => (stoppedAtMs = systemClock.monotonicMs()),
    goOn: () => (stoppedAtMs = undefined),
  };
}

export const engines: readonly EngineName[] = ['uws', 'node'];

/**
 * Engines for tests that take long and are mostly about what both engines share: the one of
 * production, and both in `npm run test:nightly`.
 */
export const usualEngines: readonly EngineName[] =
  process.env['LONGSHORE_TEST_NIGHT'] === undefined ? ['uws'] : engines;

/** A status event as the owner of a partition publishes it. */
export const statusEvent = (id: string, container: ContainerId): EventBody => ({
  id,
  ts: '2026-01-01T00:00:00.000Z',
  type: 'status',
  container_id: container,
  name: 'web',
  generation: 1,
  host_key: null,
  status: 'running',
  reason: null,
  message: null,
  exit_code: null,
  request_id: null,
});
