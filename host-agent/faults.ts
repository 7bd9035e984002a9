/**
 * Faults of the whole host, as opposed to one container. The log names each once; the metrics and
 * every heartbeat show it to the operator until it is over.
 */
import type { Log } from '../lib/log.ts';
import type { HostFault } from '../schemas/api/host.ts';
import { limits } from '../schemas/limits.ts';

export const faultKinds = [
  'state_unwritable',
  'engine_degraded',
  'cloned_state',
  'disk_pressure',
  'disk_unmeasured',
  'container_firewall',
  'tenant_network',
  'mesh',
  'tenant_range_overlaps',
  'vpn_server',
  'control_plane_behind',
] as const;
export type FaultKind = (typeof faultKinds)[number];

export interface Faults {
  /** The first message of a kind stays until the fault is over. */
  raise(kind: FaultKind, message: string): void;
  /** Raises the fault, or replaces its message. */
  restate(kind: FaultKind, message: string): void;
  clear(kind: FaultKind): void;
  list(): HostFault[];
}

export function createFaults(log: Log): Faults {
  const raised = new Map<FaultKind, string>();
  const restate: Faults['restate'] = (kind, message) => {
    const isNew = !raised.has(kind);
    raised.set(kind, message.slice(0, limits.hostFaultChars));
    if (isNew) log.error('host_fault_raised', { kind, message });
  };
  return {
    raise: (kind, message) => {
      if (!raised.has(kind)) restate(kind, message);
    },
    restate,
    clear: (kind) => {
      if (raised.delete(kind)) log.warn('host_fault_cleared', { kind });
    },
    list: () => [...raised].slice(0, limits.hostFaults).map(([kind, message]) => ({ kind, message })),
  };
}
