/**
 * Explains the failure of a step: the API's reason, a message, and whether another attempt could
 * help. A tenant reads the message, so the text is fixed: the engine's message may quote a
 * registry's answer, a path or an address of the host. It is the `detail`, for the agent's log
 * alone. Pure.
 */
import { limits } from '../../../schemas/limits.ts';
import { detailOf, EngineError, isOutage } from '../../docker/errors.ts';
import { PrivateImageError, PrivateImagesFull, RefusedPull } from '../../images/pulls.ts';
import { RegistryError } from '../../images/registries.ts';
import type { Outcome, Why } from '../step.ts';
import { minutes } from '../../../schemas/limits/units.ts';

/** The first pause after a registry has limited the rate of pulls; it doubles. */
const pullLimitedMs = 1 * minutes;

interface Words {
  readonly reason: Why['reason'];
  readonly message: string;
}
/**
 * The first pattern that matches decides: registries, kernels and engine versions have different
 * messages for the same fault.
 */
type Patterns = readonly (readonly [RegExp, Words])[];

const ofOperator = 'the agent’s log on this host has the engine’s own message: ask the operator';

const unreachable: Words = { reason: 'image_pull', message: 'the registry cannot be reached from this host' };

const notThere =
  'the registry has no such repository, tag or digest: correct the image, or push it and start the container';
const otherPlatform: Words = {
  reason: 'image_invalid',
  message: 'the image is not made for the platform of this host: declare one that has it',
};
const isRateLimit = /toomanyrequests|rate limit|429 Too Many/i;

const pullPatterns: Patterns = [
  // Messages from the engine's forward proxy: Go gives the status text of the refused CONNECT
  // without its number.
  [/": (Forbidden|Proxy Authentication Required)$/, unreachable],
  [
    isRateLimit,
    {
      reason: 'image_pull',
      message:
        'the registry limits the rate of pulls, and each attempt counts: the agent waits a minute at least; a login ' +
        'for this registry may have a higher limit',
    },
  ],
  [
    /unable to decode token response|error parsing HTTP 200 response|invalid character '<' looking/i,
    { reason: 'image_pull', message: 'something other than a registry answers in its place, such as a proxy' },
  ],
  [
    /repository does not exist|repository name not known|name unknown|NAME_UNKNOWN|manifest unknown|MANIFEST_UNKNOWN|manifest for .* not found|not found: manifest|no such manifest/i,
    { reason: 'image_not_found', message: notThere },
  ],
  [
    /unauthorized|authentication required|no basic auth|denied|forbidden/i,
    {
      reason: 'image_auth',
      message: 'the registry refuses access to this image: put a login for it, or correct the name',
    },
  ],
  [
    /invalid reference|invalid repository|invalid tag|invalid digest|unsupported digest|invalid checksum/i,
    { reason: 'image_invalid', message: 'the reference of the image or its digest is not valid: correct it' },
  ],
  [
    /no matching manifest|no match for platform|does not match the specified platform|operating system ["\\]/i,
    otherPlatform,
  ],
  [
    /max depth exceeded/i,
    { reason: 'image_invalid', message: 'the image has more layers than the engine of this host takes; rebuild it' },
  ],
  [
    /mediaType|media type|manifest.*invalid|verification failed|unsupported manifest|does not match .*digest/i,
    {
      reason: 'image_invalid',
      message: 'the manifest of the image is not valid, or its content has another digest: push it again',
    },
  ],
  [
    /: not found$|^not found|failed to resolve reference .*: .*not found/i,
    { reason: 'image_not_found', message: notThere },
  ],
  [
    /x509|certificate|tls:|server gave HTTP response to HTTPS client/i,
    {
      reason: 'image_pull',
      message: 'no TLS connection to the registry: this host does not accept its certificate, or it has none',
    },
  ],
  [
    /timeout|timed out|deadline exceeded|context canceled/i,
    { reason: 'image_pull', message: 'the registry did not answer in time' },
  ],
  [
    /no such host|dial tcp|connection refused|connection reset|network is unreachable|no route to host|server misbehaving|\bEOF\b/i,
    unreachable,
  ],
];
const otherPull: Words = { reason: 'image_pull', message: `the pull failed; ${ofOperator}` };
const stalledPull: Words = { reason: 'image_pull', message: 'the registry stopped sending data' };
const slowPull: Words = {
  reason: 'image_pull',
  message: `the pull took longer than ${limits.enginePullMs / 3_600_000} hours`,
};

/**
 * Faults of the host as a whole: its disk, addresses, ports, firewall, or the engine's storage. The
 * patterns match messages of Docker 20.10 to 28 and of the kernel.
 */
const hostFaultPatterns: readonly (readonly [RegExp, string])[] = [
  [/no space left on device|disk quota exceeded/i, 'the disk of this host is full'],
  [
    /read-only file system|input\/output error|structure needs cleaning/i,
    'the disk of this host fails or takes no writes',
  ],
  [
    /no available IPv[46] addresses|available, non-overlapping IPv4 address pool|address pools have been fully subnetted/i,
    'this host has no address left for a container',
  ],
  [/all ports are allocated/i, 'this host has no port left to publish'],
  [
    /ip6?tables failed|ip6?tables: |nftables|failed to create NAT chain|adding interface .* to bridge .* failed/i,
    'the network or the firewall of this host takes no more containers',
  ],
  [
    /error creating (overlay|aufs|zfs) mount|failed to mount overlay|devicemapper|thin pool/i,
    "the storage of this host's engine fails",
  ],
  [
    /too many open files in system|(fork\/exec|clone|resource).*(cannot allocate memory|temporarily unavailable)/i,
    'this host is out of memory or of processes',
  ],
];

/** Engines report it at the create, or at the start. */
const noCommand = (reason: Why['reason']): Patterns[number] => [
  /no command specified/i,
  { reason, message: 'the image names no program, and none is declared: set process.command' },
];

const createPatterns: Patterns = [
  noCommand('create_failed'),
  [/operating system ["\\]/i, otherPlatform],
  [
    /memory limit too low|minimum memory limit|minimum allowed memory/i,
    { reason: 'create_failed', message: 'mem_limit is too low for this host: raise it' },
  ],
  [
    /duplicate mount point/i,
    {
      reason: 'create_failed',
      message: 'two of files, secrets, process.tmpfs and the volumes of the image have the same path: change one',
    },
  ],
  [
    /working director/i,
    { reason: 'create_failed', message: 'its folder is none that an image can have: correct process.working_dir' },
  ],
];

const startPatterns: Patterns = [
  [
    /port is already allocated|address already in use|cannot assign requested address/i,
    {
      reason: 'port_unavailable',
      message:
        'a port could not be published on this host: it is in use, or PUBLISH_ADDRESS is not an address of the host: ' +
        'ask the operator',
    },
  ],
  [
    /exec format error/i,
    {
      reason: 'start_failed',
      message: 'its program is not made for the platform of this host: declare an image that is',
    },
  ],
  [
    /chdir to cwd|working directory|\bcwd\b/i,
    {
      reason: 'start_failed',
      message: 'its folder is none in the image, or its user may not work there: correct process.working_dir',
    },
  ],
  [
    /trying to mount a directory onto a file|mount.*not a directory/i,
    {
      reason: 'start_failed',
      message: 'a file of files or secrets has the path of a folder of the image: choose another path',
    },
  ],
  noCommand('start_failed'),
  [
    /executable file not found|exec: .*no such file or directory/i,
    {
      reason: 'start_failed',
      message:
        'the image has no such program (executable file not found): correct process.entrypoint and process.command, or ' +
        'the image',
    },
  ],
  [
    /exec: .*permission denied|starting container process caused: permission denied/i,
    {
      reason: 'start_failed',
      message: 'its program is not executable (permission denied): correct process, or the image',
    },
  ],
  [
    /unable to find (user|group)|no matching entries in (passwd|group) file/i,
    { reason: 'start_failed', message: 'the image has no such user or group: correct process.user, or the image' },
  ],
  [
    /container init was OOM-killed|memory limit too low|minimum memory limit/i,
    { reason: 'start_failed', message: 'mem_limit is too low to start it: raise it' },
  ],
];
const otherStart: Words = { reason: 'start_failed', message: `the engine could not start it; ${ofOperator}` };
const otherCreate: Words = { reason: 'create_failed', message: `the engine refused to create it; ${ofOperator}` };
const otherClear: Words = {
  reason: 'engine_unavailable',
  message: `the engine could not stop or remove it; ${ofOperator}`,
};

const otherLimit: Words = {
  reason: 'engine_unavailable',
  message: `the engine could not set its limits; ${ofOperator}`,
};

const otherDrain: Words = {
  reason: 'engine_unavailable',
  message: `its log cannot be saved, so the container stays for now; ${ofOperator}`,
};

const wordsOf = (patterns: Patterns, detail: string, other: Words): Words =>
  patterns.find(([pattern]) => pattern.test(detail))?.[1] ?? other;
const because = ({ reason, message }: Words): Why => ({ reason, message, exitCode: null });

/** With the version of the login, so that its owner knows whether another one is newer. */
const refusedWith = (login: number | undefined, words: Words): Why =>
  login === undefined ? because(words) : { ...because(words), login };

/** The words for the engine's error of a failed start, which the container's state keeps. */
export const startWords = (detail: string): Words => {
  const ofHost = hostFaultPatterns.find(([pattern]) => pattern.test(detail));
  return ofHost === undefined
    ? wordsOf(startPatterns, detail, otherStart)
    : { reason: 'start_failed', message: ofHost[1] };
};

/**
 * Another attempt may help. After a few in a row, the report names a fault of the host
 * (restart-state.ts).
 */
function retry(words: Words, detail: string): Outcome {
  const ofHost = hostFaultPatterns.find(([pattern]) => pattern.test(detail));
  return ofHost === undefined
    ? { kind: 'retry', why: because(words), fault: 'container', detail }
    : { kind: 'retry', why: because({ ...words, message: ofHost[1] }), fault: 'host', detail };
}

/** With the pull policy `never` the image may still appear on this host, or be on another one. */
const isAbsentHere = /and its pull_policy is never: not found$/;
const absentHere: Words = {
  reason: 'image_not_found',
  message: 'the image is not on this host, and its pull_policy is never: not found',
};

/**
 * Explains a failed pull; only `image_pull` (a fault of the network or the registry) is tried
 * again.
 */
export function pullFailure(error: unknown): Outcome {
  const detail = detailOf(error);
  if (error instanceof RegistryError) return registryFailure(error);
  if (error instanceof EngineError && error.fault.kind === 'aborted') return { kind: 'changed' };
  if (error instanceof EngineError && error.fault.kind === 'stalled') return retry(stalledPull, detail);
  if (isPullDeadline(error)) return retry(slowPull, detail);
  if (isOutage(error)) return { kind: 'outage' };
  if (isAbsentHere.test(detail)) return { kind: 'retry', why: because(absentHere), fault: 'container', detail };
  if (error instanceof PrivateImageError)
    return { kind: 'failed', why: refusedWith(error.version, privateHere), detail };
  if (error instanceof PrivateImagesFull) return retry(privateFull, detail);
  const words = wordsOf(pullPatterns, detail, otherPull);
  const isAccess = words.reason === 'image_auth' || isAccessOrName.test(detail);
  if (isAccess && error instanceof RefusedPull) return accessRefused(error, detail);
  if (words.reason !== 'image_pull') return { kind: 'failed', why: because(words), detail };
  const again = retry(words, detail);
  return again.kind === 'retry' && isRateLimit.test(detail) ? { ...again, pauseMs: pauseIn(detail) } : again;
}

/**
 * The pause that a registry asks for, in milliseconds, from the engine's message that quotes it; at
 * most an hour.
 */
function pauseIn(detail: string): number {
  const [, digits, unit = 's'] =
    /retry-?\s?after["']?\s*[:=]?\s*["']?(\d+(?:\.\d+)?)\s*(ms|µs|us|s|m|h)?/i.exec(detail) ?? [];
  const asked = digits === undefined ? 0 : Number(digits) * (unitMs[unit.toLowerCase()] ?? 0);
  return Math.min(Math.max(asked, pullLimitedMs), limits.pullLimitedMaxMs);
}
const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

const privateHere: Words = {
  reason: 'image_auth',
  message:
    'this host has the image by a login of another tenant, and nothing shows that this one may have it: ask the ' +
    'operator, who can name the registry in REGISTRIES_ALLOWED',
};

const privateFull: Words = {
  reason: 'image_pull',
  message:
    `this host has ${limits.privateImagesOfTenant} private images of this tenant, the most that it keeps apart from ` +
    'other tenants: the agent tries again when it has removed unused ones',
};

/** Docker Hub does not tell which of the two it is. */
const isAccessOrName = /may require 'docker login'/;

/** Final only if the newest login was tried, or there is none. */
function accessRefused({ login, version }: RefusedPull, detail: string): Outcome {
  const words = (message: string): Words => ({ reason: 'image_auth', message });
  const final = (message: string): Outcome => ({ kind: 'failed', why: refusedWith(version, words(message)), detail });
  switch (login) {
    case 'login':
      return final('the registry refuses the login, or it has no access to this repository');
    case 'none':
      return final(needsLogin);
    case 'old':
      return retry(
        words('the registry refuses a login that may be out of date; the agent asks for the newest'),
        detail,
      );
    case 'unknown':
      return retry(words('the registry refuses access, and the control plane could not be asked for a login'), detail);
  }
}

const needsLogin =
  'the registry refuses access to this image without a login, or has no such repository: put a login for this registry, ' +
  'or correct the name';

function registryFailure({ fault, message: detail }: RegistryError): Outcome {
  const refused = (message: string): Outcome => ({
    kind: 'failed',
    why: because({ reason: 'registry_not_allowed', message }),
    detail,
  });
  switch (fault) {
    case 'not_allowed':
      return refused('images of this registry are not allowed on this host');
    case 'private_address':
      return refused('this registry has an address of a private network, which is not allowed on this host');
    case 'unresolved':
      return retry({ reason: 'image_pull', message: 'the name of the registry does not resolve on this host' }, detail);
  }
}

/**
 * The pull itself took too long: the cause is the registry or the image's size, and not a hanging
 * engine.
 */
const isPullDeadline = (error: unknown): boolean =>
  error instanceof EngineError && error.fault.kind === 'deadline' && error.fault.ms === limits.enginePullMs;

/** The engine sees other files than the agent. */
const isSourceUnseen = /bind source path does not exist/i;
const unseenFiles: Words = {
  reason: 'secret_missing',
  message:
    'the engine of this host does not see the files of secrets, or of the document (SECRET_FILES_DIR, STATE_DIR): ask ' +
    'the operator',
};

export function createFailure(error: unknown): Outcome {
  if (isOutage(error)) return { kind: 'outage' };
  if (isSourceUnseen.test(detailOf(error))) return retry(unseenFiles, detailOf(error));
  const isOurFault = error instanceof EngineError && error.fault.kind === 'refused' && error.fault.status === 400;
  const detail = detailOf(error);
  const words = wordsOf(createPatterns, detail, otherCreate);
  return isOurFault ? { kind: 'failed', why: because(words), detail } : retry(words, detail);
}

/**
 * The message of Docker 20.10. An engine that was killed while it started a container has left a
 * task of it in containerd, which it does not know, and never starts this container again.
 */
export const isTaskLeft = (detail: string): boolean => /task [0-9a-f]{12,}:? already exists/i.test(detail);

export function startFailure(error: unknown): Outcome {
  if (isOutage(error)) return { kind: 'outage' };
  const detail = detailOf(error);
  return retry(wordsOf(startPatterns, detail, otherStart), detail);
}

/** The container stays until its last log lines are safe, or the agent gives them up. */
export function drainFailure(error: unknown): Outcome {
  if (isOutage(error)) return { kind: 'outage' };
  return { kind: 'retry', why: because(otherDrain), fault: 'container', detail: detailOf(error) };
}

/** For example, more memory is in use than is declared. The container runs on. */
export function limitFailure(error: unknown): Outcome {
  return isOutage(error) ? { kind: 'outage' } : limitsKept(detailOf(error));
}

export const limitsKept = (detail = 'the engine keeps other limits than it was told'): Outcome => ({
  kind: 'retry',
  why: because(otherLimit),
  fault: 'container',
  detail,
});

/** The API has no reason for a failed stop, unpause or remove: the message tells them apart. */
export function clearFailure(error: unknown): Outcome {
  if (isOutage(error)) return { kind: 'outage' };
  const detail = detailOf(error);
  return { kind: 'retry', why: because(otherClear), fault: 'container', detail };
}
