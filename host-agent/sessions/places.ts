/** How many sessions a host and each of its containers may have: exact, since the agent counts. */
import type { ContainerId } from '../../schemas/ids.ts';

export interface SessionPlaces {
  /** @returns how to give the place back, or why there is none */
  take(id: ContainerId): (() => void) | string;
}

export function createSessionPlaces({
  perHost,
  perContainer,
}: {
  readonly perHost: number;
  readonly perContainer: number;
}): SessionPlaces {
  const taken = new Map<ContainerId, number>();
  let inAll = 0;
  return {
    take: (id) => {
      if (inAll >= perHost) return `the host has ${perHost} sessions; close one`;
      const count = taken.get(id) ?? 0;
      if (count >= perContainer) return `the container has ${perContainer} sessions; close one`;
      inAll++;
      taken.set(id, count + 1);
      return () => {
        inAll--;
        const left = (taken.get(id) ?? 1) - 1;
        if (left === 0) taken.delete(id);
        else taken.set(id, left);
      };
    },
  };
}
