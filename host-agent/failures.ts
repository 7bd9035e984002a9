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

/**
 * Faults of the host, whatever runs on it: its disk, its addresses and ports, its firewall, its engine's storage. Words of
 * Docker 20.10 to 28 and of the kernel.
 */
const hostFaultPatterns: readonly RegExp[] = [
  /no space left on device|disk quota exceeded|read-only file system|input\/output error|structure needs cleaning/i,
  /no available IPv[46] addresses|available, non-overlapping IPv4 address pool|address pools have been fully subnetted/i,
  /all ports are allocated/i,
  /ip6?tables failed|ip6?tables: |nftables|failed to create NAT chain|adding interface .* to bridge .* failed/i,
  /error creating (overlay|aufs|zfs) mount|failed to mount overlay|devicemapper|thin pool/i,
  /too many open files in system|(fork\/exec|clone|resource).*(cannot allocate memory|temporarily unavailable)/i,
];

const isHostFault = (message: string): boolean => hostFaultPatterns.some((pattern) => pattern.test(message));

/** Another attempt may help; after a few in a row a fault of the host is reported as one (memory.ts). */
const retry = (reason: Why['reason'], message: string): Outcome =>
  isHostFault(message)
    ? { kind: 'retry', why: because(reason, message), ofHost: true }
    : { kind: 'retry', why: because(reason, message) };

/** The image is on no registry that may be asked: it may yet be put on this host, or be on another. */
const isAbsentHere = /and its pull_policy is never: not found$/;

/** The first explanation of a failed pull; `image_pull` (the network, the registry's own trouble) alone is tried again. */
export function pullFailure(error: unknown): Outcome {
  const message = detailOf(error);
  if (error instanceof EngineError && error.fault.kind === 'aborted') return { kind: 'changed' };
  if (isOutage(error) && !isPullDeadline(error)) return { kind: 'outage' };
  if (isAbsentHere.test(message)) return { kind: 'retry', why: because('image_not_found', message) };
  const reason = pullPatterns.find(([pattern]) => pattern.test(message))?.[1] ?? 'image_pull';
  return reason === 'image_pull' ? retry(reason, message) : { kind: 'failed', why: because(reason, message) };
}

/** The pull itself took too long: the registry's fault, or the image's size, not a hanging engine's. */
const isPullDeadline = (error: unknown): boolean =>
  error instanceof EngineError && error.fault.kind === 'deadline' && error.fault.ms === limits.enginePullMs;

export function createFailure(error: unknown): Outcome {
  if (isOutage(error)) return { kind: 'outage' };
  const isOurFault = error instanceof EngineError && error.fault.kind === 'refused' && error.fault.status === 400;
  const message = detailOf(error);
  return isOurFault ? { kind: 'failed', why: because('create_failed', message) } : retry('create_failed', message);
}

export function startFailure(error: unknown): Outcome {
  if (isOutage(error)) return { kind: 'outage' };
  const message = detailOf(error);
  const isPort = /port is already allocated|address already in use|cannot assign requested address/i.test(message);
  return retry(isPort ? 'port_unavailable' : 'start_failed', message);
}

/** Stop, unpause, drain and remove have no reason of their own in the contract: the message says what it was. */
export function clearFailure(error: unknown): Outcome {
  if (isOutage(error)) return { kind: 'outage' };
  return { kind: 'retry', why: because('engine_unavailable', detailOf(error)) };
}
