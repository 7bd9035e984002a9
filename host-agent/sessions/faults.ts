/**
 * Why a session failed, for the tenant. Fixed sentences: the engine's own words name parts and
 * paths of the host. They quote the command, too, which no log of ours has, so they stay in the
 * engine's log. Pure.
 */
import { limits } from '../../schemas/limits.ts';
import { detailOf, EngineError, isOutage } from '../docker/errors.ts';

/** How runc, crun and Docker 20.10 to 28 word that a process could not be started. */
const startPatterns: readonly (readonly [RegExp, string])[] = [
  [
    /unable to find (?:user|group)|no matching entries in (?:passwd|group)|no such user/i,
    'the container has no such user',
  ],
  [
    /chdir to cwd|working directory|\bcwd\b/i,
    'the process may not work in this folder, or the container has no such folder',
  ],
  [/executable file .*not found|no such file or directory/i, 'the container has no such program'],
  [/permission denied|operation not permitted/i, 'the user may not run this program'],
  [/exec format error/i, 'the program is not made for the platform of this host'],
  [/argument list too long/i, 'the command and its variables are too long'],
  [/is not running|is paused|cannot exec in a (?:paused|stopped)/i, 'the container does not run'],
];

const otherStart =
  'the process could not be started; the log of the engine on this host has the reason: ask the operator';

/** @param detail what the engine says of it */
export const startFault = (detail: string): string =>
  startPatterns.find(([pattern]) => pattern.test(detail))?.[1] ?? otherStart;

/** Of a session that could not be opened, or that the engine broke off. */
export const sessionFault = (error: unknown): string =>
  isOutage(error) ? 'the container engine of the host does not answer' : startFault(detailOf(error));

/** What the agent's log says of it. */
export const loggedFault = (error: unknown): Readonly<Record<string, unknown>> =>
  error instanceof EngineError && !isOutage(error)
    ? { call: error.call, fault: error.fault, reason: sessionFault(error) }
    : { error };

const ofEngine = /^OCI runtime exec failed: /;

/**
 * The first output of an exec, with a sentence in place of the engine's words: where it has opened
 * the stream already, it says there that the process could not be started.
 */
export function firstOutput(bytes: Uint8Array): Uint8Array {
  const text = Buffer.from(bytes.subarray(0, limits.execFaultBytes)).toString('utf8');
  return ofEngine.test(text) ? Buffer.from(`${startFault(text)}\r\n`) : bytes;
}
