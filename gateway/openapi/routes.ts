/** Public routes: whether the process lives, whether it serves, and what the API is. */
import { routes } from '../../schemas/routes.ts';
import type { Handler } from '../call.ts';
import { openApiDocument } from './document.ts';
import { conditional } from '../http/conditional.ts';
import { failure } from '../http/respond.ts';

/** `Cache-Control` of the OpenAPI document. */
const openApiMaxAgeSeconds = 300;

export function publicRoutes(options: { readonly version: string; readonly ready: () => boolean }) {
  const openApi = JSON.stringify(openApiDocument(routes, options.version));
  const healthz: Handler = () => ({ code: 'ok', body: '{"status":"ok"}' });
  const readyz: Handler = () => (options.ready() ? { code: 'ok', body: '{"status":"ready"}' } : failure('unavailable'));
  const always = ['cache-control', `public, max-age=${openApiMaxAgeSeconds}`];
  const openapi: Handler = (call) => conditional(call, openApi, { whole: [], always });
  return { healthz, readyz, openapi };
}
