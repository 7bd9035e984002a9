/** A6: a tenant’s data is reached through the tenant in the token. */
import type { Guard } from '../mutant.ts';

export const a6: readonly Guard[] = [
  {
    name: 'container found by its id without its tenant',
    guard: 'A record is reached through the tenant in the token',
    file: 'actors/domain/container/decide.ts',
    changes: [
      {
        in: 'find',
        replace: 'tenant.containers.get(ask.id)',
        by: '[...state.tenants()].flatMap((each) => [...each.containers.values()]).find(({ id }) => id === ask.id)',
      },
    ],
    killedBy: 'test/actors/domain/container.test.ts',
  },
  {
    name: 'tenant taken from the query',
    guard: 'The tenant of a request is the token’s',
    file: 'gateway/call.ts',
    changes: [
      {
        in: 'tenantOf',
        replace: 'call.identity?.tenant ?? call.grant?.tenant',
        by: "new URLSearchParams(call.exchange.head.query).get('tenant_id') ?? call.identity?.tenant ?? call.grant?.tenant",
      },
    ],
    killedBy: 'test/integration/gateway/contract.test.ts',
  },
  {
    name: 'secret opens in the place of another',
    guard: 'A sealed secret opens for its tenant, name and version alone (ADR 37)',
    file: 'gateway/vault/vault.ts',
    changes: [
      {
        in: 'textOf',
        replace: '`secret/${place.tenant}/${place.name}/${place.version}`',
        by: '`secret/${place.tenant}/${place.name}`',
      },
    ],
    killedBy: 'test/gateway/vault/vault.test.ts',
  },
  {
    name: 'session in the container of another tenant',
    guard: 'An agent finds the container by its own desired set and labels (ADR 39)',
    file: 'host-agent/sessions/target.ts',
    changes: [{ in: 'targetOf', replace: 'wanted.container.tenant === tenant', by: 'true' }],
    killedBy: 'test/host-agent/sessions/target.test.ts',
  },
  {
    name: 'a private image given to a tenant that has not proved its access',
    guard: 'A private image is not given to another tenant (docs/security.md, private-image)',
    file: 'host-agent/images/pulls.ts',
    changes: [{ in: 'createPulls.present', always: 'access.isProved(tenant, imageId, reference)' }],
    killedBy: 'test/host-agent/images/pulls.test.ts',
  },
];
