/** Containers of a tenant: declare, list, look at, change, start, stop, remove. */
import { createHash } from 'node:crypto';
import { decodeCursor } from '../../schemas/api/cursor.ts';
import type { TenantHost } from '../../schemas/api/host.ts';
import { isNameKey, keyOfName } from '../../schemas/api/tenant-network.ts';
import type { AskOwner, LaneKind, Outcome, Question } from '../../lib/rpc/partition-client.ts';
import {
  succeeded,
  tenantOf,
  written,
  type Call,
  type CallOf,
  type HandlerOf,
  type Handlers,
  type Writer,
} from '../call.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import { isHostKey, type ContainerId } from '../../schemas/ids.ts';
import { canonicalSpec, type Metadata } from '../../schemas/api/fields/container.ts';
import { filtersOf, given } from './filters.ts';
import { listByKey, wrongCursor } from '../http/pages.ts';
import { ok, type Result } from '../http/respond.ts';

type OfContainer = Call & Pick<CallOf<'container.get'>, 'params'>;

export interface ContainerRoutesOptions extends Writer {
  readonly ask: AskOwner;
  readonly newContainerId: () => ContainerId;
}

/** `undefined` if its cursor is not valid. */
function pageOf(call: CallOf<'container.list' | 'container.overview'>) {
  const { limit, cursor, label } = call.query;
  const before = cursor === undefined ? null : decodeCursor(cursor);
  if (before === undefined) return undefined;
  return { tenant: tenantOf(call), limit, before, ...given({ labels: label }), ...call.origin };
}

export function containerRoutes(options: ContainerRoutesOptions) {
  const ask = (kind: LaneKind, call: Call, question: Question) => options.ask(kind, question, call.deadlineMs);

  const status: HandlerOf<'container.status'> = (call) =>
    ask('read', call, { type: 'container.status', tenant: tenantOf(call), id: call.params.id, ...call.origin });

  const versions: HandlerOf<'container.versions'> = (call) =>
    ask('read', call, { type: 'container.versions', tenant: tenantOf(call), id: call.params.id, ...call.origin });

  const get: HandlerOf<'container.get'> = (call) =>
    ask('read', call, { type: 'container.get', tenant: tenantOf(call), id: call.params.id, ...call.origin });

  const update: HandlerOf<'container.update'> = (call) => {
    const { pull } = call.query;
    return ask('write', call, {
      type: 'container.update',
      tenant: tenantOf(call),
      id: call.params.id,
      patch: call.body,
      ...(pull === undefined ? {} : { pull }),
      ...written(options, call),
    });
  };

  const policy: HandlerOf<'policy.get'> = (call) =>
    ask('read', call, { type: 'policy.get', tenant: tenantOf(call), id: call.params.id, ...call.origin });

  const putPolicy: HandlerOf<'policy.put'> = (call) =>
    ask('write', call, {
      type: 'policy.put',
      tenant: tenantOf(call),
      id: call.params.id,
      policy: call.body,
      ...written(options, call),
    });

  const write =
    (type: 'container.start' | 'container.stop' | 'container.delete'): HandlerOf<typeof type> =>
    (call) =>
      ask('write', call, {
        type,
        tenant: tenantOf(call),
        id: call.params.id,
        ...written(options, call),
      });

  /** A part of the metadata, as a body of a route has it. */
  const metadata = <B>(fieldsIn: (body: B) => Partial<Metadata>, partOf: (metadata: Partial<Metadata>) => unknown) => {
    const shown = (outcome: Outcome): Result =>
      succeeded(outcome) ? ok(partOf(decodeAnswer('metadata.get', outcome.body).data), outcome) : outcome;
    return {
      get: async (call: OfContainer) => {
        const question = { type: 'metadata.get', tenant: tenantOf(call), id: call.params.id, ...call.origin } as const;
        return shown(await ask('read', call, question));
      },
      put: async (call: OfContainer & { readonly body: B }) => {
        const target = { type: 'metadata.put', tenant: tenantOf(call), id: call.params.id } as const;
        return shown(await ask('write', call, { ...target, fields: fieldsIn(call.body), ...written(options, call) }));
      },
    };
  };
  const labels = metadata(
    (body: Metadata['labels']) => ({ labels: body }),
    ({ labels }) => labels,
  );
  const patchLabels: HandlerOf<'labels.patch'> = async (call) => {
    const target = { type: 'metadata.put', tenant: tenantOf(call), id: call.params.id, fields: {} } as const;
    const outcome = await ask('write', call, { ...target, labels: call.body, ...written(options, call) });
    return succeeded(outcome) ? ok(decodeAnswer('metadata.put', outcome.body).data.labels, outcome) : outcome;
  };
  const project = metadata(
    (body: Pick<Metadata, 'project'>) => body,
    ({ project }) => ({ project }),
  );

  const list: HandlerOf<'container.list'> = (call) => {
    const page = pageOf(call);
    return page === undefined ? wrongCursor : ask('read', call, { type: 'container.list', ...page });
  };

  const overview: HandlerOf<'container.overview'> = (call) => {
    const page = pageOf(call);
    if (page === undefined) return wrongCursor;
    const { include } = call.query;
    return ask('read', call, { type: 'container.overview', ...page, ...filtersOf(call), ...given({ include }) });
  };

  const create: HandlerOf<'container.create'> = (call) => {
    const { idempotencyKey: key } = call;
    const spec = call.body;
    const stopped = call.query.start ? '' : ' stopped';
    return ask('write', call, {
      type: 'container.create',
      tenant: tenantOf(call),
      id: options.newContainerId(),
      spec,
      idempotency:
        key === undefined
          ? null
          : {
              key,
              bodyHash: createHash('sha256')
                .update(canonicalSpec(spec) + stopped)
                .digest('base64url'),
            },
      ...(call.query.start ? {} : { stopped: true }),
      ...written(options, call),
    });
  };

  const quota: HandlerOf<'tenant.quota'> = (call) => {
    const { region } = call.query;
    return ask('read', call, { type: 'tenant.quota', tenant: tenantOf(call), region, ...call.origin });
  };

  const hosts: HandlerOf<'tenant.hosts'> = (call) => {
    const { limit } = call.query;
    const tenant = tenantOf(call);
    return listByKey(call.query, { isKey: isHostKey, keyOf: ({ key }: TenantHost) => key }, async (after) => {
      const outcome = await ask('read', call, { type: 'tenant.hosts', tenant, limit, after, ...call.origin });
      return succeeded(outcome) ? [decodeAnswer('tenant.hosts', outcome.body)] : outcome;
    });
  };

  const network: HandlerOf<'tenant.network'> = (call) =>
    ask('read', call, { type: 'tenant.network', tenant: tenantOf(call), ...call.origin });

  const names: HandlerOf<'tenant.names'> = (call) => {
    const { limit } = call.query;
    const tenant = tenantOf(call);
    return listByKey(call.query, { isKey: isNameKey, keyOf: keyOfName }, async (after) => {
      const outcome = await ask('read', call, { type: 'tenant.names', tenant, limit, after, ...call.origin });
      return succeeded(outcome) ? [decodeAnswer('tenant.names', outcome.body)] : outcome;
    });
  };

  return {
    'tenant.hosts': hosts,
    'tenant.network': network,
    'tenant.names': names,
    'container.list': list,
    'container.overview': overview,
    'labels.get': labels.get,
    'labels.put': labels.put,
    'labels.patch': patchLabels,
    'project.get': project.get,
    'project.put': project.put,
    'container.create': create,
    'container.versions': versions,
    'container.get': get,
    'container.update': update,
    'container.status': status,
    'policy.get': policy,
    'policy.put': putPolicy,
    'container.start': write('container.start'),
    'container.stop': write('container.stop'),
    'container.delete': write('container.delete'),
    'tenant.quota': quota,
  } satisfies Partial<Handlers>;
}
