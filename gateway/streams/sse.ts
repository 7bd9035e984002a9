/** Server-Sent Events (HTML Living Standard, section 9.2): the frames. Pure. */
import type { EndReason, StreamReset } from '../../schemas/api/frames.ts';

/** A client waits this long before it resumes a stream (`retry:`). */
const streamRetryMs = 2000;

export interface Frame {
  /** The value that a client sends back as `Last-Event-ID`. */
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

export const endFrame = (reason: EndReason): string => encodeFrame({ event: 'end', data: JSON.stringify({ reason }) });

/** A place behind which a stream goes on, and whether that is not the one that its client named. */
export interface Resumed<Position> {
  readonly position: Position;
  readonly reset?: StreamReset;
}

/** Says once that the client may have missed something; without an id, so that it keeps its own. */
export const resetFrames = (reset: StreamReset | undefined): readonly Frame[] =>
  reset === undefined ? [] : [{ event: 'reset', data: JSON.stringify(reset) }];

export const sseHeaders = [
  'content-type',
  'text/event-stream',
  'cache-control',
  'no-store',
  // Without this, nginx would hold frames back.
  'x-accel-buffering',
  'no',
] as const;
