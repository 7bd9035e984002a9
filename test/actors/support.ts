/** Parts that tests of actors share, without a server. */
import { randomUUID } from 'node:crypto';
import type { Lease } from '../../actors/runtime/lease.ts';
import type { Log } from '../../lib/log.ts';
import type { ContainerSpec } from '../../schemas/api/fields/container.ts';
import type { ContainerId, HostKey, MemberId, OperationId, TenantId } from '../../schemas/ids.ts';
import { type Sender } from '../../schemas/wire/subjects.ts';

export const quietLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => quietLog,
};

/** The lease of a process whose partition no other process wants. */
export const endless: Lease = { member: 'test' as MemberId, isValid: () => true };

/**
 * The key of every agent that a test plays, but where it says otherwise; the same in every run of a
 * simulation.
 */
export const agentKey = 'UB32WGJFHS3AOLIJBS6WJWC5FLCS3K2S3KKXOWT6HKMHCWT4NA5OPELW';
export const agentOf = (host: HostKey): Sender => ({ host, user: agentKey });

export const operation = (): OperationId => randomUUID() as OperationId;
export const tenantId = (text: string): TenantId => text as TenantId;
export const hostKey = (text: string): HostKey => text as HostKey;
export const containerId = (): ContainerId => randomUUID() as ContainerId;

export const specOf = (name: string, more: Partial<ContainerSpec> = {}): ContainerSpec => ({
  name,
  host_key: null,
  registry: 'registry.test',
  repository: 'longshore/demo',
  tag: '1',
  digest: null,
  pull_policy: 'if_not_present',
  ports: [],
  env: {},
  cpu_limit: '0.1',
  mem_limit: '16m',
  ...more,
});
