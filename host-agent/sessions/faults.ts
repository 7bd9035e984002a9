/**
 * The reason of a failed session, for the tenant. Fixed sentences: the engine's messages contain
 * parts and paths of the host. They quote the command, too, which no log of ours has, so they stay
 * in the engine's log. Pure.
 */
import { detailOf, EngineError, isOutage } from '../docker/errors.ts';
import { KiB } from '../../schemas/limits/units.ts';

/** Part of the first output of an exec that is looked at for a fault of the engine. */
const execFaultBytes = 1 * KiB;

const notRunning = 'the container does not run';

/** The messages of runc, crun and Docker 20.10 to 28 about a process that could not be started. */
const startPatterns: readonly (readonly [RegExp, string, code?: 127])[] = [
  [
    /unable to find (?:user|group)|no matching entries in (?:passwd|group)|no such user/i,
    'the container has no such user',
  ],
  [
    /chdir to cwd|working directory|\bcwd\b/i,
    'the process may not work in this folder, or the container has no such folder',
  ],
  [/executable file .*not found|no such file or directory/i, 'the container has no such program', 127],
  [/permission denied|operation not permitted/i, 'the user may not run this program'],
  [/exec format error/i, 'the program is not made for the platform of this host'],
  [/argument list too long/i, 'the command and its variables are too long'],
  [/is not running|is paused|cannot exec in a (?:paused|stopped)/i, notRunning],
];

const otherStart =
  'the process could not be started; the log of the engine on this host has the reason: ask the operator';

/** @param detail the engine's message */
export const startFault = (detail: string): string =>
  startPatterns.find(([pattern]) => pattern.test(detail))?.[1] ?? otherStart;

/** The message for a session that could not be opened, or that the engine broke off. */
export const sessionFault = (error: unknown): string =>
  isOutage(error) ? 'the container engine of the host does not answer' : startFault(detailOf(error));

/** The fields of the fault in the agent's log. */
export const loggedFault = (error: unknown): Readonly<Record<string, unknown>> =>
  error instanceof EngineError && !isOutage(error)
    ? { call: error.call, fault: error.fault, reason: sessionFault(error) }
    : { error };

/**
 * The second pattern covers the engine's whole message; a program may begin with the same words.
 */
const ofEngine =
  /^OCI runtime exec failed: |^unable to find (?:user|group) [^\n]{0,256}: no matching entries in (?:passwd|group) file\r?\n?$/;

/** A process that was not started, with the exit code that shells use. */
export interface NotStarted {
  readonly message: string;
  /** 127: there is no such program. 126: it can't be started, or its user or folder is missing. */
  readonly code: 126 | 127;
}

const notStarted = (detail: string): NotStarted => {
  const [, message = otherStart, code = 126] = startPatterns.find(([pattern]) => pattern.test(detail)) ?? [];
  return { message, code };
};

/**
 * The fault in the first output of a stream. `undefined` if the process has begun. If the engine
 * has opened the stream already, it reports there that the process could not be started.
 */
export function faultInOutput(bytes: Uint8Array): NotStarted | undefined {
  const text = Buffer.from(bytes.subarray(0, execFaultBytes)).toString('utf8');
  return ofEngine.test(text) ? notStarted(text) : undefined;
}

/** The fault in the engine's answer to a start. `undefined` if another fault ends the session. */
export function faultInAnswer(error: unknown): NotStarted | undefined {
  if (isOutage(error) || !(error instanceof EngineError) || error.fault.kind !== 'refused') return undefined;
  const fault = notStarted(error.detail);
  return fault.message === otherStart || fault.message === notRunning ? undefined : fault;
}
