/** Containers of a tenant: declare, list, look at, start, stop, remove. */
import { createHash } from 'node:crypto';
import { decodeCursor } from '../../schemas/api/cursor.ts';
import type { LaneKind, Question } from '../../lib/rpc/partition-client.ts';
import { tenantOf, type Call, type HandlerOf, type Services } from '../http/call.ts';
import { canonicalSpec } from '../validation/container.ts';
import { wrongCursor } from '../http/pages.ts';
import { invalid } from '../http/respond.ts';

/** Visible ASCII. */
const idempotencyKeyPattern = /^[\x21-\x7e]{1,255}$/;

export function containerHandlers(services: Services) {
  const ask = (kind: LaneKind, call: Call, question: Question) => services.ask(kind, question, call.deadlineMs);

  const read =
    (type: 'container.get' | 'container.status'): HandlerOf<typeof type> =>
    (call) =>
      ask('read', call, { type, tenant: tenantOf(call), id: call.params.id, rid: call.requestId });

  const write =
    (type: 'container.start' | 'container.stop' | 'container.delete'): HandlerOf<typeof type> =>
    (call) =>
      ask('write', call, {
        type,
        tenant: tenantOf(call),
        id: call.params.id,
        rid: call.requestId,
        op: services.newOperationId(),
      });

  const list: HandlerOf<'container.list'> = (call) => {
    const { limit, cursor } = call.query;
    const before = cursor === undefined ? null : decodeCursor(cursor);
    if (before === undefined) return wrongCursor;
    const tenant = tenantOf(call);
    return ask('read', call, { type: 'container.list', tenant, limit, before, rid: call.requestId });
  };

  const create: HandlerOf<'container.create'> = (call) => {
    const { idempotencyKey: key } = call.exchange.head.headers;
    if (key !== undefined && !idempotencyKeyPattern.test(key)) {
      return invalid({ 'Idempotency-Key': ['must be 1 to 255 visible ASCII characters'] });
    }
    const spec = call.body;
    return ask('write', call, {
      type: 'container.create',
      tenant: tenantOf(call),
      id: services.newContainerId(),
      spec,
      idempotency:
        key === undefined
          ? null
          : { key, bodyHash: createHash('sha256').update(canonicalSpec(spec)).digest('base64url') },
      rid: call.requestId,
      op: services.newOperationId(),
    });
  };

  const quota: HandlerOf<'tenant.quota'> = (call) => {
    const { region } = call.query;
    return ask('read', call, { type: 'tenant.quota', tenant: tenantOf(call), region, rid: call.requestId });
  };

  return {
    'container.list': list,
    'container.create': create,
    'container.get': read('container.get'),
    'container.status': read('container.status'),
    'container.start': write('container.start'),
    'container.stop': write('container.stop'),
    'container.delete': write('container.delete'),
    'tenant.quota': quota,
  };
}
