/**
 * Whether what a path names is there at all. Asked only of a request that is faulty otherwise: the
 * contract puts the 404 before the 422.
 */
import type { RouteName } from '../../schemas/routes.ts';
import { failure } from '../http/respond.ts';
import {
  containerOf,
  hostOf,
  networkOf,
  peerOf,
  tenantOf,
  tenantParameterOf,
  type Handler,
  type Services,
} from '../http/call.ts';

export function probesOf(services: Services): Readonly<Partial<Record<RouteName, Handler>>> {
  const traced: Handler = (call) =>
    services.ask(
      'read',
      { type: 'container.trace', tenant: tenantOf(call), id: containerOf(call), rid: call.requestId },
      call.deadlineMs,
    );
  // A token of one peer sees no other peer.
  const peer: Handler = (call) =>
    call.grant !== undefined && call.grant.peer !== peerOf(call)
      ? failure('not_found')
      : services.ask(
          'read',
          { type: 'peer.get', tenant: tenantOf(call), peer: peerOf(call), rid: call.requestId },
          call.deadlineMs,
        );
  return {
    'container.logs': traced,
    'container.events': traced,
    'container.wait': (call) =>
      services.ask(
        'read',
        { type: 'container.get', tenant: tenantOf(call), id: containerOf(call), rid: call.requestId },
        call.deadlineMs,
      ),
    'container.operate': (call) =>
      services.ask(
        'read',
        { type: 'container.get', tenant: tenantParameterOf(call), id: containerOf(call), rid: call.requestId },
        call.deadlineMs,
      ),
    'peer.update': peer,
    'peer.token.create': peer,
    'artifact.profile': peer,
    'artifact.p12': peer,
    'network.put': (call) =>
      services.ask('read', { type: 'network.get', network: networkOf(call), rid: call.requestId }, call.deadlineMs),
    'host.update': (call) =>
      services.ask('read', { type: 'host.get', host: hostOf(call), rid: call.requestId }, call.deadlineMs),
  };
}
