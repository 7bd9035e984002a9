/** The operator's view of tenants and of their containers. */
import type { Revocation, RevocationBody } from '../../schemas/api/tenant.ts';
import { isTenantId } from '../../schemas/ids.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { timestamp } from '../../lib/time/timestamp.ts';
import { succeeded, written, type HandlerOf, type Handlers, type Writer } from '../call.ts';
import { revocationOf } from '../auth/revocations.ts';
import { created } from '../http/respond.ts';
import { findContainers, listOfAll, type AskerOfAll } from './lists.ts';

export interface TenantRoutesOptions extends AskerOfAll, Writer {
  readonly announceRevocation: (revocation: Revocation) => void;
  /** Tokens that live longer are refused. */
  readonly tokenLifeMaxMs: number;
  readonly clock: Clock;
}

export function tenantRoutes(options: TenantRoutesOptions) {
  const { ask, clock, tokenLifeMaxMs } = options;
  const revocation = (tenant: Revocation['tenant'], body: RevocationBody): Revocation =>
    revocationOf(tenant, body, { nowMs: clock.nowMs(), tokenLifeMaxMs });

  const get: HandlerOf<'tenant.get'> = (call) =>
    ask('read', { type: 'tenant.get', tenant: call.params.tenant, ...call.origin }, call.deadlineMs);

  const put: HandlerOf<'tenant.put'> = (call) => {
    const tenant = call.params.tenant;
    const { repair, ...settings } = call.body;
    const question = {
      type: 'tenant.put',
      tenant,
      settings,
      // Gateways learn of the revocation with the poll that finds the record readable again.
      repair: repair === true ? revocation(tenant, {}) : null,
      ...written(options, call),
    } as const;
    return ask('write', question, call.deadlineMs);
  };

  const revoke: HandlerOf<'tenant.revoke'> = async (call) => {
    const tenant = call.params.tenant;
    const made = revocation(tenant, call.body);
    const outcome = await ask(
      'write',
      { type: 'tenant.revoke', tenant, revocation: made, ...written(options, call) },
      call.deadlineMs,
    );
    if (!succeeded(outcome)) return outcome;
    // After the commit (A3): a revocation that is announced but not stored could be lost.
    options.announceRevocation(made);
    return created({
      issued_until: timestamp(made.issuedUntilS * 1000),
      expires_at: timestamp(made.untilMs),
    });
  };

  const inspect: HandlerOf<'container.inspect'> = (call) =>
    ask(
      'read',
      { type: 'container.inspect', tenant: call.params.tenant, id: call.params.id, ...call.origin },
      call.deadlineMs,
    );

  const operate: HandlerOf<'container.operate'> = (call) =>
    ask(
      'write',
      {
        type: 'container.operate',
        tenant: call.params.tenant,
        id: call.params.id,
        fields: call.body,
        ...written(options, call),
      },
      call.deadlineMs,
    );

  return {
    'tenant.list': listOfAll(options, 'tenant.list', { isKey: isTenantId, keyOf: ({ id }) => id }),
    'container.find': findContainers(options),
    'tenant.get': get,
    'tenant.put': put,
    'tenant.revoke': revoke,
    'container.inspect': inspect,
    'container.operate': operate,
  } satisfies Partial<Handlers>;
}
