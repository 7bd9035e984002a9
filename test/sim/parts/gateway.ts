/**
 * A gateway in virtual time: its own client of the partitions, and tenants whose requests it
 * carries and who record the answers.
 */
import { Answers } from '../../../lib/nats/answers.ts';
import { PartitionClient, type LaneKind, type Outcome, type Question } from '../../../lib/rpc/partition-client.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import type { ContainerId, OperationId, TenantId } from '../../../schemas/ids.ts';
import { quietLog, specOf } from '../../actors/support.ts';
import type { Random } from '../../actors/support/random.ts';
import {
  seenOf,
  type Amounts,
  type History,
  type Operation,
  type Request,
  type Result,
  type Version,
} from '../../faults/check/history.ts';
import { leavesLine } from '../../../schemas/wire/audit.ts';
import { variables } from '../scarce.ts';
import { causeOf } from './audit.ts';
import { badTag } from './engine.ts';
import type { Nats } from '../world/nats.ts';
import type { Process, World } from '../world/time.ts';

export interface GatewayOptions {
  readonly world: World;
  readonly nats: Nats;
  readonly name: string;
  readonly partitions: number;
  readonly newToken: () => string;
  /** Some containers have as many variables as a record holds, and some have more. */
  readonly hasLarge: boolean;
}

export const requestDeadlineMs = 4000;

/** The version of each new container. */
export const first: Version = { tag: '1', cpuMillis: 100, memBytes: 16 * 1024 * 1024 };
const tags = ['1', '2', '3', badTag] as const;
const cpus = [50, 100, 200] as const;

export class Gateway {
  readonly process: Process;
  readonly #options: GatewayOptions;
  readonly #client: PartitionClient;
  /** Requests whose write was answered, and so left a line in the audit. */
  readonly audited = new Map<string, string>();

  constructor(options: GatewayOptions) {
    const { world, nats, name, partitions } = options;
    this.#options = options;
    this.process = world.process(name);
    const connection = nats.connect(this.process);
    this.#client = new PartitionClient({
      requestDeadlineMs,
      clock: this.process.clock,
      log: quietLog,
      meters: { batch: () => {}, retry: () => {} },
      answers: new Answers(this.process.clock),
    });
    world.as(this.process, () => this.#client.open(connection.asClient, partitions));
  }

  async ask(kind: LaneKind, question: Question): Promise<Outcome> {
    const outcome = await this.#client.ask(kind, question, this.#options.world.nowMs + requestDeadlineMs);
    const { code } = outcome;
    const isAudited = 'cause' in question && question.cause !== undefined;
    if (isAudited && leavesLine(code, question.type) && code !== 'rate_limited')
      this.audited.set(question.rid, `${question.type}: ${code}`);
    return outcome;
  }

  /** One HTTP request of a tenant, with the asks that the handlers make of it. */
  async request(tenant: TenantId, request: Request, isStatus = true): Promise<Result> {
    const { newToken, hasLarge } = this.#options;
    const asker = { tenant, rid: newToken() };
    const op = newToken() as OperationId;
    const cause = causeOf(tenant, request.kind);
    switch (request.kind) {
      case 'create': {
        const { name, idempotencyKey: key } = request;
        const idempotency = key === null ? null : { key, bodyHash: name };
        const id = newToken() as ContainerId;
        const spec = specOf(name, hasLarge ? { env: environmentOf(name) } : {});
        const ask = { type: 'container.create', ...asker, op, cause, id, spec, idempotency } as const;
        return resultOf(request, await this.ask('write', ask));
      }
      case 'start':
      case 'stop':
      case 'delete': {
        const id = request.id as ContainerId;
        return resultOf(
          request,
          await this.ask('write', { type: `container.${request.kind}`, ...asker, op, cause, id }),
        );
      }
      case 'patch': {
        const { tag, cpuMillis } = request.change;
        const patch = {
          ...(tag === undefined ? {} : { tag }),
          ...(cpuMillis === undefined ? {} : { cpu_limit: String(cpuMillis / 1000) }),
        };
        const id = request.id as ContainerId;
        return resultOf(request, await this.ask('write', { type: 'container.update', ...asker, op, cause, id, patch }));
      }
      case 'get': {
        const id = request.id as ContainerId;
        const type = isStatus ? 'container.status' : 'container.get';
        return resultOf(request, await this.ask('read', { type, ...asker, id }));
      }
      case 'list':
        return resultOf(
          request,
          await this.ask('read', { type: 'container.list', ...asker, limit: 100, before: null }),
        );
      case 'quota':
        return resultOf(request, await this.ask('read', { type: 'tenant.quota', ...asker, region: '*' }));
    }
  }
}

/** Variables by the container's name: `n4` has the largest that are allowed, `n5` larger ones. */
function environmentOf(name: string): Record<string, string> {
  if (name === 'n4') return { A: 'x'.repeat(variables.most) };
  return name === 'n5' ? { A: 'x'.repeat(variables.tooMany) } : {};
}

type View = Parameters<typeof seenOf>[0];

function resultOf(request: Request, { code, body }: Outcome): Result {
  switch (code) {
    case 'ok':
    case 'created':
    case 'accepted': {
      const answer = JSON.parse(body) as { readonly data: unknown; readonly next_cursor?: string };
      return { kind: 'ok', told: toldOf(request, answer) };
    }
    case 'timeout':
    case 'internal':
      return { kind: 'unknown', why: code };
    case 'invalid':
      return { kind: 'refused', code, nameTaken: body.includes('"name"') };
    default:
      return { kind: 'refused', code };
  }
}

function toldOf(request: Request, answer: { readonly data: unknown; readonly next_cursor?: string }) {
  switch (request.kind) {
    case 'list': {
      const containers = (answer.data as readonly View[]).map(seenOf);
      return { of: 'list', containers, isWhole: answer.next_cursor === undefined } as const;
    }
    case 'quota': {
      const { usage, caps } = answer.data as {
        readonly usage: Record<string, number>;
        readonly caps: Record<string, number | null>;
      };
      const amounts = <T>(from: Record<string, T>): { readonly [Dimension in keyof Amounts]: T } => ({
        containers: from['containers'] as T,
        cpuMillis: from['cpu_millis'] as T,
        memBytes: from['mem_bytes'] as T,
      });
      return { of: 'quota', quota: { usage: amounts(usage), caps: amounts(caps) } } as const;
    }
    default:
      return { of: 'container', container: seenOf(answer.data as View) } as const;
  }
}

export interface Scribe {
  readonly operations: Operation[];
  /** Containers that a client received in an answer, by tenant, oldest first. */
  readonly known: Map<TenantId, string[]>;
  /** Containers whose removal a client at least requested. */
  readonly unwanted: Set<string>;
}

export const createScribe = (unwanted = new Set<string>()): Scribe => ({
  operations: [],
  known: new Map(),
  unwanted,
});

export const historyOf = ({ operations }: Scribe, caps: History['caps']): History => ({
  caps,
  // A host that is to prepare a version for a move may not get round to it.
  goodTags: [],
  startsAgain: true,
  moves: true,
  operations,
});

/** Asks and records the outcome, including for an ask without an answer because the world ends. */
export async function record(
  scribe: Scribe,
  gateway: Gateway,
  world: World,
  process: string,
  tenant: TenantId,
  request: Request,
  isStatus = true,
): Promise<Result> {
  const invokedMs = world.nowMs;
  if (request.kind === 'delete') scribe.unwanted.add(request.id);
  const index = scribe.operations.length;
  const open = { process, tenant, request, invokedMs };
  scribe.operations.push({ ...open, answeredMs: null, result: { kind: 'unknown', why: 'never answered' } });
  const result = await gateway.request(tenant, request, isStatus);
  scribe.operations[index] = { ...open, answeredMs: world.nowMs, result };
  if (result.kind === 'ok') remember(scribe, tenant, result);
  return result;
}

function remember({ known }: Scribe, tenant: TenantId, { told }: Extract<Result, { kind: 'ok' }>): void {
  const ids =
    told.of === 'container' ? [told.container.id] : told.of === 'list' ? told.containers.map(({ id }) => id) : [];
  const all = known.get(tenant) ?? [];
  for (const id of ids) if (!all.includes(id)) all.push(id);
  known.set(tenant, all);
}

/** Sends random requests one after another until it is stopped. */
export async function live(
  random: Random,
  scribe: Scribe,
  gateway: Gateway,
  world: World,
  name: string,
  tenants: readonly TenantId[],
  isOver: () => boolean,
): Promise<void> {
  let keys = 0;
  while (!isOver()) {
    const tenant = tenants[random.below(tenants.length)] ?? tenants[0];
    if (tenant === undefined) return;
    const request = requestFrom(random, scribe.known.get(tenant) ?? [], () => `${name}-${keys++}`);
    const result = await record(scribe, gateway, world, name, tenant, request, !random.once(4));
    // A client without an answer repeats its request under the same key; some with an answer do so
    // too.
    const isKeyed = request.kind === 'create' && request.idempotencyKey !== null;
    if (isKeyed && (result.kind === 'unknown' || random.once(4))) {
      await record(scribe, gateway, world, name, tenant, request);
    }
    await sleep(1 + random.below(80));
  }
}

function requestFrom(random: Random, known: readonly string[], newKey: () => string): Request {
  const dice = random.below(20);
  const recent = known.slice(-8);
  const id = recent[random.below(recent.length)];
  if (dice < 5 || id === undefined) {
    const idempotencyKey = random.once(2) ? newKey() : null;
    return { kind: 'create', name: `n${random.below(6)}`, version: first, idempotencyKey };
  }
  if (dice < 8) return { kind: 'list' };
  if (dice < 9) return { kind: 'quota' };
  if (dice < 13) return { kind: 'get', id };
  if (dice < 16) {
    const change = random.once(4) ? { cpuMillis: random.pick(cpus) } : { tag: random.pick(tags) };
    return { kind: 'patch', id, change, read: null };
  }
  return { kind: random.pick(['start', 'stop', 'stop', 'start', 'delete'] as const), id };
}
