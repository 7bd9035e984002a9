/** The operator's view of tenants and of their containers. */
import type { OperatorFields } from '../../schemas/container.ts';
import type { Revocation, TenantSettings } from '../../schemas/tenant.ts';
import { timestamp } from '../../lib/clock.ts';
import { containerOf, succeeded, tenantParameterOf, type Handler, type Services } from '../call.ts';
import { created } from '../respond.ts';

/**
 * A token says itself when it expires, and nobody bounds that; so a revocation is kept for longer than any sensible
 * token lives. One that lives longer still must be ended at its issuer.
 */
const revocationTtlMs = 400 * 24 * 3600 * 1000;

interface RevocationRequest {
  readonly jti?: string;
  readonly sub?: string;
}

export function revocationsOf(
  tenant: Revocation['tenant'],
  { jti, sub }: RevocationRequest,
  nowMs: number,
): Revocation {
  const match: Revocation['match'] =
    jti !== undefined ? { by: 'jti', value: jti } : sub !== undefined ? { by: 'sub', value: sub } : { by: 'tenant' };
  return { tenant, match, issuedUntilS: Math.floor(nowMs / 1000), untilMs: nowMs + revocationTtlMs };
}

export function tenantHandlers(services: Services) {
  const get: Handler = (call) =>
    services.ask('read', { type: 'tenant.get', tenant: tenantParameterOf(call), rid: call.requestId }, call.deadlineMs);

  const put: Handler = (call) =>
    services.ask(
      'write',
      {
        type: 'tenant.put',
        tenant: tenantParameterOf(call),
        settings: call.body as TenantSettings,
        rid: call.requestId,
        op: services.newOperationId(),
      },
      call.deadlineMs,
    );

  const revoke: Handler = async (call) => {
    const tenant = tenantParameterOf(call);
    const revocation = revocationsOf(tenant, call.body as RevocationRequest, services.clock.nowMs());
    const op = services.newOperationId();
    const outcome = await services.ask(
      'write',
      { type: 'tenant.revoke', tenant, revocation, rid: call.requestId, op },
      call.deadlineMs,
    );
    if (!succeeded(outcome)) return outcome;
    // Committed first (A3): news of what is not stored could be lost with us.
    services.announceRevocation(revocation);
    return created({
      issued_until: timestamp(revocation.issuedUntilS * 1000),
      expires_at: timestamp(revocation.untilMs),
    });
  };

  const inspect: Handler = (call) =>
    services.ask(
      'read',
      { type: 'container.inspect', tenant: tenantParameterOf(call), id: containerOf(call), rid: call.requestId },
      call.deadlineMs,
    );

  const operate: Handler = (call) =>
    services.ask(
      'write',
      {
        type: 'container.operate',
        tenant: tenantParameterOf(call),
        id: containerOf(call),
        fields: call.body as OperatorFields,
        rid: call.requestId,
        op: services.newOperationId(),
      },
      call.deadlineMs,
    );

  return {
    'tenant.get': get,
    'tenant.put': put,
    'tenant.revoke': revoke,
    'container.inspect': inspect,
    'container.operate': operate,
  };
}
