/**
 * A stream of Server-Sent Events that survives broken connections: it is opened again with the last
 * id, so a resumable list has no gap and no item twice.
 */
import { backoffMs, jitter, sleep } from '../../lib/time/backoff.ts';
import { limits } from '../../schemas/limits.ts';
import { answerOf, type Answer } from './api.ts';
import { ApiError, ConnectionError, InterruptedError, isPassing } from './errors.ts';
import { frameReader, type Frame } from './frames.ts';

/** A gateway sends something every 15 s; a stream that is silent for longer is opened again. */
const clientStreamSilentMs = 45_000;
/** Openings of a stream in a row that brought nothing. */
export const clientStreamAttempts = 20;

/** Opens the stream, after the frame with this id. */
export type Open = (
  header: { readonly 'Last-Event-ID'?: string },
  signal: AbortSignal,
) => Promise<Answer<ReadableStream<Uint8Array> | null>>;

const bounds = { minMs: limits.clientRetryMinMs, maxMs: limits.clientRetryMaxMs };

const silent = `the stream was silent for ${clientStreamSilentMs / 1000} s`;

/** Frames of one connection. */
async function* framesOf(open: Open, lastId: string | undefined, signal: AbortSignal): AsyncGenerator<Frame, void> {
  const connection = new AbortController();
  const leave = (): void => connection.abort();
  signal.addEventListener('abort', leave, { once: true });
  let timer: NodeJS.Timeout | undefined;
  try {
    const { body } = await answerOf(open(lastId === undefined ? {} : { 'Last-Event-ID': lastId }, connection.signal));
    if (body === null) return;
    const read = frameReader();
    const heard = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => connection.abort(new Error(silent)), clientStreamSilentMs);
    };
    heard();
    // The signal ends this pipe itself: Node forgets that it belongs to a request whose `Request`
    // was garbage-collected (nodejs/undici#3644).
    for await (const text of body.pipeThrough(new TextDecoderStream(), { signal: connection.signal })) {
      heard();
      yield* read(text);
    }
  } catch (error) {
    if (signal.aborted) throw new InterruptedError();
    if (error instanceof ApiError || error instanceof ConnectionError) throw error;
    throw new ConnectionError('the server', connection.signal.aborted ? connection.signal.reason : error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', leave);
    leave();
  }
}

/** Value of a frame, decoded from JSON. */
export const valueOf = ({ data }: Pick<Frame, 'data'>): unknown => JSON.parse(data);

interface End {
  readonly reason: string;
}

/** Reason for the end of a stream, if its last frame has one. */
const endOf = (frame: Frame): string | undefined =>
  frame.event === 'end' ? (valueOf(frame) as End).reason : undefined;

interface FollowOptions {
  /** The stream begins behind the frame of this id. */
  readonly after?: string | undefined;
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/**
 * The items of a stream, as `followFrames`. As with every answer, the server is trusted to send
 * what its document says.
 * @param onReset called where the stream does not go on behind the last item: some may be missing
 */
export async function* follow<Item>(
  open: Open,
  signal: AbortSignal,
  { onReset, ...options }: FollowOptions & { readonly onReset?: () => void } = {},
): AsyncGenerator<Item, void> {
  for await (const frame of followFrames(open, signal, options)) {
    if (frame.event === 'reset') onReset?.();
    else yield valueOf(frame) as Item;
  }
}

/**
 * The frames of a stream, until it is over.
 * @throws ApiError if the server refuses, or the token ends; ConnectionError if it is away for too
 * long; InterruptedError
 */
export async function* followFrames(
  open: Open,
  signal: AbortSignal,
  { after, pause = sleep }: FollowOptions = {},
): AsyncGenerator<Frame, void> {
  let lastId = after;
  for (let attempt = 0; ; attempt++) {
    let failure = new ConnectionError('the server', new Error('it ends the stream again and again'));
    try {
      for await (const frame of framesOf(open, lastId, signal)) {
        const reason = endOf(frame);
        if (reason === 'done') return;
        if (reason === 'unauthenticated') {
          throw new ApiError({ status: 401, headers: new Headers() }, { error: 'unauthenticated' });
        }
        if (reason !== undefined) break;
        attempt = 0;
        if (frame.id !== '') lastId = frame.id;
        yield frame;
      }
    } catch (error) {
      if (!isPassing(error)) throw error;
      failure = error instanceof ConnectionError ? error : new ConnectionError('the server', error);
    }
    if (attempt + 1 >= clientStreamAttempts) throw failure;
    await pause(jitter(backoffMs(attempt, bounds)), signal);
    if (signal.aborted) throw new InterruptedError();
  }
}
