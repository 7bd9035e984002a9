/** Takes each request through its steps, and answers it. */
import { isRepeatable, type Route, type RouteName } from '../../schemas/routes.ts';
import { securityEventOf } from '../audit/security-events.ts';
import type { Handled } from '../call.ts';
import type { Exchange } from '../http/engine/engine.ts';
import { failure } from '../http/respond.ts';
import { createRouter } from '../http/router.ts';
import { AccessLog } from './access-log.ts';
import { admit, claimShare, refusePath } from './admit.ts';
import { answer } from './answer.ts';
import { prepareRoute, type RouteParts } from './app-route.ts';
import { beginSpan, expectBody, findRoute, limitClient, takePermit } from './arrive.ts';
import { authorise, checkParams, readBody, refuseMatch, validate } from './check.ts';
import { described } from './describe.ts';
import { keyIn, onlyOnce } from './once.ts';
import { RequestContext, type Server, type Step } from './request.ts';

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

const handle: Step = (request) => {
  const handled = answerOf(request);
  return handled instanceof Promise ? handled.then((later) => conclude(request, later)) : conclude(request, handled);
};

/**
 * The answer, once the audit has its line; undefined where there is none to write. A request that
 * was refused before it was checked leaves no line.
 */
const audit = ({ call, server }: RequestContext, handled: Handled): Promise<Handled> | undefined =>
  call?.cause === undefined ? undefined : server.notes.settle(call, handled);

/**
 * The steps of a request. The first result is its answer, so this is also the order of refusals
 * that the API promises: 401, 413, 415, 400, 404, 422, 403, 412.
 */
const steps: readonly Step[] = [
  findRoute,
  expectBody,
  beginSpan,
  takePermit,
  limitClient,
  admit,
  claimShare,
  refusePath,
  readBody,
  checkParams,
  validate,
  authorise,
  refuseMatch,
  handle,
];

export interface DispatcherOptions extends RouteParts, Omit<Server, 'router' | 'accessLog'> {
  readonly routes: readonly (Route & { readonly name: RouteName })[];
  /** The beginning of every request id made here; each process has its own. */
  readonly requestIdPrefix: string;
  /** False if the log's level drops the lines of requests. */
  readonly accessLog: boolean;
}

const requestIdPattern = /^[A-Za-z0-9._-]{1,64}$/;

export class Dispatcher {
  readonly #server: Server;
  readonly #requestIdPrefix: string;
  #requests = 0;

  constructor(options: DispatcherOptions) {
    const { routes, accessLog, log, requestIdPrefix } = options;
    this.#requestIdPrefix = requestIdPrefix;
    this.#server = {
      ...options,
      router: createRouter(routes.map((route) => prepareRoute(route, options))),
      accessLog: accessLog ? new AccessLog(log) : undefined,
    };
  }

  /** Answers every exchange, whatever happens; never throws. At once, if no step waits. */
  readonly dispatch = (exchange: Exchange): void => {
    const requestId = this.#requestId(exchange.head.headers.requestId);
    this.#run(new RequestContext(this.#server, exchange, requestId), 0);
  };

  /** The steps from this one on. */
  #run(request: RequestContext, from: number): void {
    try {
      for (let at = from; at < steps.length; at++) {
        const result = steps[at]?.(request);
        if (result instanceof Promise) {
          const next = (later: Handled | undefined): void =>
            later === undefined ? this.#run(request, at + 1) : this.#settle(request, later);
          result.then(next, (error: unknown) => this.#fail(request, error));
          return;
        }
        if (result !== undefined) {
          this.#settle(request, result);
          return;
        }
      }
      throw new Error('no step has answered');
    } catch (error) {
      this.#fail(request, error);
    }
  }

  /** Runs after the steps, whichever of them has answered. */
  #settle(request: RequestContext, handled: Handled): void {
    const settled = audit(request, handled);
    if (settled === undefined) this.#answer(request, handled);
    else {
      settled.then(
        (later) => this.#answer(request, later),
        (error: unknown) => this.#fail(request, error),
      );
    }
  }

  #fail(request: RequestContext, error: unknown): void {
    const { requestId, namedRoute } = request;
    this.#server.log.error('request_failed', { requestId, route: namedRoute?.name ?? 'none', error });
    this.#answer(request, failure('internal'));
  }

  #answer(request: RequestContext, handled: Handled): void {
    try {
      answer(request, handled);
    } catch (error) {
      this.#server.log.error('reply_failed', { requestId: request.requestId, error });
    }
  }

  #requestId(given: string | undefined): string {
    return given !== undefined && requestIdPattern.test(given)
      ? given
      : `${this.#requestIdPrefix}-${(this.#requests++).toString(36)}`;
  }
}
