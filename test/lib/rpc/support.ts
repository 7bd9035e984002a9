/** Asks for tests of the client of partitions. */
import { randomUUID } from 'node:crypto';
import type { ContainerId, OperationId, TenantId } from '../../../schemas/ids.ts';
import type { LaneKind } from '../../../lib/rpc/lane.ts';
import type { Question } from '../../../schemas/wire/asks.ts';

const tenant = 'acme' as TenantId;

export const readOf = (id: string): Question => ({ type: 'container.get', tenant, id: id as ContainerId, rid: id });
export const writeOf = (id: string): Question => ({
  type: 'container.start',
  tenant,
  id: id as ContainerId,
  rid: id,
  op: randomUUID() as string as OperationId,
});

/** An ask that names its partition. */
export const ofPartition = (kind: LaneKind, partition: number): Question =>
  kind === 'write'
    ? { type: 'secret.replace', partition, items: [], rid: randomUUID(), op: randomUUID() as string as OperationId }
    : { type: 'peer.count', partition, rid: randomUUID() };
