/**
 * A step that cannot continue throws the answer to the request, so that later steps need no check.
 */
import type { Log } from '../../../lib/log.ts';
import type { RouteName } from '../../../schemas/routes.ts';
import type { Call, CallOf, Handled, HandlerOf } from '../../call.ts';
import { PoolBusy } from '../pki/pool.ts';
import { SealError } from '../../vault/vault.ts';
import { failure, type Result } from '../../http/respond.ts';

export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly result: Result;

  constructor(result: Result) {
    super(`answered ${result.code}`);
    this.result = result;
  }
}

/** The answer to send for an error that a handler threw; undefined for a bug. */
function resultOf(error: unknown, call: Call, log: Log): Result | undefined {
  if (error instanceof Refusal) return error.result;
  if (error instanceof PoolBusy)
    return failure('unavailable', 'the gateway is busy making keys and bundles; try again');
  if (error instanceof SealError) {
    log.error('secret_open_failed', { requestId: call.requestId, route: call.route, why: error.why });
    // Another gateway may have the key.
    return error.why === 'unknown_key' ? failure('unavailable') : failure('internal');
  }
  return undefined;
}

/** Makes a handler whose steps may throw their answer. */
export const refusing =
  <R extends RouteName>(log: Log, handler: (call: CallOf<R>) => Promise<Handled>): HandlerOf<R> =>
  async (call) => {
    try {
      return await handler(call);
    } catch (error) {
      const result = resultOf(error, call, log);
      if (result === undefined) throw error;
      return result;
    }
  };
