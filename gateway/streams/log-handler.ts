/** `GET /:id/logs`: the lines that are kept, or a stream of them. */
import type { Log } from '../../lib/log.ts';
import type { AskOwner } from '../../lib/rpc/partition-client.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { limits } from '../../schemas/limits.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import { tenantOf, type CallOf, type HandlerOf } from '../call.ts';
import { decodeLogCursor, encodeLogCursor } from '../../schemas/api/cursor.ts';
import type { StreamReset } from '../../schemas/api/frames.ts';
import type { HostKey } from '../../schemas/ids.ts';
import { pageResult, wrongCursor } from '../http/pages.ts';
import { invalid, type Result } from '../http/respond.ts';
import type { Showing, StreamHost } from './host.ts';
import type { LogPage, LogPosition, LogReader, NewestLines } from './logs.ts';
import { follow, pastOf, readNow, traceOf, wantsAnswer, type Past } from './requests.ts';
import { resetFrames } from './sse.ts';
import type { ContainerTrace } from '../../schemas/wire/answers.ts';

export interface LogRouteOptions {
  readonly ask: AskOwner;
  readonly logs: Pick<LogReader, 'newest' | 'past' | 'after' | 'resume'>;
  readonly streams: Pick<StreamHost, 'withPermit' | 'follow'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** A line's number in `Last-Event-ID`; undefined for a header of another form. */
const sequenceOf = (lastEventId: string): number | undefined =>
  /^\d{1,16}$/.test(lastEventId) ? Number(lastEventId) : undefined;

type LogRoute = 'container.logs' | 'container.logs.stream';

const ended: Showing = { frames: [], more: false, ended: true };

/** One client that follows a container's lines. */
class LogFollower {
  readonly #options: LogRouteOptions;
  readonly #call: CallOf<LogRoute>;
  readonly #limit: number;
  readonly #lastEventId: string | undefined;
  /** Waits to be sent. */
  #reset: StreamReset | undefined;
  #position: LogPosition | undefined;
  #quietSinceMs: number;

  constructor(options: LogRouteOptions, call: CallOf<LogRoute>, limit: number) {
    this.#options = options;
    this.#call = call;
    this.#limit = limit;
    this.#lastEventId = call.exchange.head.headers.lastEventId;
    this.#quietSinceMs = options.clock.monotonicMs();
  }

  /**
   * The lines since the last call. The stream ends when the container is gone and no line has come
   * for as long as an agent drains.
   */
  async show(): Promise<Showing> {
    const { clock } = this.#options;
    const traced = await traceOf(this.#options, this.#call, 'watch', clock.monotonicMs() + limits.watchAskMs);
    // Gone for seven days: its owner has forgotten it.
    if (!traced.ok && traced.outcome.code === 'not_found') return ended;
    if (!traced.ok) throw new Error(`trace: ${traced.outcome.code}`);
    const page = await this.#read(traced.trace);
    // A host that left the history keeps its position: the container may return to it.
    this.#position = new Map([...(this.#position ?? []), ...page.position]);
    if (page.lines.length > 0) this.#quietSinceMs = clock.monotonicMs();
    const reset = resetFrames(this.#reset);
    this.#reset = undefined;
    return {
      frames: [...reset, ...page.lines.map(({ seq, json }) => ({ id: String(seq), event: 'log', data: json }))],
      more: page.more,
      ended: traced.trace.gone && !page.more && clock.monotonicMs() - this.#quietSinceMs >= limits.logDrainMs,
    };
  }

  async #read({ history }: ContainerTrace): Promise<LogPage> {
    const { logs } = this.#options;
    const [tenant, id] = [tenantOf(this.#call), this.#call.params.id];
    if (this.#position === undefined && this.#lastEventId !== undefined) {
      const resumed = await logs.resume(tenant, id, history, sequenceOf(this.#lastEventId));
      this.#position = resumed.position;
      this.#reset = resumed.reset;
    }
    return this.#position === undefined
      ? logs.newest(tenant, id, history, this.#limit)
      : logs.after(tenant, id, history, this.#position);
  }
}

function listOf({ lines, older }: NewestLines): Result {
  const next = older === undefined ? '' : `,"next_cursor":"${encodeLogCursor(older)}"`;
  return { code: 'ok', body: `{"data":[${lines.map(({ json }) => json).join(',')}]${next}}` };
}

async function pageOf(
  { logs }: LogRouteOptions,
  call: CallOf<'container.logs'>,
  history: readonly HostKey[],
  { isReversed, ...past }: Past,
): Promise<Result> {
  const { cursor: text, contains, limit } = call.query;
  const after = text === undefined ? undefined : decodeLogCursor(text);
  if (text !== undefined && after === undefined) return wrongCursor;
  const wish = { ...past, contains, after, limit };
  const { entries, next } = await logs.past(tenantOf(call), call.params.id, history, wish);
  const listed = isReversed ? entries.toReversed() : entries;
  return pageResult(listed, next === undefined ? undefined : encodeLogCursor(next));
}

export const logHandler =
  (options: LogRouteOptions): HandlerOf<'container.logs'> =>
  async (call) => {
    const past = pastOf(call, { contains: call.query.contains });
    if (past !== undefined && 'faults' in past) return invalid(past.faults);
    const traced = await traceOf(options, call, 'read', call.deadlineMs);
    if (!traced.ok) return traced.outcome;
    const { history } = traced.trace;
    const [tenant, id, limit] = [tenantOf(call), call.params.id, call.query.limit];
    if (past !== undefined) return readNow(options, call, () => pageOf(options, call, history, past));
    if (wantsAnswer(call)) {
      return readNow(options, call, async () => listOf(await options.logs.newest(tenant, id, history, limit)));
    }
    return streamOf(options, call);
  };

function streamOf(options: LogRouteOptions, call: CallOf<LogRoute>) {
  const follower = new LogFollower(options, call, call.query.limit);
  return follow(options, call, subjects.hostLog('*', tenantOf(call), call.params.id), () => follower.show());
}

export const logStreamHandler =
  (options: LogRouteOptions): HandlerOf<'container.logs.stream'> =>
  async (call) => {
    const traced = await traceOf(options, call, 'read', call.deadlineMs);
    return traced.ok ? streamOf(options, call) : traced.outcome;
  };
