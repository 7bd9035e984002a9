/**
 * Decides which containers this host takes: it compares the sum of their limits with its capacity.
 * `admit` is the rule; `Admissions` keeps its result, and applies it again only to what has changed
 * while all containers fit, since then their order does not matter.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Capacity } from '../../schemas/api/host.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';

export interface Admission {
  readonly admitted: ReadonlySet<ContainerId>;
  readonly used: Capacity;
}

/**
 * Containers on the host keep their place; then first placed, first served. A stopped container
 * keeps its place like a running one, so that its start is never refused; one in removal keeps it
 * until it is gone.
 */
export function admit(
  containers: Iterable<DesiredContainer>,
  isPresent: (id: ContainerId) => boolean,
  capacity: Capacity,
): Admission {
  const ranked = [...containers]
    .map((container) => ({ container, present: isPresent(container.id) }))
    .sort(
      (left, right) =>
        Number(right.present) - Number(left.present) ||
        left.container.placement - right.container.placement ||
        (left.container.id < right.container.id ? -1 : 1),
    );
  const admitted = new Set<ContainerId>();
  let used = nothing;
  for (const { container, present } of ranked) {
    if (container.desired === 'removed' && !present) continue;
    const next = counted(used, amountsOf(container), 1);
    if (!present && !fits(next, capacity)) continue;
    admitted.add(container.id);
    used = next;
  }
  return { admitted, used };
}

/** The use of an empty host. */
export const nothing: Capacity = { cpu_millis: 0, mem_bytes: 0, containers: 0 };

const fits = (used: Capacity, capacity: Capacity): boolean =>
  used.cpu_millis <= capacity.cpu_millis &&
  used.mem_bytes <= capacity.mem_bytes &&
  used.containers <= capacity.containers;

type Amounts = Pick<DesiredContainer, 'cpu_millis' | 'mem_bytes'>;

/** During an update either version may run, so the larger amount of the two counts. */
const amountsOf = ({ cpu_millis, mem_bytes, update }: DesiredContainer): Amounts => ({
  cpu_millis: Math.max(cpu_millis, update?.previous.cpu_millis ?? 0),
  mem_bytes: Math.max(mem_bytes, update?.previous.mem_bytes ?? 0),
});

/** `used` with this container added (1) or taken away (-1). */
export const counted = (used: Capacity, { cpu_millis, mem_bytes }: Amounts, sign: 1 | -1): Capacity => ({
  cpu_millis: used.cpu_millis + sign * cpu_millis,
  mem_bytes: used.mem_bytes + sign * mem_bytes,
  containers: used.containers + sign,
});

/** The input of `Admissions.judge`. */
export interface Candidates {
  readonly containers: () => readonly DesiredContainer[];
  readonly get: (id: ContainerId) => DesiredContainer | undefined;
  readonly isPresent: (id: ContainerId) => boolean;
  readonly capacity: Capacity;
}

export class Admissions {
  #used = nothing;
  #capacity = nothing;
  #hasRefused = false;
  /** The admitted containers, with the amounts that each was counted with. */
  readonly #admitted = new Map<ContainerId, Amounts>();

  has(id: ContainerId): boolean {
    return this.#admitted.has(id);
  }

  used(): Capacity {
    return this.#used;
  }

  /**
   * @param touched containers that may have changed, appeared or gone; `undefined` for all
   * @returns the ids of the newly admitted
   */
  judge(touched: Iterable<ContainerId> | undefined, candidates: Candidates): ContainerId[] {
    const isKnown = isDeepStrictEqual(candidates.capacity, this.#capacity) && !this.#hasRefused;
    this.#capacity = candidates.capacity;
    return (
      (isKnown && touched !== undefined ? this.#judgeSome(touched, candidates) : undefined) ??
      this.#judgeAll(candidates)
    );
  }

  /** `undefined` if they do not fit together. */
  #judgeSome(touched: Iterable<ContainerId>, { get, isPresent, capacity }: Candidates): ContainerId[] | undefined {
    const fresh: ContainerId[] = [];
    for (const id of touched) {
      const before = this.#admitted.get(id);
      const container = get(id);
      const counts =
        container !== undefined && (container.desired !== 'removed' || isPresent(id) || before !== undefined);
      if (before !== undefined) this.#used = counted(this.#used, before, -1);
      if (!counts) {
        this.#admitted.delete(id);
        continue;
      }
      const amounts = amountsOf(container);
      this.#used = counted(this.#used, amounts, 1);
      this.#admitted.set(id, amounts);
      if (before === undefined) fresh.push(id);
    }
    if (fits(this.#used, capacity)) return fresh;
    // The newest are refused first, and these were not admitted before.
    for (const id of fresh) this.#admitted.delete(id);
    return undefined;
  }

  #judgeAll({ containers, get, isPresent, capacity }: Candidates): ContainerId[] {
    // An admitted container keeps its place, even while its image is still being pulled.
    const keepsPlace = (id: ContainerId): boolean => isPresent(id) || this.#admitted.has(id);
    const all = containers();
    const { admitted, used } = admit(all, keepsPlace, capacity);
    const fresh = [...admitted].filter((id) => !this.#admitted.has(id));
    this.#admitted.clear();
    for (const id of admitted) {
      const container = get(id);
      if (container !== undefined) this.#admitted.set(id, amountsOf(container));
    }
    this.#used = used;
    this.#hasRefused = admitted.size < all.length;
    return fresh;
  }
}
