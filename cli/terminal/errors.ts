/** Errors that end a command, and the exit codes (docs/cli.md). */
import { oneLine } from '../../schemas/visible.ts';
import { ApiError, ConnectionError, InterruptedError } from '../client/errors.ts';
import { amountText } from './quantities.ts';

export const exitCodes = { done: 0, failed: 1, usage: 2, interrupted: 130 } as const;

/** A command that can't be carried out; the message says what to do. */
export class Refused extends Error {
  override readonly name: string = 'Refused';
}

/** A wrong argument; the message names it and says what is right. */
export class WrongUsage extends Error {
  override readonly name = 'WrongUsage';
}

/** Ends a command that has printed everything, with this exit code. */
export class Exit extends Error {
  readonly code: number;

  constructor(code: number) {
    super(`exit ${code}`);
    this.code = code;
  }
}

export const signInText = 'Sign in with "longshore login --server URL", or replace LONGSHORE_TOKEN where it is set.';

function hintFor({ status, code, detail, details }: ApiError): string {
  if (status === 401) return signInText;
  if (code === 'forbidden' && typeof detail['scope'] === 'string')
    return `The token lacks the scope ${detail['scope']}.`;
  if (code === 'over_quota') {
    const { dimension, requested, max } = detail;
    const textOf = (amount: unknown): string => amountText(String(dimension), Number(amount));
    const why = typeof dimension === 'string' ? `${dimension} would be ${textOf(requested)} of ${textOf(max)}. ` : '';
    return `${why}See "longshore quota"; an operator sets the caps.`;
  }
  if (code === 'not_found') return 'Nothing has this name or id: "ls" of the same command shows what there is.';
  if (details['name']?.includes('has already been taken')) return 'Choose another name, or remove what has it.';
  if (
    Object.values(details)
      .flat()
      .some((text) => text.includes('is not a secret that you have'))
  )
    return 'Set it with "longshore secret set NAME".';
  if (status === 429 || status === 503) return 'Try again soon.';
  return '';
}

/** Text of an error for a person, in one or more lines. */
export function wordsOf(error: unknown): string {
  if (error instanceof ApiError) {
    const faults = Object.entries(error.details).map(
      ([field, texts]) => `  ${oneLine(`${field}: ${texts.join(', ')}`)}`,
    );
    const request = error.requestId === undefined || error.status < 500 ? '' : ` (request ${error.requestId})`;
    const lines = [faults.length > 1 ? 'the request is invalid:' : `${oneLine(error.message)}${request}`];
    return [...lines, ...(faults.length > 1 ? faults : []), hintFor(error)].filter((line) => line !== '').join('\n');
  }
  if (error instanceof ConnectionError) return `${error.message}\nCheck the address with "longshore profile ls".`;
  if (error instanceof Error) return error.message;
  return String(error);
}

export function codeOf(error: unknown): number {
  if (error instanceof Exit) return error.code;
  if (error instanceof WrongUsage) return exitCodes.usage;
  if (error instanceof InterruptedError) return exitCodes.interrupted;
  return exitCodes.failed;
}
