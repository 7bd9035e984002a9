/**
 * `GET /operator/usage`: what the containers of all tenants used. The stream USAGE has that of each
 * for 90 days, whether or not anything else of its tenant is stored. A page reads tenant by tenant,
 * or day by day, until it is full, or has taken half of the request's time.
 */
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import { timestamp } from '../../lib/time/timestamp.ts';
import { decodeKeyCursor, decodeUsageCursor, encodeKeyCursor, encodeUsageCursor } from '../../schemas/api/cursor.ts';
import type { OperatorUsage } from '../../schemas/api/usage/usage.ts';
import type { ContainerId, TenantId } from '../../schemas/ids.ts';
import { added, hourMs, noAmounts, type Amounts, type Hours } from '../../schemas/records/usage.ts';
import type { CallOf, HandlerOf } from '../call.ts';
import { wrongCursor } from '../http/pages.ts';
import { failure, invalid, type Result } from '../http/respond.ts';
import type { UsageReader } from '../stats/usage-reader.ts';
import { behind, hoursOf, periodOf, shown, totalOf } from '../stats/usage.ts';
import { AskError, readNow } from '../streams/requests.ts';

export interface OperatorUsageOptions {
  readonly usage: Pick<UsageReader, 'sums' | 'byHour' | 'tenants'>;
  readonly clock: Clock;
  readonly log: Log;
}

type Call = CallOf<'usage.find'>;

interface Rows {
  readonly rows: OperatorUsage[];
  /** Cursor of the next page; `undefined` if this is the last. */
  readonly next: string | undefined;
}

const dayHours = 24;
/** The hour from which on a list goes on. */
const isHour = (text: string): boolean => /^\d{1,8}$/.test(text);

export function operatorUsage({ usage, clock, log }: OperatorUsageOptions): HandlerOf<'usage.find'> {
  const tenantsOf = async ({ query: { tenant } }: Call, hours: Hours) => {
    const found = await usage.tenants(hours);
    const days = tenant === undefined ? undefined : found.get(tenant);
    if (tenant === undefined) return found;
    return new Map<TenantId, readonly string[]>(days === undefined ? [] : [[tenant, days]]);
  };

  /** By tenant, and within it by container. */
  const byTenant = async (call: Call, hours: Hours, from: ReturnType<typeof decodeUsageCursor>): Promise<Rows> => {
    const { by, limit } = call.query;
    const lateMs = (clock.monotonicMs() + call.deadlineMs) / 2;
    const rows: OperatorUsage[] = [];
    // One that was not read to its end comes again.
    const tenants = [...(await tenantsOf(call, hours))]
      .filter(([tenant]) => from === undefined || tenant > from.tenant || (tenant === from.tenant && from.id !== ''))
      .sort(([one], [other]) => (one < other ? -1 : 1));
    let place = from;
    for (const [tenant, days] of tenants) {
      const isLate = place !== from && clock.monotonicMs() >= lateMs;
      if (rows.length >= limit || isLate) return { rows, next: place && encodeUsageCursor(place) };
      const sums = await usage.sums(tenant, hours, days);
      if (by === 'tenant') {
        if (sums.size > 0) rows.push({ tenant_id: tenant, ...shown(totalOf(sums.values())) });
      } else {
        const left = behind(sums, from?.tenant === tenant ? from.id : '');
        const some = left.slice(0, limit - rows.length);
        for (const [id, sum] of some)
          rows.push({ tenant_id: tenant, container_id: id as ContainerId, name: sum.name ?? null, ...shown(sum) });
        const last = some.at(-1);
        if (last !== undefined && some.length < left.length)
          return { rows, next: encodeUsageCursor({ tenant, id: last[0] as ContainerId }) };
      }
      place = { tenant, id: '' };
    }
    return { rows, next: undefined };
  };

  /** Day by day: each is read whole. */
  const byHour = async (call: Call, hours: Hours, first: number): Promise<Rows> => {
    const { tenant: only, limit } = call.query;
    const lateMs = (clock.monotonicMs() + call.deadlineMs) / 2;
    const rows: OperatorUsage[] = [];
    let from = Math.max(first, hours.from);
    for (let isFirst = true; from < hours.to && rows.length < limit; isFirst = false) {
      if (!isFirst && clock.monotonicMs() >= lateMs) break;
      const to = Math.min(hours.to, from - (from % dayHours) + dayHours);
      const sums = new Map<number, Amounts>();
      for (const tenant of (await tenantsOf(call, { from, to })).keys()) {
        if (clock.monotonicMs() >= call.deadlineMs) throw new AskError(failure('timeout'));
        for (const [hour, used] of await usage.byHour(tenant, { from, to }))
          sums.set(hour, added(sums.get(hour) ?? noAmounts, used));
      }
      const found = [...sums].sort(([one], [other]) => one - other);
      const room = found.slice(0, limit - rows.length);
      for (const [hour, used] of room)
        rows.push({ at: timestamp(hour * hourMs), ...(only === undefined ? {} : { tenant_id: only }), ...shown(used) });
      from = found[room.length]?.[0] ?? to;
    }
    return { rows, next: from < hours.to ? encodeKeyCursor(String(from)) : undefined };
  };

  return (call) => {
    const { cursor, by } = call.query;
    const hours = hoursOf(call.query, clock.nowMs());
    if (!hours.ok) return invalid(hours.faults);
    const hour = by !== 'hour' ? undefined : cursor === undefined ? '0' : decodeKeyCursor(cursor, isHour);
    const place = by === 'hour' || cursor === undefined ? undefined : decodeUsageCursor(cursor);
    if (cursor !== undefined && hour === undefined && place === undefined) return wrongCursor;
    return readNow({ log }, call, async (): Promise<Result> => {
      const { rows, next } = await (hour === undefined
        ? byTenant(call, hours.value, place)
        : byHour(call, hours.value, Number(hour)));
      return { code: 'ok', body: JSON.stringify({ data: rows, ...periodOf(hours.value), next_cursor: next }) };
    });
  };
}
