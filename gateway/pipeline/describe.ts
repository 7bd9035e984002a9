/**
 * What an answer says in its headers of what it is about: the ETag and the generation of the
 * resource, where it is, and what the client should know of its request. Pure.
 */
import { succeeded, type Handled } from '../call.ts';
import { isKnown } from '../http/conditional.ts';
import type { Result } from '../http/respond.ts';
import type { AppRoute } from './app-route.ts';
import type { RequestContext } from './request.ts';

/** In a body of ours the first field of this name is that of what was made; ids need no escapes. */
const fieldIn = (body: Result['body'], name: string): string =>
  new RegExp(`"${name}":"([^"\\\\]*)"`).exec(String(body))?.[1] ?? '';

/** The path of what a 201 made: that of a PUT, or one with names from the path and the body. */
function locationOf({ route, params, exchange }: RequestContext, { body }: Result): string | undefined {
  if (route.method === 'PUT') return exchange.head.path;
  return route.made?.replaceAll(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? fieldIn(body, name)),
  );
}

const nameOf = { etag: 'etag', generation: 'longshore-generation' } as const;

function headersOf({ tagged, generates }: AppRoute, { head = {} }: Result): string[] {
  const { etag, generation } = head;
  return [
    ...(tagged === true && etag !== undefined ? [nameOf.etag, etag] : []),
    ...(generates === true && generation !== undefined ? [nameOf.generation, String(generation)] : []),
  ];
}

export function described(request: RequestContext, handled: Handled, warning: string | undefined): Handled {
  if (handled === 'streamed') return handled;
  const { route, exchange } = request;
  const location = handled.code === 'created' ? locationOf(request, handled) : undefined;
  const headers = [
    ...(handled.headers ?? []),
    ...headersOf(route, handled),
    ...(location === undefined ? [] : ['location', location]),
    ...(warning === undefined || !succeeded(handled) ? [] : ['longshore-warning', warning]),
  ];
  const { etag } = handled.head ?? {};
  const isSame = route.conditional === true && etag !== undefined && isKnown(exchange.head.headers.ifNoneMatch, etag);
  return isSame ? { code: 'not_modified', body: '', headers } : { ...handled, headers };
}
