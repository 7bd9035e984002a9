/**
 * The document of a container: read, written whole or by a merge patch, and tried without effect.
 */
import { createHash } from 'node:crypto';
import type { AskOwner, Outcome } from '../../lib/rpc/partition-client.ts';
import { canonicalSpec } from '../../schemas/api/fields/container.ts';
import { textOfPolicy } from '../../schemas/api/policy.ts';
import type { Declaration, Spec } from '../../schemas/api/spec.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { succeeded, tenantOf, written, type CallOf, type HandlerOf, type Handlers, type Writer } from '../call.ts';
import { conflict, invalid } from '../http/respond.ts';
import { mergePatch, validateSpec } from '../validation/spec.ts';
import { createFiles, takenFrom, type Contents } from './files.ts';

export interface SpecRoutesOptions extends Writer {
  readonly ask: AskOwner;
  readonly newContainerId: () => ContainerId;
}

/** Equal for two documents that declare the same container. */
const textOf = ({ spec, policy, secrets, desired }: Declaration): string =>
  JSON.stringify([canonicalSpec(spec), textOfPolicy(policy), secrets, desired ?? 'running']);

const looks = ({ query: { pull } }: { readonly query: { readonly pull?: 'always' | undefined } }) =>
  pull === undefined ? {} : { pull };

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url');

export function specRoutes(options: SpecRoutesOptions) {
  const { ask } = options;
  const files = createFiles(options);
  type OfSpec = CallOf<'spec.get'> | CallOf<'spec.put'> | CallOf<'spec.patch'>;
  const read = (call: OfSpec): Promise<Outcome> => {
    const { id } = call.params;
    return ask('read', { type: 'spec.get', tenant: tenantOf(call), id, ...call.origin }, call.deadlineMs);
  };

  const write = async (
    call: CallOf<'spec.put'> | CallOf<'spec.patch'>,
    given: Declaration,
    known: Contents = new Map(),
  ): Promise<Outcome> => {
    const { declaration, contents } = takenFrom(given);
    const all = new Map([...known, ...contents]);
    const target = { tenant: tenantOf(call), id: call.params.id, declaration, ...looks(call) };
    if (call.query.dry_run) {
      const plan = { type: 'spec.plan', ...target, ...call.origin } as const;
      return files.shown(call, await ask('read', plan, call.deadlineMs), all);
    }
    const refused = await files.store(call, contents);
    if (refused !== undefined) return refused;
    const put = { type: 'spec.put', ...target, ...written(options, call) } as const;
    return files.shown(call, await ask('write', put, call.deadlineMs), all);
  };
  const get: HandlerOf<'spec.get'> = async (call) => files.shown(call, await read(call));

  const put: HandlerOf<'spec.put'> = (call) => write(call, call.body);

  /** Patches the document that it has read, and reads it again if it has changed meanwhile. */
  const patch: HandlerOf<'spec.patch'> = async (call) => {
    const { when } = call.origin;
    for (let attempt = 0; attempt < limits.sealAttempts; attempt++) {
      const before = await files.shown(call, await read(call));
      if (!succeeded(before)) return before;
      const { host_key: _, desired: __, ...document } = (JSON.parse(before.body) as { readonly data: Spec }).data;
      const checked = validateSpec(mergePatch(document, call.body));
      if (!checked.ok) return invalid(checked.faults);
      const etag = before.head?.etag;
      const asRead = { ...when, match: when?.match ?? [etag ?? '*'] };
      const outcome = await write({ ...call, origin: { ...call.origin, when: asRead } }, checked.value);
      if (outcome.code !== 'precondition_failed' || when !== undefined) return outcome;
    }
    return conflict('changed', 'it was changed by others at the same time: send the request again');
  };

  const create: HandlerOf<'spec.create'> = async (call) => {
    const { idempotencyKey: key } = call;
    const { declaration, contents } = takenFrom(call.body);
    const target = { tenant: tenantOf(call), id: options.newContainerId(), declaration, ...looks(call) };
    if (call.query.dry_run) {
      const plan = { type: 'spec.plan', ...target, isNew: true, ...call.origin } as const;
      return files.shown(call, await ask('read', plan, call.deadlineMs), contents);
    }
    const refused = await files.store(call, contents);
    if (refused !== undefined) return refused;
    const idempotency = key === undefined ? null : { key, bodyHash: hashOf(textOf(declaration)) };
    const write = { type: 'spec.create', ...target, idempotency, ...written(options, call) } as const;
    return ask('write', write, call.deadlineMs);
  };

  const rollback: HandlerOf<'container.rollback'> = async (call) => {
    const target = { tenant: tenantOf(call), id: call.params.id, version: call.body.version };
    const back = { type: 'container.rollback', ...target, ...written(options, call) } as const;
    return files.shown(call, await ask('write', back, call.deadlineMs));
  };

  return {
    'spec.create': create,
    'spec.get': get,
    'spec.put': put,
    'spec.patch': patch,
    'container.rollback': rollback,
  } satisfies Partial<Handlers>;
}
