/** The first steps: the route of a request, its span, its permit, and limits of public routes. */
import { limits } from '../../schemas/limits.ts';
import type { Access } from '../../schemas/routes.ts';
import { malformed, options, permitRefusals, tooLongUrl } from '../http/refusals.ts';
import type { Match } from '../http/router.ts';
import type { Permits } from '../../lib/permits.ts';
import type { AppRoute } from './app-route.ts';
import type { RequestContext, Step } from './request.ts';

/** Even "not found" needs credentials under the prefix of a guarded area. */
function accessOf(match: Exclude<Match<AppRoute>, { readonly kind: 'options' }>): Access {
  switch (match.kind) {
    case 'route':
      return match.route.access;
    case 'method':
      return match.access;
    case 'none':
      return match.guarded ? 'tenant' : 'public';
  }
}

export const findRoute: Step = (request) => {
  const { exchange, server } = request;
  const { head } = exchange;
  if (head.isMalformed) return malformed;
  if (head.path.length + head.query.length > limits.urlBytes) return tooLongUrl;
  const match = server.router.match(head.method, head.path);
  if (match.kind === 'options') return options(match.allow);
  request.match = match;
  if (match.kind === 'route') request.params = match.params ?? {};
  request.access = accessOf(match);
  request.client = server.gate.clientOf(head);
  request.deadlineMs = request.startedMs + (request.namedRoute?.deadlineMs ?? server.requestDeadlineMs);
  return undefined;
};

export const expectBody: Step = ({ exchange, namedRoute, client }) => {
  exchange.body.expect(namedRoute?.bodyBoundBytes ?? 0, client);
  return undefined;
};

export const beginSpan: Step = (request) => {
  const { server, exchange, namedRoute: route, requestId: rid } = request;
  if (server.tracer === undefined || route?.isProbe === true) return undefined;
  const { method, headers } = exchange.head;
  const span = server.tracer.root(headers, {
    name: route === undefined ? method : `${method} ${route.path}`,
    kind: 'server',
    attributes: { 'http.request.method': method, 'http.route': route?.path, 'longshore.request_id': rid },
  });
  if (span === undefined) return undefined;
  request.span = span;
  request.origin = { rid, trace: span.trace };
  return undefined;
};

function permitsFor({ server, access, namedRoute }: RequestContext): Permits {
  if (access !== 'public') return server.permits;
  return (namedRoute?.bodyBoundBytes ?? 0) === 0 ? server.publicPermits : server.enrolPermits;
}

/** Probes need no permit. */
export const takePermit: Step = (request) => {
  if (request.namedRoute?.isProbe === true) return undefined;
  const permit = permitsFor(request).take(request.client);
  if (typeof permit === 'string') return request.refused(permit, permitRefusals);
  request.permit = permit;
  return undefined;
};

/** Refuses a client that is over a limit of public routes. */
export const limitClient: Step = ({ server: { gate }, exchange: { head }, namedRoute: route }) => {
  if (route === undefined) return undefined;
  const byFailures = route.ownToken === undefined ? undefined : gate.limitedByFailures(head, route.ownToken);
  return (byFailures ?? (route.publicRate === true ? gate.limitedByAddress(head) : undefined))?.result;
};
