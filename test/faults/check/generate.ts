/**
 * Generates histories that are right by construction: clients send requests in virtual time, each
 * takes effect at one instant between its call and its answer on a sequential tenant, and some
 * answers are lost. Independent of model.ts, which it tests.
 */
import type { Random } from '../../actors/support/random.ts';
import {
  isSameVersion,
  type Declared,
  type History,
  type Operation,
  type Request,
  type Result,
  type Seen,
  type Version,
} from './history.ts';

export interface Shape {
  readonly tenants: number;
  readonly clients: number;
  /** In total. */
  readonly operations: number;
  /** One in so many requests gets no answer; 0 if every one gets one. */
  readonly unknownOneIn: number;
  readonly capContainers: number;
  readonly names: number;
}

interface Kept {
  readonly id: string;
  readonly name: string;
  host: string | null;
  desired: 'running' | 'stopped' | 'removed';
  generation: number;
  version: Version;
  /** `undefined` if no update is under way. */
  previous: Version | undefined;
  update: NonNullable<Seen['update']>;
}

const cpuMillis = 100;
const memBytes = 1000;
const tags = ['1', '2', 'bad'] as const;
const goodTags = ['1', '2'];

class Tenant {
  readonly #kept: Kept[] = [];
  readonly everSeen: string[] = [];
  readonly #keys = new Map<string, string>();
  readonly #cap: number;
  readonly #newId: () => string;

  constructor(cap: number, newId: () => string) {
    this.#cap = cap;
    this.#newId = newId;
  }

  do(request: Request): Result {
    switch (request.kind) {
      case 'create':
        return this.#create(request);
      case 'list':
        return {
          kind: 'ok',
          told: { of: 'list', containers: this.#kept.map((kept) => view(kept, false)).reverse(), isWhole: true },
        };
      case 'quota': {
        const usage = {
          containers: this.#kept.length,
          cpuMillis: this.#kept.reduce((sum, { version, previous }) => {
            return sum + Math.max(version.cpuMillis, previous?.cpuMillis ?? 0);
          }, 0),
          memBytes: this.#kept.length * memBytes,
        };
        return { kind: 'ok', told: { of: 'quota', quota: { usage, caps: capsOf(this.#cap) } } };
      }
      default:
        return this.#toOne(request);
    }
  }

  #create({ name, version, idempotencyKey: key }: Extract<Request, { kind: 'create' }>): Result {
    const earlier = key === null ? undefined : this.#keys.get(key);
    if (earlier !== undefined) {
      const kept = this.#kept.find(({ id }) => id === earlier);
      return kept === undefined ? { kind: 'refused', code: 'conflict' } : ok(view(kept, false));
    }
    if (this.#kept.some((kept) => kept.name === name)) return { kind: 'refused', code: 'invalid', nameTaken: true };
    if (this.#kept.length >= this.#cap) return { kind: 'refused', code: 'over_quota' };
    const started = { host: 'h1', desired: 'running', generation: 2, previous: undefined, update: 'none' } as const;
    const kept: Kept = { id: this.#newId(), name, version, ...started };
    this.#kept.push(kept);
    this.everSeen.push(kept.id);
    if (key !== null) this.#keys.set(key, kept.id);
    return ok(view(kept, false));
  }

  #toOne(request: Extract<Request, { id: string }>): Result {
    const { kind, id } = request;
    const kept = this.#kept.find((one) => one.id === id);
    if (kept === undefined) return { kind: 'refused', code: 'not_found' };
    if (kind === 'get') return ok(view(kept, true));
    if (kept.desired === 'removed') {
      return kind === 'delete' ? ok(view(kept, false)) : { kind: 'refused', code: 'conflict' };
    }
    if (request.kind === 'patch') return this.#patch(kept, request);
    const desired = kind === 'start' ? 'running' : kind === 'stop' ? 'stopped' : 'removed';
    if (kept.desired !== desired) kept.generation++;
    kept.desired = desired;
    if (desired !== 'running' && kept.previous !== undefined) {
      kept.previous = undefined;
      kept.update = 'done';
    }
    return ok(view(kept, false));
  }

  #patch(kept: Kept, { change, read }: Extract<Request, { kind: 'patch' }>): Result {
    const isAsRead = read === null || (isSameVersion(read.version, kept.version) && read.desired === kept.desired);
    if (!isAsRead) return { kind: 'refused', code: 'precondition_failed' };
    const version = { ...kept.version, ...change };
    if (isSameVersion(version, kept.version)) return ok(view(kept, false));
    const previous = kept.previous ?? kept.version;
    const isUnderWay = kept.desired === 'running' && !isSameVersion(version, previous);
    kept.version = version;
    kept.previous = isUnderWay ? previous : undefined;
    kept.update = isUnderWay ? 'under way' : 'done';
    kept.generation++;
    return ok(view(kept, false));
  }

  /** The declaration that a client reads now; null if there is none. */
  declared(id: string): Declared | null {
    const kept = this.#kept.find((one) => one.id === id);
    return kept === undefined || kept.desired === 'removed' ? null : { version: kept.version, desired: kept.desired };
  }

  /** A host confirms a removal or ends an update, or the platform moves a container. */
  live(random: Random): void {
    for (const kept of this.#kept) if (random.once(2)) endUpdate(kept);
    const index = this.#kept.findIndex(({ desired }) => desired === 'removed');
    if (index >= 0) this.#kept.splice(index, 1);
    const moved = this.#kept.find(({ desired, host }) => desired === 'running' && host === 'h1');
    if (moved === undefined || !random.once(10)) return;
    moved.host = 'h2';
    moved.generation++;
  }
}

function endUpdate(kept: Kept): void {
  const { previous, version } = kept;
  if (previous === undefined) return;
  kept.previous = undefined;
  kept.update = goodTags.includes(version.tag) ? 'done' : 'rolled back';
  if (kept.update === 'done') return;
  kept.version = previous;
  kept.generation++;
}

const view = ({ id, name, host, desired, generation, version, update }: Kept, isStatus: boolean): Seen => ({
  id,
  name: isStatus ? null : name,
  version: isStatus ? null : version,
  update: isStatus ? update : null,
  host,
  isRemoving: desired === 'removed',
  desired: isStatus ? desired : null,
  generation: isStatus ? generation : null,
});

const ok = (container: Seen): Result => ({ kind: 'ok', told: { of: 'container', container } });
const capsOf = (containers: number): History['caps'] => ({ containers, cpuMillis: null, memBytes: null });

/** Something that happens at an instant. */
interface Event {
  readonly atMs: number;
  readonly happen: () => void;
}

export function generate(random: Random, shape: Shape): History {
  const events: Event[] = [];
  const at = (atMs: number, happen: () => void): void => {
    // Few events wait at a time, so a sorted array is quick enough.
    const index = events.findLastIndex((event) => event.atMs <= atMs);
    events.splice(index + 1, 0, { atMs, happen });
  };
  const some = (ms: number): number => (random.below(ms * 1000) + 1) / 1000;
  let made = 0;
  const operations: Operation[] = [];
  for (let number = 0; number < shape.tenants; number++) {
    const name = `t${number}`;
    const tenant = new Tenant(shape.capContainers, () => `c${++made}`);
    let left = Math.floor(shape.operations / shape.tenants);
    const live = (atMs: number): void => {
      tenant.live(random);
      if (left > 0) at(atMs + some(40), () => live(atMs + 40));
    };
    at(20, () => live(20));
    for (let client = 0; client < shape.clients; client++) {
      const call = (invokedMs: number): void => {
        if (left-- <= 0) return;
        const request = requestFrom(random, tenant, shape, () => `k${++made}`);
        const isUnknown = shape.unknownOneIn > 0 && random.once(shape.unknownOneIn);
        const record = (answeredMs: number | null, result: Result): void => {
          operations.push({ process: `${name}-${client}`, tenant: name, request, invokedMs, answeredMs, result });
        };
        const doneMs = invokedMs + some(isUnknown ? 40 : 6);
        const answeredMs = doneMs + some(4);
        let result: Result | undefined;
        if (!isUnknown || !random.once(2)) at(doneMs, () => (result = tenant.do(request)));
        at(isUnknown ? invokedMs + 10 : answeredMs, () => {
          if (isUnknown) record(random.once(2) ? null : invokedMs + 10, { kind: 'unknown', why: 'timeout' });
          else if (result !== undefined) record(answeredMs, result);
        });
        const nextMs = Math.max(answeredMs, invokedMs + 10) + some(8);
        at(nextMs, () => call(nextMs));
      };
      const firstMs = some(5);
      at(firstMs, () => call(firstMs));
    }
  }
  for (let event = events.shift(); event !== undefined; event = events.shift()) event.happen();
  return { caps: capsOf(shape.capContainers), goodTags, operations };
}

function requestFrom(random: Random, tenant: Tenant, shape: Shape, newKey: () => string): Request {
  const dice = random.below(20);
  if (dice < 5 || tenant.everSeen.length === 0) {
    const name = `n${random.below(shape.names)}`;
    const idempotencyKey = random.once(4) ? newKey() : null;
    return { kind: 'create', name, version: { tag: '1', cpuMillis, memBytes }, idempotencyKey };
  }
  if (dice < 8) return { kind: 'list' };
  if (dice < 9) return { kind: 'quota' };
  const recent = tenant.everSeen.slice(-2 * shape.capContainers);
  const id = recent[random.below(recent.length)] ?? '';
  if (dice < 12) return { kind: 'get', id };
  if (dice < 15) {
    const change = random.once(4)
      ? { cpuMillis: random.once(2) ? cpuMillis : 2 * cpuMillis }
      : { tag: random.pick(tags) };
    return { kind: 'patch', id, change, read: random.once(3) ? tenant.declared(id) : null };
  }
  return { kind: random.pick(['start', 'stop', 'stop', 'delete'] as const), id };
}
