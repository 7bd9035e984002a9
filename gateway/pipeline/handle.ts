/** The handler of the route, and what the operators' log and the audit say of its answer. */
import { isRepeatable } from '../../schemas/routes.ts';
import { securityEventOf } from '../audit/security-events.ts';
import type { Handled } from '../call.ts';
import { described } from './describe.ts';
import { keyIn, onlyOnce } from './once.ts';
import type { RequestContext, Step } from './request.ts';

function conclude(request: RequestContext, handled: Handled): Handled {
  const { call, checked } = request.valid;
  const event = securityEventOf(call, handled);
  if (event !== undefined) request.server.log.info(event.event, event.fields);
  return described(request, handled, checked.ok ? checked.warning : undefined);
}

/** A create of a container is repeated by its own record, and every other POST by its answer. */
function answerOf({ route, valid: { call }, server }: RequestContext): Handled | Promise<Handled> {
  if (!isRepeatable(route)) return route.handler(call);
  const key = keyIn(call);
  if (typeof key === 'object') return key;
  if (key === undefined) return route.handler(call);
  return route.keepsKey === true
    ? route.handler({ ...call, idempotencyKey: key })
    : onlyOnce(route, call, key, server.once);
}

export const handle: Step = (request) => {
  const handled = answerOf(request);
  return handled instanceof Promise ? handled.then((later) => conclude(request, later)) : conclude(request, handled);
};

/**
 * The answer, once the audit has its line; undefined where there is none to write. A request that
 * was refused before it was checked leaves no line.
 */
export const audit = ({ call, server }: RequestContext, handled: Handled): Promise<Handled> | undefined =>
  call?.cause === undefined ? undefined : server.notes.settle(call, handled);
