/** A validator for each route with a body. */
import type { Clock } from '../../lib/time/clock.ts';
import { OperatorFields } from '../../schemas/api/container.ts';
import { HostCreateBody, HostUpdateBody } from '../../schemas/api/host.ts';
import { RevocationBody, TenantBody } from '../../schemas/api/tenant.ts';
import type { RouteName, RouteWithBody } from '../../schemas/routes.ts';
import { validateCreate } from './container.ts';
import type { Validated } from './faults.ts';
import { validateEnrol } from './host.ts';
import { validateNetworkCreate, validateNetworkPut } from './network.ts';
import { validatePeerToken } from './peer-token.ts';
import { validatePeerCreate, validatePeerUpdate } from './peer.ts';
import { bodyValidator } from './schema.ts';

export type BodyValidator = (body: unknown) => Validated<unknown>;

export const createBodyValidators = (clock: Clock) =>
  ({
    'container.create': validateCreate,
    'container.operate': bodyValidator(OperatorFields),
    'host.create': bodyValidator(HostCreateBody),
    'host.enrol': validateEnrol,
    'host.update': bodyValidator(HostUpdateBody),
    'network.create': validateNetworkCreate,
    'network.put': validateNetworkPut,
    'peer.create': (body: unknown) => validatePeerCreate(body, clock.nowMs()),
    'peer.token.create': (body: unknown) => validatePeerToken(body, clock.nowMs()),
    'peer.update': (body: unknown) => validatePeerUpdate(body, clock.nowMs()),
    'tenant.put': bodyValidator(TenantBody),
    'tenant.revoke': bodyValidator(RevocationBody),
  }) satisfies Record<RouteWithBody, BodyValidator>;

export type BodyValidators = ReturnType<typeof createBodyValidators>;

/** What the validator of a route makes of a body; undefined for a route without one. */
export type Body<R extends RouteName> = R extends RouteWithBody
  ? Extract<ReturnType<BodyValidators[R]>, { readonly ok: true }>['value']
  : undefined;
