/**
 * Checks whether the resource that a path names exists. Used only if the request has another fault,
 * because the API promises a 404 before a 422.
 */
import type { AskOwner } from '../../lib/rpc/partition-client.ts';
import { failure } from '../http/respond.ts';
import { tenantOf, type HandlerOf, type Handlers } from '../call.ts';
import type { TracedRoute } from '../streams/requests.ts';

export function probesOf({ ask }: { readonly ask: AskOwner }): Partial<Handlers> {
  const traced: HandlerOf<TracedRoute> = (call) =>
    ask(
      'read',
      { type: 'container.trace', tenant: tenantOf(call), id: call.params.id, ...call.origin },
      call.deadlineMs,
    );
  const container: HandlerOf<
    | 'container.wait'
    | 'container.update'
    | 'labels.put'
    | 'labels.patch'
    | 'project.put'
    | 'policy.put'
    | 'container.rollback'
    | 'spec.put'
    | 'spec.patch'
    | 'container.secrets.put'
    | 'container.stats'
    | 'container.stats.stream'
    | 'container.exec'
    | 'container.forward'
    | 'container.run'
  > = (call) =>
    ask('read', { type: 'container.get', tenant: tenantOf(call), id: call.params.id, ...call.origin }, call.deadlineMs);
  // For the token of one peer no other peer exists.
  const peer: HandlerOf<
    'peer.update' | 'peer.token.create' | 'peer.link.create' | 'artifact.profile' | 'artifact.p12'
  > = (call) =>
    call.grant !== undefined && call.grant.peer !== call.params.peer
      ? failure('not_found')
      : ask(
          'read',
          { type: 'peer.get', tenant: tenantOf(call), peer: call.params.peer, ...call.origin },
          call.deadlineMs,
        );
  return {
    'container.logs': traced,
    'container.events': traced,
    'container.logs.stream': traced,
    'container.events.stream': traced,
    'container.wait': container,
    'container.stats': container,
    'container.stats.stream': container,
    'container.exec': container,
    'container.forward': container,
    'container.run': container,
    'container.update': container,
    'labels.put': container,
    'labels.patch': container,
    'project.put': container,
    'policy.put': container,
    'container.rollback': container,
    'spec.put': container,
    'spec.patch': container,
    'container.secrets.put': container,
    'container.operate': (call) =>
      ask(
        'read',
        { type: 'container.get', tenant: call.params.tenant, id: call.params.id, ...call.origin },
        call.deadlineMs,
      ),
    'peer.update': peer,
    'peer.token.create': peer,
    'peer.link.create': peer,
    'artifact.profile': peer,
    'artifact.p12': peer,
    'network.put': (call) =>
      ask('read', { type: 'network.get', network: call.params.network, ...call.origin }, call.deadlineMs),
    'host.update': (call) => ask('read', { type: 'host.get', host: call.params.key, ...call.origin }, call.deadlineMs),
  };
}
