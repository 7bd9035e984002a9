/**
 * `GET /logs`: the lines of several containers, as one list in pages. Each container's lines are
 * subjects of their own, one for each host where it ran, and no read of a stream without a consumer
 * takes several subjects. So a page is made of a page of each container.
 *
 * The cost of a page is bounded: by the number of containers, by the blocks that it looks at in
 * all, and by the reads of all such pages at a time. It holds the lines of the containers that are
 * read now, and one page beside.
 */
import { createSemaphore } from '../../lib/semaphore.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import type { AskOwner } from '../../lib/rpc/partition-client.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import { decodeCursor, decodeLogPlace, encodeLogPlace, type ListCursor } from '../../schemas/api/cursor.ts';
import type { HostKey } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { succeeded, tenantOf, type CallOf, type HandlerOf } from '../call.ts';
import { filtersOf } from '../compute/filters.ts';
import { pageResult, wrongCursor } from '../http/pages.ts';
import { conflict, failure, invalid, type Result } from '../http/respond.ts';
import { afterOf, joined, joinedPage, noneJoined, type LogWish, type Named } from './log-pages.ts';
import { pageBlocks, type LogReader } from './logs.ts';
import { AskError, pastOf, readNow } from './requests.ts';

/**
 * Containers that are read at a time, over all requests: fewer than the permits of other readers.
 */
const readsAtOnce = 4;
/**
 * Blocks of one container and host that a page looks at, at least: fewer might be those that it has
 * looked at before.
 */
const blocksMin = 32;

type Call = CallOf<'log.list'>;

export interface LogListOptions {
  readonly ask: AskOwner;
  readonly logs: Pick<LogReader, 'past'>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly log: Log;
}

const tooMany = conflict(
  'too_many',
  `more than ${limits.logsContainers} containers match: name fewer with \`label\`, \`project\`, \`name\`, \`host_key\` or \`status\`, or read each container's own \`/logs\``,
  { max: limits.logsContainers },
);

/** The containers that the filters match, or the answer in place of a list. @throws AskError */
async function chosenOf({ ask }: LogListOptions, call: Call): Promise<readonly Named[] | Result> {
  const chosen: Named[] = [];
  for (let before: ListCursor | null = null; ;) {
    const limit = limits.logsContainers + 1 - chosen.length;
    const page = { tenant: tenantOf(call), limit, before, ...filtersOf(call), ...call.origin };
    const outcome = await ask('read', { type: 'container.overview', ...page }, call.deadlineMs);
    if (!succeeded(outcome)) throw new AskError(outcome);
    const { data, next_cursor: next } = decodeAnswer('container.overview', outcome.body);
    chosen.push(...data.map(({ container }) => container));
    if (chosen.length > limits.logsContainers) return tooMany;
    const place: ListCursor | undefined = next === undefined ? undefined : decodeCursor(next);
    if (place === undefined) return chosen;
    before = place;
  }
}

/** The hosts where a container ran; none for one that is forgotten meanwhile. @throws AskError */
async function historyOf({ ask }: LogListOptions, call: Call, { id }: Named): Promise<readonly HostKey[]> {
  const question = { type: 'container.trace', tenant: tenantOf(call), id, ...call.origin } as const;
  const outcome = await ask('read', question, call.deadlineMs);
  if (outcome.code === 'not_found') return [];
  if (!succeeded(outcome)) throw new AskError(outcome);
  return decodeAnswer('container.trace', outcome.body).data.history;
}

export function logListHandler(options: LogListOptions): HandlerOf<'log.list'> {
  const { logs, clock } = options;
  const semaphore = createSemaphore(readsAtOnce);

  return (call) => {
    const { contains, cursor: text, limit } = call.query;
    const past = pastOf(call, { contains });
    if (past !== undefined && 'faults' in past) return invalid(past.faults);
    const place = text === undefined ? undefined : decodeLogPlace(text);
    if (text !== undefined && place === undefined) return wrongCursor;
    const { isReversed, ...range } = past ?? {
      order: 'desc',
      isReversed: true,
      sinceMs: undefined,
      untilMs: undefined,
    };
    const { order } = range;

    return readNow(options, call, async (): Promise<Result> => {
      const chosen = await chosenOf(options, call);
      if ('code' in chosen) return chosen;
      const blocks = Math.max(blocksMin, Math.floor(pageBlocks / Math.max(chosen.length, 1)));
      const wishOf = ({ id }: Named): LogWish => {
        return { ...range, contains, after: afterOf(place, order, id), limit, blocks };
      };
      const histories = await Promise.all(chosen.map((container) => historyOf(options, call, container)));
      let page = noneJoined;
      const read = async (container: Named, history: readonly HostKey[]): Promise<void> => {
        if (clock.monotonicMs() >= call.deadlineMs) throw new AskError(failure('timeout'));
        const found = await logs.past(tenantOf(call), container.id, history, wishOf(container));
        page = joined(page, container, found, { order, limit });
      };
      await Promise.all(chosen.map((container, at) => semaphore.run(() => read(container, histories[at] ?? []))));
      const { entries, next } = joinedPage(page, { order, limit });
      const listed = isReversed ? entries.toReversed() : entries;
      return pageResult(listed, next === undefined ? undefined : encodeLogPlace(next));
    });
  };
}
