/**
 * Clients that create, start, stop, delete, read, list and ask for quotas, with few names and small
 * caps, so that they meet. Each request is written down with when it was sent and what was heard. A
 * client keeps to a gateway; when that fails it, it goes to the other for a while, as one behind a
 * load balancer does.
 */
import { setMaxListeners } from 'node:events';
import Type from 'typebox';
import { sleep } from '../../lib/backoff.ts';
import { decoder } from '../../lib/decode.ts';
import { Container, ContainerStatusView } from '../../schemas/api/container.ts';
import { QuotaView } from '../../schemas/api/tenant.ts';
import type { Random } from '../actors/support/random.ts';
import { createHttpClient, type Heard, type HttpCall, type HttpClient } from './client.ts';
import { seenOf, type Operation, type Quota, type Request, type Result, type Told } from './check/history.ts';
import type { Gateway, World } from './world.ts';

export const tenants = ['t1', 't2', 't3', 't4'] as const;
/** Its containers crash, and the engine refuses some of them. */
export const unluckyTenant = 't4';
/**
 * A start of what has failed or backs off raises its generation, and nobody but its host knows
 * whether it does. So of these tenants, nothing is started but what is stopped, and generations are
 * judged; of the others anything is started by anybody, and generations are left out of the
 * history.
 */
const exactTenants: readonly string[] = ['t1', 't2'];
/** So small that they bind: a tenant's clients want more containers than this all the time. */
export const caps = { containers: 6, cpuMillis: 2_000, memBytes: 768 * 1024 ** 2 } as const;

const clientsPerTenant = 4;
/**
 * A tenant's writes go to one gateway, its home, and one of its clients only reads, at the other:
 * an owner that is cut off together with that other one is asked for nothing but what it remembers.
 */
export const homeOf = (tenant: string): number => (tenants as readonly string[]).indexOf(tenant) % 2;
const readers: readonly number[] = [3];
/**
 * Of these only the first client writes, and seldom; the others read at the other gateway. An owner
 * with a write under way when it is cut off forgets what it had, so of a busy tenant it would
 * hardly ever be asked for what it remembers.
 */
export const quietTenants: readonly string[] = ['t1', 't2'];
const quietPauseMaxMs = 200;
/** How long a client stays away from a gateway that has failed it. */
const awayMs = 3_000;
const namesPerTenant = 12;
/**
 * Ids that a tenant's clients still ask for, newest last; those that are gone stay a while, to be
 * not found.
 */
const idsRemembered = 16;
const pauseMaxMs = 50;
const repeatsOfUnknown = 3;

const compute = '/api/v2/compute';
interface Size {
  readonly cpu_limit: string;
  readonly mem_limit: string;
  readonly cpuMillis: number;
  readonly memBytes: number;
}
const sizes: readonly [Size, ...Size[]] = [
  { cpu_limit: '0.25', mem_limit: '64m', cpuMillis: 250, memBytes: 64 * 1024 ** 2 },
  { cpu_limit: '0.5', mem_limit: '128m', cpuMillis: 500, memBytes: 128 * 1024 ** 2 },
  { cpu_limit: '1', mem_limit: '256m', cpuMillis: 1_000, memBytes: 256 * 1024 ** 2 },
];

const encoded = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));
const decodeContainer = decoder(Type.Object({ data: Type.Union([Container, ContainerStatusView]) }));
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

export interface Failure {
  readonly atMs: number;
  readonly process: string;
  readonly gateway: Gateway['place'];
  readonly what: string;
  readonly why: string;
  /**
   * The gateway closed a connection that it had kept alive, the moment a request was sent on it:
   * HTTP/1.1 has no cure.
   */
  readonly isKeptConnection: boolean;
}

export interface Workload {
  readonly operations: readonly Operation[];
  /** Requests without a word of the control plane's own: 5xx, or none. */
  readonly failures: readonly Failure[];
  /** One list for each tenant, by a client that tries until it has it: the last of the history. */
  finalLists(deadlineMs: number): Promise<void>;
  /** Lets every client finish the request that it has under way. */
  stop(): Promise<void>;
}

/**
 * Of one container: enough to know that it is stopped, and stays so until somebody sends a start.
 */
interface Starts {
  sent: number;
  /** One is under way, or was never answered. */
  isDoubtful: boolean;
  /** A stop was answered well, and no start has been sent since it was. */
  isStopped: boolean;
}

interface Known {
  readonly ids: string[];
  readonly starts: Map<string, Starts>;
}

/** The HTTP call of a request, but for the gateway and the token. */
function callOf(
  request: Request,
  tenant: string,
  withStatus: boolean,
): Pick<HttpCall, 'method' | 'path' | 'body' | 'headers'> {
  switch (request.kind) {
    case 'create': {
      const { name, cpuMillis, idempotencyKey } = request;
      const size = sizes.find((each) => each.cpuMillis === cpuMillis) ?? sizes[0];
      const { cpu_limit, mem_limit } = size;
      return {
        method: 'POST',
        path: compute,
        body: { name, registry: 'registry.test', repository: tenant, cpu_limit, mem_limit },
        ...(idempotencyKey === null ? {} : { headers: { 'idempotency-key': idempotencyKey } }),
      };
    }
    case 'start':
    case 'stop':
      return { method: 'POST', path: `${compute}/${request.id}/${request.kind}` };
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

export function resultOf(request: Request, heard: Heard): Result {
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

const withoutGeneration = (result: Result, tenant: string): Result =>
  exactTenants.includes(tenant) || result.kind !== 'ok' || result.told.of !== 'container'
    ? result
    : { kind: 'ok', told: { of: 'container', container: { ...result.told.container, generation: null } } };

interface Worker {
  readonly process: string;
  readonly tenant: string;
  readonly token: string;
  readonly random: Random;
  readonly http: HttpClient;
  readonly onlyReads: boolean;
  readonly pauseMaxMs: number;
  readonly home: number;
  awayUntilMs: number;
}

export async function startWorkload(world: World, randomOf: () => Random): Promise<Workload> {
  const operations: Operation[] = [];
  const failures: Failure[] = [];
  const known = new Map<string, Known>(tenants.map((tenant) => [tenant, { ids: [], starts: new Map() }]));
  const stopping = new AbortController();
  const { signal } = stopping;
  setMaxListeners(0, signal);
  let keys = 0;

  const remember = (tenant: string, id: string): void => {
    const ids = known.get(tenant)?.ids ?? [];
    if (ids.includes(id)) return;
    ids.push(id);
    if (ids.length > idsRemembered) ids.shift();
  };

  /** Called before a request about a container is sent; what it returns, with the result. */
  const track = (tenant: string, kind: Request['kind'], id: string): ((result: Result) => void) | undefined => {
    if (kind !== 'start' && kind !== 'stop') return undefined;
    const all = known.get(tenant)!.starts;
    const starts = all.get(id) ?? { sent: 0, isDoubtful: false, isStopped: false };
    all.set(id, starts);
    if (kind === 'start') {
      starts.sent += 1;
      starts.isDoubtful = true;
      starts.isStopped = false;
      return (result) => {
        starts.isDoubtful = result.kind === 'unknown';
      };
    }
    const { sent, isDoubtful } = starts;
    return (result) => {
      if (result.kind === 'ok' && !isDoubtful && starts.sent === sent) starts.isStopped = true;
    };
  };

  const perform = async (worker: Worker, request: Request): Promise<Result> => {
    const { process, tenant, token, http } = worker;
    const call = callOf(request, tenant, worker.random.once(2));
    const settle = 'id' in request ? track(tenant, request.kind, request.id) : undefined;
    const invokedMs = performance.now();
    const send = async (): Promise<{ heard: Heard; gateway: Gateway }> => {
      const home = world.gateways[worker.home % world.gateways.length]!;
      const isStarting = world.processes.get(home.place)?.isStarting?.() === true;
      const isAway = isStarting || performance.now() < worker.awayUntilMs;
      const gateway = world.gateways[(worker.home + Number(isAway)) % world.gateways.length]!;
      const heard = await http.send({ baseUrl: gateway.baseUrl, token, ...call });
      return { heard, gateway };
    };
    let { heard, gateway } = await send();
    if (heard.kind === 'broken' && !heard.sent) {
      // Nobody listens: what was not sent can be sent elsewhere, and is still the same request.
      leave(worker);
      ({ heard, gateway } = await send());
    }
    const result = withoutGeneration(resultOf(request, heard), tenant);
    settle?.(result);
    const answeredMs = heard.kind === 'answer' ? performance.now() : null;
    operations.push({ process, tenant, request, invokedMs, answeredMs, result });
    if (heard.kind === 'broken' || heard.status >= 500) {
      leave(worker);
      failures.push({
        atMs: performance.now(),
        process,
        gateway: gateway.place,
        what: request.kind,
        why: heard.kind === 'broken' ? heard.why : String(heard.status),
        isKeptConnection: heard.kind === 'broken' && heard.onKeptConnection && heard.why === 'ECONNRESET',
      });
    }
    if (result.kind === 'ok') {
      const { told } = result;
      if (told.of === 'container') remember(tenant, told.container.id);
      if (told.of === 'list') for (const { id } of told.containers) remember(tenant, id);
    }
    return result;
  };

  /** Of the two; who is away comes back. */
  const leave = (worker: Worker): void => {
    const nowMs = performance.now();
    worker.awayUntilMs = nowMs < worker.awayUntilMs ? nowMs : nowMs + awayMs;
  };

  const anId = ({ tenant, random }: Worker): string | undefined => {
    const ids = known.get(tenant)?.ids ?? [];
    return ids.length === 0 ? undefined : ids[random.below(ids.length)];
  };

  const create = async (worker: Worker): Promise<void> => {
    const { random } = worker;
    const { cpuMillis, memBytes } = random.pick(sizes);
    const idempotencyKey = random.once(2) ? null : `${worker.process}-${++keys}`;
    const name = `c${random.below(namesPerTenant)}`;
    const request: Request = { kind: 'create', name, cpuMillis, memBytes, idempotencyKey };
    let result = await perform(worker, request);
    if (idempotencyKey === null) return;
    // What was answered is asked for again now and then: it must be the same container, and no
    // other.
    if (result.kind === 'ok' && random.once(6)) await perform(worker, request);
    for (let repeat = 0; result.kind === 'unknown' && repeat < repeatsOfUnknown && !signal.aborted; repeat++) {
      result = await perform(worker, request);
    }
  };

  const step = async (worker: Worker): Promise<void> => {
    const { random } = worker;
    const id = anId(worker);
    const dice = worker.onlyReads ? 55 + random.below(45) : random.below(100);
    if (worker.onlyReads && id === undefined) return void (await perform(worker, { kind: 'list' }));
    if (id === undefined || dice < 18) return create(worker);
    if (dice < 30) {
      const mayStart =
        !exactTenants.includes(worker.tenant) || known.get(worker.tenant)?.starts.get(id)?.isStopped === true;
      return void (await perform(worker, { kind: mayStart ? 'start' : 'get', id }));
    }
    if (dice < 42) return void (await perform(worker, { kind: 'stop', id }));
    if (dice < 55) return void (await perform(worker, { kind: 'delete', id }));
    if (dice < 80) return void (await perform(worker, { kind: 'get', id }));
    return void (await perform(worker, { kind: dice < 91 ? 'list' : 'quota' }));
  };

  const workers: Worker[] = [];
  for (const tenant of tenants) {
    const token = await world.token(tenant);
    for (let index = 0; index < clientsPerTenant; index++) {
      const onlyReads = quietTenants.includes(tenant) ? index > 0 : readers.includes(index);
      workers.push({
        process: `${tenant}-${index}`,
        tenant,
        token,
        random: randomOf(),
        http: createHttpClient(1),
        onlyReads,
        pauseMaxMs: quietTenants.includes(tenant) && !onlyReads ? quietPauseMaxMs : pauseMaxMs,
        home: homeOf(tenant) + Number(onlyReads),
        awayUntilMs: 0,
      });
    }
  }
  const work = async (worker: Worker): Promise<void> => {
    while (!signal.aborted) {
      await step(worker);
      await sleep(worker.random.below(worker.pauseMaxMs), signal);
    }
  };
  const working = Promise.all(workers.map(work));
  // Looked at in `stop`.
  working.catch(() => undefined);

  return {
    operations,
    failures,
    finalLists: async (deadlineMs) => {
      const endMs = performance.now() + deadlineMs;
      for (const tenant of tenants) {
        const worker = workers.find((each) => each.tenant === tenant)!;
        for (const request of [{ kind: 'list' }, { kind: 'quota' }] as const) {
          for (;;) {
            const { kind } = await perform(worker, request);
            if (kind === 'ok') break;
            if (performance.now() > endMs) throw new Error(`${tenant}: no ${request.kind} within ${deadlineMs} ms`);
          }
        }
      }
    },
    stop: async () => {
      stopping.abort();
      await working;
    },
  };
}
