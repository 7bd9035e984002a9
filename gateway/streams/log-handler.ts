/** `GET /:id/logs`: the newest lines, or a stream of them. */
import { limits } from '../../schemas/limits.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import { tenantOf, type CallOf, type HandlerOf, type Services } from '../http/call.ts';
import type { Result } from '../http/respond.ts';
import type { Showing } from './host.ts';
import type { LogPage, LogPosition } from './logs.ts';
import { follow, readNow, traceOf, wantsAnswer } from './requests.ts';
import type { ContainerTrace } from '../../schemas/wire/answers.ts';

/** A line's number in `Last-Event-ID`; undefined for a header of another form. */
const sequenceOf = (lastEventId: string | undefined): number | undefined =>
  lastEventId !== undefined && /^\d{1,16}$/.test(lastEventId) ? Number(lastEventId) : undefined;

const ended: Showing = { frames: [], more: false, ended: true };

/** One client that follows a container's lines. */
class LogFollower {
  readonly #services: Services;
  readonly #call: CallOf<'container.logs'>;
  readonly #limit: number;
  readonly #resumeSeq: number | undefined;
  #position: LogPosition | undefined;
  #quietSinceMs: number;

  constructor(services: Services, call: CallOf<'container.logs'>, limit: number) {
    this.#services = services;
    this.#call = call;
    this.#limit = limit;
    this.#resumeSeq = sequenceOf(call.exchange.head.headers.lastEventId);
    this.#quietSinceMs = services.clock.monotonicMs();
  }

  /**
   * The lines since the last call. The stream ends when the container is gone and no line has come
   * for as long as an agent drains.
   */
  async show(): Promise<Showing> {
    const { clock } = this.#services;
    const traced = await traceOf(this.#services, this.#call, 'watch', clock.monotonicMs() + limits.watchAskMs);
    // Gone for seven days: its owner has forgotten it.
    if (!traced.ok && traced.outcome.code === 'not_found') return ended;
    if (!traced.ok) throw new Error(`trace: ${traced.outcome.code}`);
    const page = await this.#read(traced.trace);
    // A host that left the history keeps its position: the container may return to it.
    this.#position = new Map([...(this.#position ?? []), ...page.position]);
    if (page.lines.length > 0) this.#quietSinceMs = clock.monotonicMs();
    return {
      frames: page.lines.map(({ seq, json }) => ({ id: String(seq), event: 'log', data: json })),
      more: page.more,
      ended: traced.trace.gone && !page.more && clock.monotonicMs() - this.#quietSinceMs >= limits.logDrainMs,
    };
  }

  async #read({ history }: ContainerTrace): Promise<LogPage> {
    const { logs } = this.#services;
    const [tenant, id] = [tenantOf(this.#call), this.#call.params.id];
    if (this.#position === undefined && this.#resumeSeq !== undefined) {
      this.#position = await logs.positionAfter(tenant, id, history, this.#resumeSeq);
    }
    return this.#position === undefined
      ? logs.newest(tenant, id, history, this.#limit)
      : logs.after(tenant, id, history, this.#position);
  }
}

const listOf = ({ lines }: LogPage): Result => ({
  code: 'ok',
  body: `{"data":[${lines.map(({ json }) => json).join(',')}]}`,
});

export const logHandler =
  (services: Services): HandlerOf<'container.logs'> =>
  async (call) => {
    const traced = await traceOf(services, call, 'read', call.deadlineMs);
    if (!traced.ok) return traced.outcome;
    const { history } = traced.trace;
    const [tenant, id, limit] = [tenantOf(call), call.params.id, call.query.limit];
    if (wantsAnswer(call)) {
      return readNow(services, call, async () => listOf(await services.logs.newest(tenant, id, history, limit)));
    }
    const follower = new LogFollower(services, call, limit);
    return follow(services, call, subjects.hostLog('*', tenant, id), () => follower.show());
  };
