/** The routes whose bodies need more than their schema. */
import type { Clock } from '../../lib/time/clock.ts';
import type { RouteName } from '../../schemas/routes.ts';
import { validateCreate } from './container.ts';
import type { Validated } from './faults.ts';
import { validateEnrol } from './host.ts';
import { validateNetworkCreate, validateNetworkPut } from './network.ts';
import { validatePeerToken } from './peer-token.ts';
import { validatePeerCreate, validatePeerUpdate } from './peer.ts';

export type BodyValidator = (body: unknown) => Validated<unknown>;
export type BodyValidators = Readonly<Partial<Record<RouteName, BodyValidator>>>;

export const createBodyValidators = (clock: Clock): BodyValidators => ({
  'container.create': validateCreate,
  'host.enrol': validateEnrol,
  'peer.create': (body) => validatePeerCreate(body, clock.nowMs()),
  'peer.update': (body) => validatePeerUpdate(body, clock.nowMs()),
  'peer.token.create': (body) => validatePeerToken(body, clock.nowMs()),
  'network.create': validateNetworkCreate,
  'network.put': validateNetworkPut,
});
