/** The engine's refusals in the words of the contract: which reason, and whether another attempt could help. Pure. */
import { detailOf, EngineError, isOutage } from './docker/errors.ts';
import { limits } from '../schemas/limits.ts';
import type { Outcome, Why } from './memory.ts';

const because = (reason: Why['reason'], message: string): Why => ({ reason, message, exitCode: null });

/** Registries and engines word these differently; the first pattern that fits decides. */
const pullPatterns: readonly (readonly [RegExp, 'image_not_found' | 'image_auth' | 'image_invalid' | 'image_pull'])[] =
  [
    [/toomanyrequests|rate limit/i, 'image_pull'],
    [/repository does not exist|repository name not known|name unknown|NAME_UNKNOWN/i, 'image_not_found'],
    [
      /manifest unknown|MANIFEST_UNKNOWN|manifest for .* not found|not found: manifest|no such manifest/i,
      'image_not_found',
    ],
    [/unauthorized|authentication required|no basic auth|denied|forbidden/i, 'image_auth'],
    [
      /invalid reference|invalid repository|invalid tag|invalid digest|unsupported digest|invalid checksum/i,
      'image_invalid',
    ],
    [/no matching manifest|no match for platform|does not match the specified platform/i, 'image_invalid'],
    [
      /mediaType|media type|manifest.*invalid|verification failed|unsupported manifest|does not match .*digest/i,
      'image_invalid',
    ],
    [/: not found$|^not found|failed to resolve reference .*: .*not found/i, 'image_not_found'],
  ];

/** The first explanation of a failed pull; `image_pull` (the network, the registry's own trouble) alone is tried again. */
export function pullFailure(error: unknown): Outcome {
  const message = detailOf(error);
  if (error instanceof EngineError && error.fault.kind === 'aborted') return { kind: 'changed' };
  if (isOutage(error) && !isPullDeadline(error)) return { kind: 'outage' };
  const reason = pullPatterns.find(([pattern]) => pattern.test(message))?.[1] ?? 'image_pull';
  return reason === 'image_pull'
    ? { kind: 'retry', why: because(reason, message) }
    : { kind: 'failed', why: because(reason, message) };
}

/** The pull itself took too long: the registry's fault, or the image's size, not a hanging engine's. */
const isPullDeadline = (error: unknown): boolean =>
  error instanceof EngineError && error.fault.kind === 'deadline' && error.fault.ms === limits.enginePullMs;

export function createFailure(error: unknown): Outcome {
  if (isOutage(error)) return { kind: 'outage' };
  const isOurFault = error instanceof EngineError && error.fault.kind === 'refused' && error.fault.status === 400;
  return { kind: isOurFault ? 'failed' : 'retry', why: because('create_failed', detailOf(error)) };
}

export function startFailure(error: unknown): Outcome {
  if (isOutage(error)) return { kind: 'outage' };
  const message = detailOf(error);
  const isPort = /port is already allocated|address already in use|cannot assign requested address/i.test(message);
  return { kind: 'retry', why: because(isPort ? 'port_unavailable' : 'start_failed', message) };
}

/** Stop, unpause, drain and remove have no reason of their own in the contract: the message says what it was. */
export function clearFailure(error: unknown): Outcome {
  if (isOutage(error)) return { kind: 'outage' };
  return { kind: 'retry', why: because('engine_unavailable', detailOf(error)) };
}
