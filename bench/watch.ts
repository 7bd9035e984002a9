/**
 * The cost of clients that watch a tenant, to its owner and to their gateway: of a change, and of a
 * snapshot of all. An owner's memory and a gateway's streams in one process, without NATS and
 * sockets.
 */
import { setImmediate } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { watchPageBytes } from '../actors/domain/container/overview.ts';
import { decideRead } from '../actors/domain/decide.ts';
import type { PartitionState } from '../actors/domain/state.ts';
import type { TurnContext } from '../actors/domain/turn.ts';
import { createMeters } from '../gateway/metrics.ts';
import { StreamHost } from '../gateway/streams/host.ts';
import { watchHandler } from '../gateway/streams/watch.ts';
import type { AskOwner } from '../lib/rpc/partition-client.ts';
import { Permits } from '../lib/permits.ts';
import { within } from '../lib/time/backoff.ts';
import { systemClock } from '../lib/time/clock.ts';
import type { ContainerRecord } from '../schemas/api/container.ts';
import type { TenantId } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import { anyCall, callOf, exchangeOf } from '../test/gateway/calls.ts';
import { quietLog } from '../test/gateway/support.ts';
import { collectGarbage, collectNow } from '../test/support/garbage.ts';
import type { Table } from './section.ts';
import { figure, median } from './statistics.ts';

/** A tenant of a partition, and one of its containers. */
export interface Watched {
  readonly state: PartitionState;
  readonly context: TurnContext;
  readonly tenant: TenantId;
  readonly one: ContainerRecord;
}

const clientCounts = [1, 100, 1_000] as const;
/** Pages of a snapshot between two looks at the memory. */
const pagesBetween = 50;
const deadlineMs = 60_000;
/** In which the name of a frame stands. */
const headChars = 64;
const MiB = 1024 ** 2;
const noFilters = { status: undefined, name: undefined, project: undefined, host_key: undefined, label: undefined };

/** A gateway whose clients take all that it writes. */
class Gateway {
  looks = 0;
  ownerMs = 0;
  writtenChars = 0;
  /** Called after each look with how many there were. */
  onLook: (looks: number) => void = () => {};
  /** Called with each text that is written to a client. */
  onText: (text: string) => void = () => {};
  readonly #watched: Watched;
  readonly #rings = new Set<() => void>();
  readonly #clients: Promise<unknown>[] = [];
  readonly #streams: StreamHost;
  readonly #handler: ReturnType<typeof watchHandler>;

  constructor(watched: Watched) {
    this.#watched = watched;
    const all = Number.MAX_SAFE_INTEGER;
    this.#streams = new StreamHost({
      permits: new Permits({ inAll: all, perClient: all, perTenant: all }),
      listen: (_subject, ring) => {
        this.#rings.add(ring);
        return () => this.#rings.delete(ring);
      },
      clock: systemClock,
      log: quietLog,
      meters: createMeters(new Registry()),
      stillGood: () => true,
      polls: { streamMs: deadlineMs, waitMs: deadlineMs },
    });
    this.#handler = watchHandler({ ask: this.#ask, streams: this.#streams, clock: systemClock });
  }

  readonly #ask: AskOwner = async (_lane, question) => {
    if (question.type !== 'container.watch') throw new Error(`${question.type} is not expected`);
    const startMs = performance.now();
    const { state, context } = this.#watched;
    const { reply } = decideRead(state, { ...question, budgetMs: limits.watchAskMs }, context);
    this.ownerMs += performance.now() - startMs;
    this.onLook(++this.looks);
    // An answer comes in a later turn than its ask.
    await setImmediate();
    return { code: reply.code, body: reply.body };
  };

  /** @param lastEventId absent: it gets all first */
  join(lastEventId?: string): void {
    const sink = {
      write: (text: string): boolean => {
        this.writtenChars += text.length;
        this.onText(text);
        return true;
      },
      onDrain: () => {},
      end: () => {},
    };
    const headers = lastEventId === undefined ? {} : { lastEventId };
    const exchange = { ...exchangeOf({ headers }), stream: () => sink };
    const identity = anyCall.identity && { ...anyCall.identity, tenant: this.#watched.tenant };
    const call = callOf('container.watch', { identity, query: noFilters, exchange });
    this.#clients.push(Promise.resolve(this.#handler(call)));
  }

  /** Resolves when as many texts have been written that begin with such a frame. */
  told(event: 'item' | 'synced', times: number): Promise<void> {
    const told = new Promise<void>((resolve) => {
      let left = times;
      this.onText = (text) => {
        if (text.slice(0, headChars).includes(`event: ${event}`) && --left === 0) resolve();
      };
    });
    return within(told, deadlineMs, `${times} frames "${event}"`);
  }

  ring(): void {
    for (const ring of this.#rings) ring();
  }

  async stop(): Promise<void> {
    this.#streams.endStreams();
    await Promise.all(this.#clients);
  }
}

interface ChangeCost {
  readonly looks: number;
  readonly ownerMs: number;
  readonly gatewayMs: number;
  /** Of one client. */
  readonly heldBytes: number;
}

const heapBytes = async (): Promise<number> => {
  await collectGarbage();
  return process.memoryUsage().heapUsed;
};

async function changeCost(watched: Watched, clients: number, runs: number): Promise<ChangeCost> {
  const { state, one } = watched;
  const gateway = new Gateway(watched);
  const before = await heapBytes();
  const joined = gateway.told('synced', clients);
  for (let client = 0; client < clients; client++) gateway.join(`${state.epoch}.${state.itemRevision}`);
  await joined;
  const heldBytes = ((await heapBytes()) - before) / clients;
  const costs: Omit<ChangeCost, 'heldBytes'>[] = [];
  for (let run = 0; run < 2 * runs; run++) {
    await setImmediate();
    const { looks, ownerMs } = gateway;
    const told = gateway.told('item', clients);
    const startMs = performance.now();
    state.put({ ...one, spec: { ...one.spec, labels: { run: String(run) } } });
    const putMs = performance.now() - startMs;
    gateway.ring();
    await told;
    const wholeMs = performance.now() - startMs;
    const ofOwnerMs = putMs + gateway.ownerMs - ownerMs;
    costs.push({ looks: gateway.looks - looks, ownerMs: ofOwnerMs, gatewayMs: wholeMs - ofOwnerMs });
  }
  state.put(one);
  await gateway.stop();
  // Code is slow until it is compiled.
  const warm = costs.slice(runs);
  return {
    looks: Math.max(...costs.map(({ looks }) => looks)),
    ownerMs: median(warm.map(({ ownerMs }) => ownerMs)),
    gatewayMs: median(warm.map(({ gatewayMs }) => gatewayMs)),
    heldBytes,
  };
}

interface SnapshotCost {
  readonly looks: number;
  readonly ownerMs: number;
  readonly gatewayMs: number;
  readonly mostHeldBytes: number;
  readonly chars: number;
}

/** Of one client. */
async function snapshotCost(watched: Watched): Promise<SnapshotCost> {
  const timed = async (onLook: (looks: number) => void): Promise<readonly [Gateway, wholeMs: number]> => {
    const gateway = new Gateway(watched);
    gateway.onLook = onLook;
    const startMs = performance.now();
    const synced = gateway.told('synced', 1);
    gateway.join();
    await synced;
    const wholeMs = performance.now() - startMs;
    await gateway.stop();
    return [gateway, wholeMs];
  };
  const before = await heapBytes();
  let most = before;
  await timed((looks) => {
    if (looks % pagesBetween !== 1) return;
    collectNow();
    most = Math.max(most, process.memoryUsage().heapUsed);
  });
  const [{ looks, ownerMs, writtenChars }, wholeMs] = await timed(() => {});
  return { looks, ownerMs, gatewayMs: wholeMs - ownerMs, mostHeldBytes: most - before, chars: writtenChars };
}

/** @param containers of the tenant */
export async function watchTable(watched: Watched, containers: number, runs: number): Promise<Table> {
  // Code is slow until it is compiled.
  await changeCost(watched, 1, runs);
  const changes: ChangeCost[] = [];
  for (const clients of clientCounts) changes.push(await changeCost(watched, clients, runs));
  const snapshot = await snapshotCost(watched);
  const ofChange = (name: string, cell: (cost: ChangeCost) => string): string[] => [
    `a change: ${name}`,
    ...changes.map(cell),
  ];
  const ofSnapshot = (name: string, cell: string): string[] => [
    `a snapshot of all: ${name}`,
    ...clientCounts.map((count) => (count === 1 ? cell : '–')),
  ];
  return {
    title: `Clients that watch one tenant with ${containers.toLocaleString('en')} containers`,
    columns: [
      '',
      ...clientCounts.map((count) => `${count.toLocaleString('en')} ${count === 1 ? 'client' : 'clients'}`),
    ],
    rows: [
      ofChange('looks at the owner', ({ looks }) => String(looks)),
      ofChange('owner, ms', ({ ownerMs }) => figure(ownerMs)),
      ofChange('gateway, ms', ({ gatewayMs }) => figure(gatewayMs)),
      ofSnapshot('looks at the owner', String(snapshot.looks)),
      ofSnapshot('owner, ms', figure(snapshot.ownerMs)),
      ofSnapshot('gateway, ms', figure(snapshot.gatewayMs)),
      ofSnapshot('MiB sent', figure(snapshot.chars / MiB)),
      ofSnapshot('MiB held meanwhile', figure(snapshot.mostHeldBytes / MiB)),
    ],
    remarks: [
      `An owner’s memory and a gateway’s streams in one process, without NATS, and with clients that take all that is written: what sockets cost is not in it. Changes: median of ${runs} runs with warm code. A gateway lets a tenant have ${limits.streamsPerTenant} streams; here that bound is off.`,
      `Pages have at most ${watchPageBytes / 1024} KiB. Held meanwhile: the heap after garbage is collected between pages, over that before. A client that waits holds ${figure((changes.at(-1)?.heldBytes ?? NaN) / 1024)} KiB.`,
    ],
  };
}
