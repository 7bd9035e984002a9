/**
 * Admission of a request: its caller, the tenant's share of seats, and refusals of unknown paths.
 */
import type { Admission } from '../auth/gate.ts';
import type { Handled } from '../call.ts';
import { notFound, permitRefusals, wrongMethod } from '../http/refusals.ts';
import { tenantOfCaller } from './access-log.ts';
import type { RequestContext, Step } from './request.ts';

function conclude(request: RequestContext, admission: Admission): Handled | undefined {
  if (admission.kind === 'refused') return admission.result;
  request.caller = admission;
  return undefined;
}

/** At once for a token that was verified before. */
export const admit: Step = (request) => {
  const { server, exchange, access, origin, deadlineMs } = request;
  if (access === 'public') return undefined;
  const { head } = exchange;
  const admission =
    access === 'download' || access === 'pac'
      ? server.urlTokens.admit(head, access, { route: request.namedRoute?.name ?? 'none', origin, deadlineMs })
      : server.gate.admit(head);
  return admission instanceof Promise
    ? admission.then((later) => conclude(request, later))
    : conclude(request, admission);
};

/** Counts the permit and the body against the tenant, too, which may have no room. */
export const claimShare: Step = (request) => {
  const { exchange, permit, caller } = request;
  if (caller === undefined) return undefined;
  const tenant = tenantOfCaller(caller);
  const refused = permit?.claim(tenant);
  if (refused !== undefined) return request.refused(refused, permitRefusals);
  exchange.body.claim(tenant);
  return undefined;
};

export const refusePath: Step = ({ match }) => {
  if (match?.kind === 'none') return notFound;
  return match?.kind === 'method' ? wrongMethod(match.allow) : undefined;
};
