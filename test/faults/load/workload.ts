/**
 * Clients that create, update, start, stop, delete, read, list and ask for quotas. The history gets
 * each request with its times and its answer. A client stays with one gateway; when a request
 * fails, it uses the other for a while, as a client behind a load balancer does.
 */
import { setMaxListeners } from 'node:events';
import { sleep } from '../../../lib/time/backoff.ts';
import type { Random } from '../../actors/support/random.ts';
import type { Declared, Operation, Request, Result, Version } from '../check/history.ts';
import { createHttpClient, type Heard, type HttpClient } from './client.ts';
import { callOf, resultOf, sizes } from './requests.ts';
import { exactTenants, goodTags, homeOf, largeOnceIn, largeTenants, quietTenants, tagsOf, tenants } from './tenants.ts';
import type { Gateway, World } from '../world/world.ts';

const clientsPerTenant = 4;
const readers: readonly number[] = [3];
const quietPauseMaxMs = 200;
/** Time for which a client avoids a gateway after a failed request. */
const awayMs = 3_000;
const namesPerTenant = 12;
/**
 * Ids that a tenant's clients ask for, newest last. Removed containers stay for a while, so that
 * some requests find nothing.
 */
const idsRemembered = 16;
const pauseMaxMs = 50;
const repeatsOfUnknown = 3;

export interface Failure {
  readonly atMs: number;
  readonly process: string;
  readonly gateway: Gateway['place'];
  readonly what: string;
  readonly why: string;
  /**
   * The gateway closed a keep-alive connection just as the client sent a request on it; HTTP/1.1
   * cannot prevent that.
   */
  readonly isKeptConnection: boolean;
}

export interface Workload {
  readonly operations: readonly Operation[];
  /** Requests that got a 5xx or no answer. */
  readonly failures: readonly Failure[];
  /** Ends the history with one list and one quota of each tenant, tried until they succeed. */
  finalLists(deadlineMs: number): Promise<void>;
  /** Lets every client finish its current request. */
  stop(): Promise<void>;
}

/**
 * The starts of one container: enough to know that it is stopped and stays so until a client sends
 * the next start.
 */
interface Starts {
  sent: number;
  /** A start is under way, or was never answered. */
  isDoubtful: boolean;
  /** A stop succeeded, and no client has sent a start since. */
  isStopped: boolean;
}

/** The declaration that an answer showed, for `If-Match`. */
interface Read {
  readonly etag: string;
  readonly declared: Declared;
}

/** Desired state after a success of the request; null if its answer does not show it. */
const desiredAfter = ({ kind }: Request): Declared['desired'] =>
  kind === 'start' ? 'running' : kind === 'stop' ? 'stopped' : null;

interface Known {
  readonly ids: string[];
  readonly starts: Map<string, Starts>;
}

interface Worker {
  readonly process: string;
  readonly tenant: string;
  readonly token: string;
  readonly random: Random;
  readonly http: HttpClient;
  readonly onlyReads: boolean;
  readonly pauseMaxMs: number;
  /** Declarations that were read, by container: others may have changed them since. */
  readonly read: Map<string, Read>;
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
  let requests = 0;
  let fillings = 0;

  const remember = (tenant: string, id: string): void => {
    const ids = known.get(tenant)?.ids ?? [];
    if (ids.includes(id)) return;
    ids.push(id);
    if (ids.length > idsRemembered) ids.shift();
  };

  /** Call before a request about a container; call what it returns with the result. */
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

  /** Remembers what was read of a container, with its ETag. */
  const noteRead = ({ read }: Worker, request: Request, heard: Heard, result: Result): void => {
    if (heard.kind !== 'answer' || heard.etag === undefined) return;
    if (result.kind !== 'ok' || result.told.of !== 'container') return;
    const { id, version, host } = result.told.container;
    if (version !== null && host !== null)
      read.set(id, { etag: heard.etag, declared: { version, desired: desiredAfter(request) } });
  };

  const perform = async (worker: Worker, request: Request, etag?: string): Promise<Result> => {
    const { process, tenant, token, http } = worker;
    const withStatus = worker.random.once(2);
    const called = callOf(request, tenant, { withStatus, ...(etag === undefined ? {} : { etag }) });
    const requestId = `${process}-request-${++requests}`;
    const call = { ...called, headers: { ...called.headers, 'x-request-id': requestId } };
    const settle = 'id' in request ? track(tenant, request.kind, request.id) : undefined;
    const invokedMs = performance.now();
    const send = async (): Promise<{ heard: Heard; gateway: Gateway }> => {
      const home = world.gateways[worker.home % world.gateways.length]!;
      const isReady = world.processes.get(home.place)?.isReady?.() ?? true;
      const isAway = !isReady || performance.now() < worker.awayUntilMs;
      const gateway = world.gateways[(worker.home + Number(isAway)) % world.gateways.length]!;
      const heard = await http.send({ baseUrl: gateway.baseUrl, token, ...call });
      return { heard, gateway };
    };
    let { heard, gateway } = await send();
    if (heard.kind === 'broken' && !heard.sent) {
      // The request was not sent, so the other gateway may get the same request.
      leave(worker);
      ({ heard, gateway } = await send());
    }
    const result = resultOf(request, heard, tenant);
    settle?.(result);
    noteRead(worker, request, heard, result);
    const answeredMs = heard.kind === 'answer' ? performance.now() : null;
    operations.push({ process, tenant, request, requestId, invokedMs, answeredMs, result });
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

  /** Switches to the other gateway; a client that is away returns. */
  const leave = (worker: Worker): void => {
    const nowMs = performance.now();
    worker.awayUntilMs = nowMs < worker.awayUntilMs ? nowMs : nowMs + awayMs;
  };

  const anId = ({ tenant, random }: Worker): string | undefined => {
    const ids = known.get(tenant)?.ids ?? [];
    return ids.length === 0 ? undefined : ids[random.below(ids.length)];
  };

  const maybeLarge = ({ tenant, random }: Worker): Pick<Version, 'filling'> =>
    largeTenants.includes(tenant) && random.once(largeOnceIn) ? { filling: ++fillings } : {};

  const create = async (worker: Worker): Promise<void> => {
    const { random } = worker;
    const version = { tag: goodTags[0], ...random.pick(sizes), ...maybeLarge(worker) };
    const idempotencyKey = random.once(2) ? null : `${worker.process}-${++keys}`;
    const name = `c${random.below(namesPerTenant)}`;
    const request: Request = { kind: 'create', name, version, idempotencyKey };
    let result = await perform(worker, request);
    if (idempotencyKey === null) return;
    // Now and then, a client repeats a create that succeeded: the answer must be the same
    // container.
    if (result.kind === 'ok' && random.once(6)) await perform(worker, request);
    for (let repeat = 0; result.kind === 'unknown' && repeat < repeatsOfUnknown && !signal.aborted; repeat++) {
      result = await perform(worker, request);
    }
  };

  const update = async (worker: Worker, id: string): Promise<void> => {
    const { random, tenant } = worker;
    const size = random.once(3) ? random.pick(sizes) : {};
    const change = { tag: random.pick(tagsOf(tenant)), ...size, ...maybeLarge(worker) };
    const read = random.once(2) ? worker.read.get(id) : undefined;
    await perform(worker, { kind: 'patch', id, change, read: read?.declared ?? null }, read?.etag);
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
    if (dice < 51) return void (await perform(worker, { kind: 'delete', id }));
    if (dice < 60 && !worker.onlyReads) return update(worker, id);
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
        read: new Map(),
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
  // `stop` awaits it and throws.
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
