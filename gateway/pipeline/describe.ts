/**
 * Headers of an answer about its resource: ETag, generation, location, and warnings about the
 * request. Pure.
 */
import { succeeded, type Handled } from '../call.ts';
import { isKnown } from '../http/conditional.ts';
import type { Result } from '../http/respond.ts';
import type { RequestContext } from './request.ts';

const patternOf = (name: string): RegExp => new RegExp(`"${name}":"([^"\\\\]*)"`);
const patterns = new Map<string, RegExp>();

/** In a body of ours the first field of this name is that of what was made; ids need no escapes. */
function fieldIn(body: Result['body'], name: string): string {
  const pattern = patterns.get(name) ?? patternOf(name);
  patterns.set(name, pattern);
  return pattern.exec(String(body))?.[1] ?? '';
}

/** The path of what a 201 made: that of a PUT, or one with names from the path and the body. */
function locationOf({ route, params, exchange }: RequestContext, { body }: Result): string | undefined {
  if (route.method === 'PUT') return exchange.head.path;
  return route.made?.replaceAll(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? fieldIn(body, name)),
  );
}

export function described(request: RequestContext, handled: Handled, warning: string | undefined): Handled {
  if (handled === 'streamed') return handled;
  const { route, exchange } = request;
  const { etag, generation } = handled.head ?? {};
  const headers = [...(handled.headers ?? [])];
  if (route.tagged === true && etag !== undefined) headers.push('etag', etag);
  if (route.generates === true && generation !== undefined) headers.push('longshore-generation', String(generation));
  const location = handled.code === 'created' ? locationOf(request, handled) : undefined;
  if (location !== undefined) headers.push('location', location);
  if (warning !== undefined && succeeded(handled)) headers.push('longshore-warning', warning);
  const isSame = route.conditional === true && etag !== undefined && isKnown(exchange.head.headers.ifNoneMatch, etag);
  return isSame ? { code: 'not_modified', body: '', headers } : { ...handled, headers };
}
