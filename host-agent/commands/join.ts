/** `host-agent join`: enrols this host, and ends. */
import { text } from 'node:stream/consumers';
import type { Readable } from 'node:stream';
import { ConfigurationError, readSettingFile } from '../../lib/config.ts';
import type { Log } from '../../lib/log.ts';
import { jittered } from '../../lib/time/backoff.ts';
import { retry } from '../../lib/time/retry.ts';
import type { Clock } from '../../lib/time/clock.ts';
import {
  askGateway,
  decodeIdentity,
  EnrolmentRefused,
  hasExpired,
  identityPath,
  isTooOld,
  keepIdentity,
  keyFrom,
  loadIdentity,
  loadSeed,
  type Enrolling,
  type Identity,
} from '../link/identity/identity.ts';
import { readIfPresent } from '../disk/files.ts';
import { joinTokenOf, type AgentSettings } from '../settings.ts';
import type { TokenSource } from './arguments.ts';
import { reasonOf } from './reason.ts';
import { takeStateFolder, writtenOrRefused } from './state-folder.ts';

export interface Joining {
  readonly settings: AgentSettings;
  readonly token: TokenSource;
  readonly url: string | undefined;
  readonly stdin: Readable;
  readonly clock: Clock;
  /** The time for which the command keeps trying while the gateway does not answer. */
  readonly patienceMs: number;
  readonly say: (line: string) => void;
  readonly log: Log;
}

/**
 * A host that is enrolled stays as it is.
 * @throws ConfigurationError that says what to do
 */
export async function join(given: Joining): Promise<void> {
  const { settings, clock, say, log } = given;
  const { STATE_DIR: stateDir } = settings;
  const known = await peekIdentity(stateDir);
  // Its agent may be running: nothing is written.
  if (known !== undefined && !isTooOld(known) && !hasExpired(known, clock.nowMs())) return stay(given, known);

  const lock = await takeStateFolder(stateDir);
  try {
    // Sets a damaged one aside.
    await loadIdentity(stateDir, log);
    const joinToken = await tokenOf(given);
    if (joinToken === undefined || joinToken === '') {
      throw new ConfigurationError(['a join token is required: --token-file FILE, or LONGSHORE_JOIN_TOKEN_FILE']);
    }
    const seed = await writtenOrRefused(stateDir, () => loadSeed(stateDir));
    const gatewayUrl = given.url ?? settings.LONGSHORE_URL;
    const backoff = { minMs: settings.RETRY_MIN, maxMs: settings.RETRY_MAX };
    const identity = await enrolled({ gatewayUrl, joinToken, publicKey: keyFrom(seed).getPublicKey(), backoff }, given);
    await kept(stateDir, identity);
    say(`This host is enrolled as ${identity.host}, in region ${identity.region} of cluster ${identity.cluster}.`);
    say('Its agent starts without a token now.');
  } finally {
    await lock.stop();
  }
}

/** `undefined` if there is none that can be read. */
async function peekIdentity(stateDir: string): Promise<Identity | undefined> {
  const bytes = await readIfPresent(identityPath(stateDir));
  try {
    return bytes === undefined ? undefined : decodeIdentity(bytes);
  } catch {
    return undefined;
  }
}

async function stay(given: Joining, { host, cluster }: Identity): Promise<void> {
  // The file of a used token may be gone.
  const named = hostOf(await tokenOf(given).catch(() => undefined));
  if (named !== undefined && named !== host) {
    throw new ConfigurationError([
      `this state folder is that of host ${host}, and the token is for host ${named}: ` +
        'give each host a STATE_DIR of its own; the join token has not been used',
    ]);
  }
  given.say(`This host is enrolled already, as ${host} in cluster ${cluster}; nothing was changed.`);
}

/** The host that a token names; `undefined` if it names none. */
const hostOf = (token: string | undefined): string | undefined => /^lsj_([a-z0-9-]+)_/.exec(token ?? '')?.[1];

async function tokenOf({ settings, token: source, stdin }: Joining): Promise<string | undefined> {
  switch (source.kind) {
    case 'argument':
      return source.token.trim();
    case 'file':
      return readSettingFile('--token-file', source.path);
    case 'stdin':
      return (await text(stdin)).trim();
    case 'settings':
      return joinTokenOf(settings);
  }
}

/** Each attempt has a deadline of its own, and a signal of the operator ends the process. */
const never = new AbortController();

async function enrolled(options: Enrolling, { patienceMs, clock, say }: Joining): Promise<Identity> {
  const untilMs = clock.monotonicMs() + patienceMs;
  const onFailure = (error: unknown, attempt: number): void => {
    if (error instanceof EnrolmentRefused) throw new ConfigurationError([error.message]);
    const why = `the gateway at ${options.gatewayUrl} does not enrol this host (${reasonOf(error)})`;
    if (clock.monotonicMs() >= untilMs) {
      throw new ConfigurationError([
        `${why}: check LONGSHORE_URL (or --url), and that this machine reaches it; then join again with the same token`,
      ]);
    }
    if (attempt === 0) say(`Waiting: ${why}`);
  };
  return retry(() => askGateway(options, never.signal), { pauseMs: jittered(options.backoff), onFailure });
}

/** The token is used by now, but for this host's key alone: the same one enrols it again. */
async function kept(stateDir: string, identity: Identity): Promise<void> {
  try {
    await keepIdentity(stateDir, identity);
  } catch (error) {
    throw new ConfigurationError([
      `STATE_DIR: the identity cannot be kept in ${stateDir} (${reasonOf(error)}): ` +
        'free space on its disk or make it writable, and join again with the same token',
    ]);
  }
}
