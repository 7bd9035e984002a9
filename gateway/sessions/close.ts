/** The WebSocket close that tells a client why its session ended or was not opened. Pure. */
import { closeCodes } from '../../schemas/api/sessions/control.ts';
import type { SessionEnd } from '../../schemas/wire/session.ts';
import { limits } from '../../schemas/limits.ts';
import { conflict, failure, rateLimited, type Result } from '../http/respond.ts';

/** Bytes of the reason in a close frame of a WebSocket. */
export const closeReasonBytes = 123;

/** A close frame has room for so many bytes of UTF-8 (RFC 6455 section 5.5). */
function withinFrame(text: string): string {
  let fitting = text.slice(0, closeReasonBytes);
  while (Buffer.byteLength(fitting) > closeReasonBytes) fitting = fitting.slice(0, -1);
  return fitting;
}

/** The reason in a word, and then in words. */
export const closeOf = ({ reason, message }: SessionEnd): { readonly code: number; readonly reason: string } => ({
  code: closeCodes[reason],
  reason: withinFrame(message === undefined ? reason : `${reason}: ${message}`),
});

/** The answer over HTTP where the session was not opened. */
export function refusalOf({ reason, message }: SessionEnd): Result {
  switch (reason) {
    case 'not_running':
    case 'refused':
    case 'unsupported':
      return conflict(reason, message ?? reason);
    case 'too_many':
      return rateLimited(limits.streamRetryAfterSeconds, message);
    case 'unauthenticated':
      return failure('unauthenticated');
    default:
      return failure('unavailable', message);
  }
}
