/** Which containers this host takes: the sum of their limits against its capacity. Pure. */
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
  const used = { cpu_millis: 0, mem_bytes: 0, containers: 0 };
  for (const { container, present } of ranked) {
    if (container.desired === 'removed' && !present) continue;
    const { cpu_millis, mem_bytes } = container;
    const fits =
      used.containers + 1 <= capacity.containers &&
      used.cpu_millis + cpu_millis <= capacity.cpu_millis &&
      used.mem_bytes + mem_bytes <= capacity.mem_bytes;
    if (!present && !fits) continue;
    admitted.add(container.id);
    used.containers += 1;
    used.cpu_millis += cpu_millis;
    used.mem_bytes += mem_bytes;
  }
  return { admitted, used };
}
