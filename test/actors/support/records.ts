/** Records, fleets and turns for tests of decisions. */
import { PartitionState, type PartitionView, type PlacementLedger } from '../../../actors/domain/state.ts';
import { applyHeard } from '../../../actors/domain/domain.ts';
import type { StateRecord } from '../../../actors/domain/records.ts';
import type { Changes, FleetHost, FleetView, HostCondition, TurnContext } from '../../../actors/domain/turn.ts';
import type { ContainerRecord, Observation } from '../../../schemas/api/container.ts';
import type { Capacity, HostRecord } from '../../../schemas/api/host.ts';
import type { HostKey, Region } from '../../../schemas/ids.ts';
import { defaultHostCeiling } from '../../../schemas/limits.ts';
import type { ReportItem } from '../../../schemas/wire/host.ts';
import { containerId, hostKey, specOf, tenantId } from '../support.ts';

export const acme = tenantId('acme');
export const region = (name: string): Region => name as Region;
export const [h1, h2, h3] = [hostKey('h1'), hostKey('h2'), hostKey('h3')];
export const roomy: Capacity = { cpu_millis: 64_000, mem_bytes: 64 * 1024 ** 3, containers: 500 };
export const none: Capacity = { cpu_millis: 0, mem_bytes: 0, containers: 0 };

export const fleetHost = (key: HostKey, more: Partial<FleetHost> = {}): FleetHost => ({
  key,
  region: region('default'),
  condition: 'up',
  schedulable: true,
  draining: false,
  hasEngine: true,
  isSound: true,
  capacity: roomy,
  used: none,
  freePorts: null,
  freeDiskBytes: null,
  ...more,
});

/** Public key of the agent that is enrolled for a host. */
export const agentKeyOf = (host: HostKey): string => `U${host.toUpperCase()}`;

export function fleetOf(...hosts: readonly FleetHost[]): FleetView {
  const find = (key: HostKey) => hosts.find((host) => host.key === key);
  return {
    host: find,
    condition: (key): HostCondition => find(key)?.condition ?? 'removed',
    enrolledKey: (key) => (find(key) === undefined ? undefined : agentKeyOf(key)),
    lastHeardMs: () => null,
    beat: () => null,
    ceiling: defaultHostCeiling,
    mayLeave: () => true,
    hostsIn: (wanted) => hosts.filter((host) => host.region === wanted).map(({ key }) => key),
    server: () => undefined,
    servers: () => [],
  };
}

export const noLedger: PlacementLedger = { add: () => {}, subtract: () => {}, leave: () => {} };

export const contextOf = (fleet: FleetView, nowMs = 1_000_000, servedMs = nowMs): TurnContext => ({
  cluster: 'c',
  nowMs,
  expiryMs: nowMs,
  servedMs,
  fleet,
  requestId: 'r',
});

export const observation = (status: Observation['status'], more: Partial<Observation> = {}): Observation => ({
  status,
  reason: null,
  message: null,
  exit_code: null,
  restart_count: 0,
  next_retry_at: null,
  started_at: null,
  addresses: [],
  ...more,
});

export const unplaced: ContainerRecord['placement'] = { phase: 'unplaced' };
export const placedOn = (
  host: HostKey,
  chosenBy: 'tenant' | 'platform' = 'platform',
  since = 2,
): ContainerRecord['placement'] => ({ phase: 'placed', host, region: region('default'), since, chosenBy });

export function container(more: Partial<ContainerRecord> = {}, name = 'web'): ContainerRecord {
  return {
    kind: 'container',
    id: containerId(),
    tenant: acme,
    spec: specOf(name),
    secretRefs: [],
    configFiles: [],
    desired: 'running',
    generation: 2,
    placement: placedOn(h1),
    history: [h1],
    rejections: [],
    observed: observation('running'),
    observedOrder: { generation: 2, session: 1, seq: 1 },
    observedAtMs: 900_000,
    insertedAtMs: 800_000,
    updatedAtMs: 800_000,
    idempotency: null,
    ...more,
  };
}

export const hostRecord = (key: HostKey, more: Partial<HostRecord> = {}): HostRecord => ({
  kind: 'host',
  key,
  region: region('default'),
  cordoned: false,
  draining: false,
  capacity: roomy,
  agentVersion: '0',
  publicKey: 'U',
  join: null,
  session: 1,
  lostSinceMs: null,
  orphanWord: 0,
  insertedAtMs: 1,
  updatedAtMs: 1,
  ...more,
});

export function stateOf(...records: readonly StateRecord[]): PartitionState {
  const state = new PartitionState(noLedger);
  for (const record of records) state.put(record);
  return state;
}

/** Number of containers that wait for a host. */
export function waitingIn(state: PartitionView): number {
  const kinds = state.waitingForHost();
  const alike = [...kinds.tenants()].flatMap((tenant) => [...kinds.of(tenant)]);
  return alike.reduce((sum, { containers }) => sum + containers.size, 0);
}

export function apply(state: PartitionState, changes: Changes): void {
  for (const record of changes.records) state.put(record);
  for (const key of changes.deletes) state.delete(key);
  if (changes.heard !== undefined) applyHeard(state, changes.heard);
}

export const itemOf = (record: ContainerRecord, more: Partial<ReportItem> = {}): ReportItem => ({
  tenant: record.tenant,
  id: record.id,
  generation: record.generation,
  seq: 2,
  gone: false,
  observation: observation('running'),
  ...more,
});

export const doorbellsOf = ({ effects }: Changes): HostKey[] =>
  effects.flatMap((effect) => (effect.kind === 'doorbell' ? [effect.host] : []));
