/**
 * The document of a container: read, written whole or by a merge patch, and tried without effect.
 */
import { createHash } from 'node:crypto';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import type { AskOwner, Outcome } from '../../lib/rpc/partition-client.ts';
import { canonicalSpec } from '../../schemas/api/fields/container.ts';
import { textOfPolicy } from '../../schemas/api/policy.ts';
import type { Declaration } from '../../schemas/api/spec.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { succeeded, tenantOf, written, type CallOf, type HandlerOf, type Handlers, type Writer } from '../call.ts';
import { failure, invalid } from '../http/respond.ts';
import { mergePatch, validateSpec } from '../validation/spec.ts';
import { idempotencyKeyIn } from './idempotency.ts';

export interface SpecRoutesOptions extends Writer {
  readonly ask: AskOwner;
  readonly newContainerId: () => ContainerId;
}

/** Equal for two documents that declare the same container. */
const textOf = ({ spec, policy, secrets, desired }: Declaration): string =>
  JSON.stringify([canonicalSpec(spec), textOfPolicy(policy), secrets, desired ?? 'running']);

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url');

export function specRoutes(options: SpecRoutesOptions) {
  const { ask } = options;
  type OfSpec = CallOf<'spec.get'> | CallOf<'spec.put'> | CallOf<'spec.patch'>;
  const read = (call: OfSpec): Promise<Outcome> => {
    const { id } = call.params;
    return ask('read', { type: 'spec.get', tenant: tenantOf(call), id, ...call.origin }, call.deadlineMs);
  };

  const write = (call: CallOf<'spec.put'> | CallOf<'spec.patch'>, declaration: Declaration): Promise<Outcome> => {
    const target = { tenant: tenantOf(call), id: call.params.id, declaration };
    return call.query.dry_run
      ? ask('read', { type: 'spec.plan', ...target, ...call.origin }, call.deadlineMs)
      : ask('write', { type: 'spec.put', ...target, ...written(options, call) }, call.deadlineMs);
  };
  const get: HandlerOf<'spec.get'> = (call) => read(call);

  const put: HandlerOf<'spec.put'> = (call) => write(call, call.body);

  /** Of what was read; where it has changed meanwhile, it is read again. */
  const patch: HandlerOf<'spec.patch'> = async (call) => {
    const { when } = call.origin;
    for (let attempt = 0; attempt < limits.sealAttempts; attempt++) {
      const before = await read(call);
      if (!succeeded(before)) return before;
      const { host_key: _, desired: __, ...document } = decodeAnswer('spec.get', before.body).data;
      const checked = validateSpec(mergePatch(document, call.body));
      if (!checked.ok) return invalid(checked.faults);
      const etag = before.head?.etag;
      const asRead = { ...when, match: when?.match ?? [etag ?? '*'] };
      const outcome = await write({ ...call, origin: { ...call.origin, when: asRead } }, checked.value);
      if (outcome.code !== 'precondition_failed' || when !== undefined) return outcome;
    }
    return failure('conflict', 'it was changed by others at the same time: send the request again');
  };

  const create: HandlerOf<'spec.create'> = async (call) => {
    const key = idempotencyKeyIn(call);
    if (typeof key === 'object') return key;
    const { host_key, ...rest } = call.body;
    const declaration = host_key === undefined ? rest : { ...rest, host_key };
    const target = { tenant: tenantOf(call), id: options.newContainerId(), declaration };
    if (call.query.dry_run) {
      const plan = { type: 'spec.plan', ...target, isNew: true, ...call.origin } as const;
      return ask('read', plan, call.deadlineMs);
    }
    const idempotency = key === undefined ? null : { key, bodyHash: hashOf(textOf(declaration)) };
    const write = { type: 'spec.create', ...target, idempotency, ...written(options, call) } as const;
    return ask('write', write, call.deadlineMs);
  };

  return { 'spec.create': create, 'spec.get': get, 'spec.put': put, 'spec.patch': patch } satisfies Partial<Handlers>;
}
