/** Server-Sent Events (HTML Living Standard, section 9.2): the frames. Pure. */
/** A client waits this long before it resumes a stream (`retry:`). */
const streamRetryMs = 2000;

export interface Frame {
  /** What a client sends back as `Last-Event-ID`. */
  readonly id?: string;
  readonly event?: string;
  /** JSON: no line break in it. */
  readonly data: string;
}

export const encodeFrame = ({ id, event, data }: Frame): string =>
  `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}data: ${data}\n\n`;

/** A comment, which clients ignore: shows that the stream is alive. */
export const heartbeat = ':\n\n';

/**
 * Sent first: shows that the stream has begun, and says how long a client waits before it resumes.
 */
export const preamble = `retry: ${streamRetryMs}\n\n`;

/**
 * Why a stream ended, as its last frame says. A client that resumes after `done` only gets `done`
 * again.
 */
export type EndReason = 'done' | 'unauthenticated' | 'stopping';

export const endFrame = (reason: EndReason): string => encodeFrame({ event: 'end', data: JSON.stringify({ reason }) });

export const sseHeaders = [
  'content-type',
  'text/event-stream',
  'cache-control',
  'no-store',
  // Without this, nginx would hold frames back.
  'x-accel-buffering',
  'no',
] as const;
