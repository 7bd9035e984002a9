/** The end of a request: its reply, its span, its metrics and its line in the log. */
import { outcomeStatus } from '../../schemas/errors.ts';
import { succeeded, type Handled } from '../call.ts';
import type { Exchange } from '../http/engine/engine.ts';
import { errorPage } from '../http/html.ts';
import { replyOf } from '../http/respond.ts';
import { tenantOfCaller } from './access-log.ts';
import type { RequestContext } from './request.ts';

const statusOf = ({ isUpgraded }: Exchange, handled: Handled): number =>
  outcomeStatus[handled !== 'streamed' ? handled.code : isUpgraded ? 'switching_protocols' : 'ok'];

function reply({ exchange, namedRoute, requestId, caller, server }: RequestContext, handled: Handled): void {
  if (handled === 'streamed') return;
  const shown = namedRoute?.forPeople === true && !succeeded(handled) ? errorPage(handled) : handled;
  // A token that is refused learns nothing of a tenant.
  const isKnown = caller !== undefined && handled.code !== 'unauthenticated';
  exchange.reply(replyOf(shown, requestId, isKnown ? server.gate.rateHeaders(tenantOfCaller(caller)) : []));
}

function endSpan({ span, caller }: RequestContext, status: number): void {
  if (span === undefined) return;
  const tenant = caller === undefined ? undefined : tenantOfCaller(caller);
  const attributes = { 'http.response.status_code': status, 'longshore.tenant': tenant };
  span.end({ attributes, isError: status >= 500 });
}

export function answer(request: RequestContext, handled: Handled): void {
  const { exchange, server, permit, span, caller, requestId } = request;
  // A reply takes memory until it is written.
  if (permit !== undefined) exchange.whenFinished(() => permit.release());
  const status = statusOf(exchange, handled);
  reply(request, handled);
  endSpan(request, status);
  const route = request.namedRoute?.name ?? 'none';
  const streamed = handled === 'streamed';
  const ms = server.clock.monotonicMs() - request.startedMs;
  server.meters.request(route, status, ms / 1000, streamed || route === 'container.wait');
  server.accessLog?.write(exchange, {
    requestId,
    traceId: span?.traceId,
    route,
    caller,
    status,
    ms,
    address: server.gate.addressOf(exchange.head),
    streamed,
  });
}
