/**
 * Counts the resources that the partitions of this process have placed on each host, and the moves
 * off it.
 */
import type { Capacity } from '../../schemas/api/host.ts';
import type { HostKey } from '../../schemas/ids.ts';
import type { PlacedAmounts, PlacementLedger } from '../domain/state.ts';

interface Placed {
  cpuMillis: number;
  memBytes: number;
  ports: number;
  containers: number;
}

export class Placements implements PlacementLedger {
  readonly #placed = new Map<HostKey, Placed>();
  readonly #leaving = new Map<HostKey, number>();

  /**
   * The resources in use on a host: those placed there, or the host's own count if that is more.
   * Other processes place there too, and their part shows in that count alone.
   */
  used(host: HostKey, counted: Capacity | undefined): Capacity {
    const placed = this.#placed.get(host);
    return {
      cpu_millis: Math.max(placed?.cpuMillis ?? 0, counted?.cpu_millis ?? 0),
      mem_bytes: Math.max(placed?.memBytes ?? 0, counted?.mem_bytes ?? 0),
      containers: Math.max(placed?.containers ?? 0, counted?.containers ?? 0),
    };
  }

  /** Ports of all containers that were placed there. */
  ports(host: HostKey): number {
    return this.#placed.get(host)?.ports ?? 0;
  }

  leaving(host: HostKey): number {
    return this.#leaving.get(host) ?? 0;
  }

  /** All moves under way. */
  moving(): number {
    let sum = 0;
    for (const count of this.#leaving.values()) sum += count;
    return sum;
  }

  leave(host: HostKey, count: number): void {
    const left = this.leaving(host) + count;
    if (left === 0) this.#leaving.delete(host);
    else this.#leaving.set(host, left);
  }

  add(host: HostKey, { cpuMillis, memBytes, ports }: PlacedAmounts): void {
    const placed = this.#placed.get(host);
    if (placed === undefined) {
      this.#placed.set(host, { cpuMillis, memBytes, ports, containers: 1 });
      return;
    }
    placed.cpuMillis += cpuMillis;
    placed.memBytes += memBytes;
    placed.ports += ports;
    placed.containers++;
  }

  subtract(host: HostKey, { cpuMillis, memBytes, ports }: PlacedAmounts, containers = 1): void {
    const placed = this.#placed.get(host);
    if (placed === undefined) return;
    placed.cpuMillis -= cpuMillis;
    placed.memBytes -= memBytes;
    placed.ports -= ports;
    placed.containers -= containers;
    if (placed.containers === 0) this.#placed.delete(host);
  }
}
