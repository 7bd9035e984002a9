/**
 * A billing program keeps the bill of every tenant, with the names of what it ran. An operator's
 * token with the scope to read is all that it has. It reads all bills when the stream of events
 * begins, and then that of the tenant whose containers have changed; it never asks because time
 * has passed.
 */
import t from 'tap';
import { createApi, doneOf, type Api, type Schemas } from '../../../cli/client/api.ts';
import { followFrames, valueOf, type Open } from '../../../cli/client/follow.ts';
import { allOf } from '../../../cli/client/pages.ts';
import { create, groundOf, small } from './program.ts';

t.setTimeout(300_000);

type Row = Schemas['OperatorUsage'];

interface Bill {
  /** Milliseconds of runs, by the name of a container. */
  readonly lines: Readonly<Record<string, number>>;
  readonly total: number;
}
type Bills = ReadonlyMap<string, Bill>;

const msOf = ({ container_seconds: seconds }: Row): number => Math.round(seconds * 1000);

interface Wanted {
  readonly from: string;
  readonly to: string;
  /** All if absent. */
  readonly tenant?: string;
}

/** The bills of a period that is over, or of what was used of it so far. */
async function billsOf(api: Api, wanted: Wanted): Promise<Bills> {
  const rowsBy = (by: 'tenant' | 'container'): Promise<Row[]> =>
    allOf((page) => api.GET('/api/v2/operator/usage', { params: { query: { ...page, ...wanted, by, limit: 2 } } }));
  // Lines first: what is used meanwhile is in the totals alone.
  const containers = await rowsBy('container');
  const totals = new Map((await rowsBy('tenant')).map((row) => [row.tenant_id, msOf(row)]));
  const bills = new Map<string, Bill>();
  for (const row of containers) {
    const { tenant_id: tenant = '', container_id: id = '', name } = row;
    const line = { [name ?? id]: msOf(row) };
    bills.set(tenant, { lines: { ...bills.get(tenant)?.lines, ...line }, total: totals.get(tenant) ?? 0 });
  }
  return bills;
}

/** Keeps the bills until they suffice. */
async function keepBills(api: Api, period: Wanted, suffices: (bills: Bills) => boolean): Promise<Bills> {
  const leave = new AbortController();
  const query = { type: ['status' as const, 'removed' as const], limit: 1 };
  const open: Open = (header, signal) =>
    api.GET('/api/v2/operator/events/stream', { params: { header, query }, parseAs: 'stream', signal });
  const bills = new Map<string, Bill>();
  // True until changes before the stream, or missed ones, are counted.
  let isBehind = true;
  try {
    for await (const frame of followFrames(open, leave.signal)) {
      if (frame.event === 'reset') isBehind = true;
      if (frame.event !== 'event') continue;
      const { tenant_id: tenant } = valueOf(frame) as Schemas['OperatorEvent'];
      const changed = await billsOf(api, isBehind ? period : { ...period, tenant });
      isBehind = false;
      for (const [of, bill] of changed) bills.set(of, bill);
      if (suffices(bills)) return bills;
    }
  } finally {
    leave.abort();
  }
  throw new Error('the stream has ended');
}

t.test('bills with names, of tenants that are there and of what is gone', async (t) => {
  const shop = await groundOf(t, 'shop');
  const blog = await groundOf(t, 'blog');
  const { token, baseUrl } = await groundOf(t, 'billing', 'operator:read');
  const api = createApi({ server: baseUrl, token });
  const day = 24 * 60 * 60 * 1000;
  const [from, to] = [Date.now() - day, Date.now() + day].map((ms) => new Date(ms).toISOString()) as [string, string];

  // These end again and again, so there is always an event to come.
  await create(shop.api, { name: 'worker', image: await shop.imageOf('sleep 1; exit 1'), ...small });
  await create(blog.api, { name: 'feeds', image: await blog.imageOf('sleep 1; exit 2'), ...small });
  const { data: web } = await create(shop.api, { name: 'web', image: shop.image, ...small });
  const has = (bills: Bills, { tenant }: { tenant: string }, ...names: readonly string[]): boolean =>
    names.every((name) => (bills.get(tenant)?.lines[name] ?? 0) > 0);
  const first = await keepBills(
    api,
    { from, to },
    (bills) => has(bills, shop, 'worker', 'web') && has(bills, blog, 'feeds'),
  );
  t.same(Object.keys(first.get(blog.tenant)?.lines ?? {}), ['feeds'], 'each tenant has its own lines');

  await doneOf(shop.api.DELETE('/api/v2/compute/{id}', { params: { path: { id: web.id } } }));
  const before = first.get(shop.tenant)!.lines;
  const grew = (bills: Bills): boolean =>
    (bills.get(shop.tenant)?.lines['worker'] ?? 0) > (before['worker'] ?? Infinity);
  const { lines, total } = (await keepBills(api, { from, to }, grew)).get(shop.tenant)!;
  t.ok((lines['web'] ?? 0) >= (before['web'] ?? Infinity), 'what is gone is billed, by its name');
  const sum = Object.values(lines).reduce((ms, line) => ms + line, 0);
  t.ok(sum > 0 && sum <= total, 'the lines are no more than the total, which was asked for later');
});
