/** Lists of an operator, whose items are spread over all partitions. */
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import type { AskOwner, Outcome } from '../../lib/rpc/partition-client.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { decodePlaceCursor, encodePlaceCursor, type PlaceCursor } from '../../schemas/api/cursor.ts';
import { limits } from '../../schemas/limits.ts';
import type { AnswerOf, Question } from '../../schemas/wire/asks.ts';
import { partitionOf } from '../../schemas/wire/subjects.ts';
import { succeeded, type Call, type CallOf, type HandlerOf } from '../call.ts';
import { listByKey, pageResult, wrongCursor, type Keys } from '../http/pages.ts';
import { failure, type Result } from '../http/respond.ts';

type KeyList = 'host.list' | 'tenant.list';
type ItemOf<List extends KeyList> = AnswerOf<List>['data'][number];

/** Asks every partition. */
export interface AskerOfAll {
  readonly ask: AskOwner;
  /** Undefined until the cluster is known. */
  readonly partitions: () => number | undefined;
}

/** An ask to every partition; undefined until the cluster is known. */
export function askAll(
  { ask, partitions }: AskerOfAll,
  call: Pick<Call, 'deadlineMs'>,
  questionFor: (partition: number) => Question,
): Promise<Outcome[]> | undefined {
  const count = partitions();
  if (count === undefined) return undefined;
  return Promise.all(
    Array.from({ length: count }, (_, partition) => ask('read', questionFor(partition), call.deadlineMs)),
  );
}

/** If an ask failed, the result is the first failure. */
function pagesOf<List extends KeyList>(type: List, outcomes: readonly Outcome[]): AnswerOf<List>[] | Result {
  const failed = outcomes.find((outcome) => !succeeded(outcome));
  if (failed !== undefined) return failed;
  return outcomes.map(({ body }) => decodeAnswer(type, body));
}

/** The handler of a list that every partition gives a page of. */
export const listOfAll =
  <List extends KeyList>(asker: AskerOfAll, type: List, keys: Keys<ItemOf<List>>): HandlerOf<List> =>
  (call: CallOf<KeyList>) => {
    const { limit } = call.query;
    return listByKey<ItemOf<List>>(call.query, keys, async (after) => {
      const asked = askAll(asker, call, (partition) => ({ type, partition, limit, after, ...call.origin }));
      return asked === undefined ? failure('unavailable') : pagesOf(type, await asked);
    });
  };

/**
 * Asks partition by partition until the page is full, or has made as many asks as a page may, or
 * has taken half of the request's time: then the page ends where it is, and the next goes on.
 */
export function findContainers({
  ask,
  partitions: count,
  clock,
}: AskerOfAll & { readonly clock: Pick<Clock, 'monotonicMs'> }): HandlerOf<'container.find'> {
  const pageFrom = async (call: CallOf<'container.find'>, start: PlaceCursor, end: number): Promise<Result> => {
    const { tenant, host, status, limit } = call.query;
    const only = {
      ...(tenant === undefined ? {} : { tenant }),
      ...(host === undefined ? {} : { host }),
      ...(status === undefined ? {} : { status }),
    };
    const lateMs = (clock.monotonicMs() + call.deadlineMs) / 2;
    const found: object[] = [];
    let bytes = 0;
    let place = start;
    for (let asks = 0; place.partition < end && asks < limits.operatorAsks; asks++) {
      if (found.length >= limit || bytes >= limits.answerPartBytes) break;
      if (asks > 0 && clock.monotonicMs() >= lateMs) break;
      const { partition, from } = place;
      const rest = limit - found.length;
      const question = { type: 'container.find', partition, limit: rest, from, only, ...call.origin } as const;
      const outcome = await ask('read', question, call.deadlineMs);
      if (!succeeded(outcome)) return outcome;
      const { data, next } = decodeAnswer('container.find', outcome.body);
      found.push(...data);
      bytes += outcome.body.length;
      place = next === null ? { partition: partition + 1, from: null } : { partition, from: next };
    }
    return pageResult(found, place.partition < end ? encodePlaceCursor(place) : undefined);
  };

  return (call) => {
    const partitions = count();
    if (partitions === undefined) return failure('unavailable');
    const { cursor, tenant } = call.query;
    const first = tenant === undefined ? 0 : partitionOf(tenant, partitions);
    const end = tenant === undefined ? partitions : first + 1;
    const place = cursor === undefined ? { partition: first, from: null } : decodePlaceCursor(cursor);
    if (place === undefined || place.partition < first || place.partition >= end) return wrongCursor;
    return pageFrom(call, place, end);
  };
}
