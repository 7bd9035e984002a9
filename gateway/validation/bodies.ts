/** Bodies of routes: the schema of the route table, and validators where that is not enough. */
import type { Static } from 'typebox';
import type { Clock } from '../../lib/time/clock.ts';
import type { BodySchema, RouteName, RouteWithBody } from '../../schemas/routes.ts';
import { validateCreate, validateField, validateLabelsPatch, validateUpdate } from './container.ts';
import type { Validated } from './faults.ts';
import { validateEnrol, validateRenew } from './host.ts';
import { validateNetworkCreate, validateNetworkPut } from './network.ts';
import { validatePolicy } from './policy.ts';
import { validatePeerCreate, validatePeerUpdate } from './peer.ts';
import { validateContainerSecrets, validateLogin, validateSecret } from './secret.ts';
import { validateSpec, validateSpecPatch } from './spec.ts';
import { validateKey, validatePeerLink, validatePeerToken } from './tokens.ts';

export type BodyValidator = (body: unknown) => Validated<unknown>;

/** Of the routes whose bodies need more than their schema. */
export const createBodyValidators = (clock: Clock) =>
  ({
    'container.create': validateCreate,
    'container.update': validateUpdate,
    'labels.put': validateField('labels'),
    'labels.patch': validateLabelsPatch,
    'host.enrol': validateEnrol,
    'host.renew': validateRenew,
    'key.create': (body: unknown) => validateKey(body, clock.nowMs()),
    'network.create': validateNetworkCreate,
    'network.put': validateNetworkPut,
    'peer.create': (body: unknown) => validatePeerCreate(body, clock.nowMs()),
    'peer.link.create': (body: unknown) => validatePeerLink(body, clock.nowMs()),
    'peer.token.create': (body: unknown) => validatePeerToken(body, clock.nowMs()),
    'peer.update': (body: unknown) => validatePeerUpdate(body, clock.nowMs()),
    'policy.put': validatePolicy,
    'spec.create': validateSpec,
    'spec.put': validateSpec,
    'spec.patch': validateSpecPatch,
    'secret.put': validateSecret,
    'registry.put': validateLogin,
    'container.secrets.put': validateContainerSecrets,
  }) satisfies Partial<Record<RouteWithBody, BodyValidator>>;

export type BodyValidators = ReturnType<typeof createBodyValidators>;

/** A checked body: what its validator makes of it, or what its schema says; or there is none. */
export type Body<R extends RouteName> = R extends keyof BodyValidators
  ? Extract<ReturnType<BodyValidators[R]>, { readonly ok: true }>['value']
  : R extends RouteWithBody
    ? Static<BodySchema<R>>
    : undefined;
