/** `GET /usage`: what a tenant's containers used. */
import { decodeKeyCursor, encodeKeyCursor } from '../../schemas/api/cursor.ts';
import type { UsageView } from '../../schemas/api/usage/usage.ts';
import { isContainerId, type ContainerId } from '../../schemas/ids.ts';
import { days } from '../../schemas/limits/units.ts';
import { added, hourMs, hourOf, noAmounts, type Amounts, type Hours, type Sum } from '../../schemas/records/usage.ts';
import type { Log } from '../../lib/log.ts';
import type { AskOwner } from '../../lib/rpc/partition-client.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { timestamp } from '../../lib/time/timestamp.ts';
import { tenantOf, type HandlerOf } from '../call.ts';
import { metadataOf } from '../compute/metadata.ts';
import { pageResult, wrongCursor } from '../http/pages.ts';
import { invalid, type Result } from '../http/respond.ts';
import { readNow } from '../streams/requests.ts';
import type { UsageReader } from './usage-reader.ts';
import type { Validated } from '../validation/faults.ts';
import { periodIn } from '../validation/timestamp.ts';

/** The longest time that one request may ask for. */
const usageRangeMs = 31 * days;

const startOfMonth = (ms: number): number => {
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
};

/** The hours that a query asks for, or all of its faults. */
export function hoursOf(
  query: { readonly from?: string | undefined; readonly to?: string | undefined },
  nowMs: number,
): Validated<Hours> {
  const { startMs, endMs, faults } = periodIn(['from', query.from], ['to', query.to]);
  if (Object.keys(faults).length > 0) return { ok: false, faults };
  const toMs = endMs ?? nowMs;
  const fromMs = startMs ?? startOfMonth(toMs - 1);
  if (fromMs >= toMs) return { ok: false, faults: { from: ['must be before now, since `to` is not given'] } };
  if (toMs - fromMs > usageRangeMs) {
    return { ok: false, faults: { from: ['must be at most 31 days before `to`: ask for each month by itself'] } };
  }
  return { ok: true, value: { from: hourOf(fromMs), to: Math.ceil(toMs / hourMs) } };
}

/** Exact: sums are whole milliseconds, and the byte-seconds are rounded down once. */
export const shown = ({ runMs, cpuMs, memByteMs }: Amounts) => ({
  container_seconds: runMs / 1000,
  cpu_seconds: cpuMs / 1000,
  mem_byte_seconds: String(memByteMs / 1000n),
});

export function totalOf(sums: Iterable<Amounts>): Amounts {
  let total = noAmounts;
  for (const sum of sums) total = added(total, sum);
  return total;
}

/** Those with a key after this one, in the order of their keys. */
export const behind = <T>(byKey: ReadonlyMap<string, T>, after: string): (readonly [string, T])[] =>
  [...byKey].filter(([key]) => key > after).sort(([one], [other]) => (one < other ? -1 : 1));

export const periodOf = ({ from, to }: Hours) => ({ from: timestamp(from * hourMs), to: timestamp(to * hourMs) });

/** A page of the sums, by container id. */
export function viewOf(
  sums: ReadonlyMap<string, Sum>,
  hours: Hours,
  { after, limit }: { readonly after: string; readonly limit: number },
): { readonly view: UsageView; readonly next: string | undefined } {
  const left = behind(sums, after);
  const page = left.slice(0, limit);
  const view: UsageView = {
    ...periodOf(hours),
    total: shown(totalOf(sums.values())),
    containers: page.map(([id, sum]) => ({ id: id as ContainerId, name: sum.name ?? null, ...shown(sum) })),
  };
  return { view, next: left.length > page.length ? page.at(-1)?.[0] : undefined };
}

export interface UsageRoutesOptions {
  readonly ask: AskOwner;
  readonly usage: Pick<UsageReader, 'sums'>;
  readonly clock: Clock;
  readonly log: Log;
}

export function usageRoutes(options: UsageRoutesOptions): { readonly 'usage.get': HandlerOf<'usage.get'> } {
  const get: HandlerOf<'usage.get'> = async (call) => {
    const { cursor, limit } = call.query;
    const hours = hoursOf(call.query, options.clock.nowMs());
    if (!hours.ok) return invalid(hours.faults);
    const after = cursor === undefined ? '' : decodeKeyCursor(cursor, isContainerId);
    if (after === undefined) return wrongCursor;
    return readNow(options, call, async (): Promise<Result> => {
      const sums = await options.usage.sums(tenantOf(call), hours.value);
      const { view, next } = viewOf(sums, hours.value, { after, limit });
      const ids = view.containers.map(({ id }) => id);
      const metadata = await metadataOf(options, call, ids, { kind: 'read', deadlineMs: call.deadlineMs });
      const containers = view.containers.map((one) => ({ ...one, ...metadata.get(one.id) }));
      return pageResult({ ...view, containers }, next === undefined ? undefined : encodeKeyCursor(next));
    });
  };
  return { 'usage.get': get };
}
