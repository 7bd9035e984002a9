/** The configured engine, or node:http if uWebSockets.js does not load here; the log says why. */
import type { Log } from '../../../lib/log.ts';
import type { Dispatch, EngineName, EngineOptions, HttpEngine } from './engine.ts';
import { nodeEngine } from './node.ts';
import { uwsEngine } from './uws.ts';
import { loadUws } from './uws-binary.ts';

export async function createEngine(
  wanted: EngineName,
  dispatch: Dispatch,
  { log, ...options }: EngineOptions & { readonly log: Log },
): Promise<HttpEngine> {
  if (wanted === 'node') return nodeEngine(dispatch, options);
  const loaded = loadUws();
  if (loaded.ok) return uwsEngine(loaded, dispatch, options);
  log.warn('http_engine_fallback', { wanted, why: loaded.why, error: loaded.error });
  return nodeEngine(dispatch, options);
}
