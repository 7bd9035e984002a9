/** The handler of the route, and what the operators' log and the audit say of its answer. */
import { securityEventOf } from '../audit/security-events.ts';
import type { Handled } from '../call.ts';
import { isKnown } from '../http/conditional.ts';
import type { RequestContext, Step } from './request.ts';

/** With what the client should know of its request. */
const warned = (handled: Handled, warning: string | undefined): Handled =>
  warning === undefined || handled === 'streamed'
    ? handled
    : { ...handled, headers: [...(handled.headers ?? []), 'longshore-warning', warning] };

/** The 304 to a client that has this declaration already. */
function unlessKnown({ route, exchange }: RequestContext, handled: Handled): Handled {
  if (route.conditional !== true || handled === 'streamed' || handled.head === undefined) return handled;
  const { head } = handled;
  return isKnown(exchange.head.headers.ifNoneMatch, head.etag) ? { code: 'not_modified', body: '', head } : handled;
}

function conclude(request: RequestContext, handled: Handled): Handled {
  const { call, checked } = request.valid;
  const event = securityEventOf(call, handled);
  if (event !== undefined) request.server.log.info(event.event, event.fields);
  return warned(unlessKnown(request, handled), checked.ok ? checked.warning : undefined);
}

export const handle: Step = (request) => {
  const handled = request.route.handler(request.valid.call);
  return handled instanceof Promise ? handled.then((later) => conclude(request, later)) : conclude(request, handled);
};

/**
 * The answer, once the audit has its line; undefined where there is none to write. A request that
 * was refused before it was checked leaves no line.
 */
export const audit = ({ call, server }: RequestContext, handled: Handled): Promise<Handled> | undefined =>
  call?.cause === undefined ? undefined : server.notes.settle(call, handled);
