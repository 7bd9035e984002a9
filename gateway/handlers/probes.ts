/**
 * Whether what a path names is there at all. Asked only of a request that is faulty otherwise: the contract puts the 404
 * before the 422.
 */
import type { RouteName } from '../../schemas/routes.ts';
import { containerOf, hostOf, tenantOf, tenantParameterOf, type Handler, type Services } from '../call.ts';

export function probesOf(services: Services): Readonly<Partial<Record<RouteName, Handler>>> {
  const traced: Handler = (call) =>
    services.ask(
      'read',
      { type: 'container.trace', tenant: tenantOf(call), id: containerOf(call), rid: call.requestId },
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
    'host.update': (call) =>
      services.ask('read', { type: 'host.get', host: hostOf(call), rid: call.requestId }, call.deadlineMs),
  };
}
