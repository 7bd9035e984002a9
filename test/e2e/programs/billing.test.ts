/**
 * A billing program makes the bill of every tenant with the names of what it ran. An operator's
 * token with the scope to read is all that it has. It asks for usage when it starts, and after
 * events that say that something ran; it never asks because time has passed.
 */
import t from 'tap';
import { createApi, doneOf, type Api, type Schemas } from '../../../cli/client/api.ts';
import { followFrames, valueOf, type Open } from '../../../cli/client/follow.ts';
import { allOf } from '../../../cli/client/pages.ts';
import { create, groundOf, small } from './program.ts';

t.setTimeout(300_000);

type Row = Schemas['OperatorUsage'];

interface Bill {
  /** By the name of a container, in milliseconds of its runs. */
  readonly lines: Readonly<Record<string, number>>;
  readonly total: number;
}
type Bills = ReadonlyMap<string, Bill>;

const msOf = ({ container_seconds: seconds }: Row): number => Math.round(seconds * 1000);

/** The bills of a period that is over, or of which a part is: what was used so far. */
async function billsOf(api: Api, period: { readonly from: string; readonly to: string }): Promise<Bills> {
  const rowsBy = (by: 'tenant' | 'container'): Promise<Row[]> =>
    allOf((page) => api.GET('/api/v2/operator/usage', { params: { query: { ...page, ...period, by, limit: 2 } } }));
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

/** Makes the bills after each change of what runs, until they suffice. */
async function bill(api: Api, period: Parameters<typeof billsOf>[1], suffices: (bills: Bills) => boolean) {
  const leave = new AbortController();
  const open: Open = (header, signal) =>
    api.GET('/api/v2/operator/events/stream', {
      params: { header, query: { type: ['status', 'removed'] } },
      parseAs: 'stream',
      signal,
    });
  const tenants = new Set<string>();
  try {
    for await (const frame of followFrames(open, leave.signal)) {
      if (frame.event !== 'event') continue;
      tenants.add((valueOf(frame) as Schemas['OperatorEvent']).tenant_id);
      const bills = await billsOf(api, period);
      if (suffices(bills)) return { bills, tenants };
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

  // It ends again and again, so there is always an event to come.
  const restarting = await shop.imageOf('sleep 1; exit 1');
  await create(shop.api, { name: 'worker', image: restarting, ...small });
  const { data: web } = await create(shop.api, { name: 'web', image: shop.image, ...small });
  await create(blog.api, { name: 'web', image: blog.image, ...small });
  const has = (bills: Bills, tenant: string, ...names: readonly string[]): boolean =>
    names.every((name) => (bills.get(tenant)?.lines[name] ?? 0) > 0);
  const first = await bill(
    api,
    { from, to },
    (bills) => has(bills, shop.tenant, 'worker', 'web') && has(bills, blog.tenant, 'web'),
  );
  t.same(Object.keys(first.bills.get(blog.tenant)?.lines ?? {}), ['web'], 'each tenant has its own lines');
  t.ok(first.tenants.has(shop.tenant), 'the stream says whose events they are');

  await doneOf(shop.api.DELETE('/api/v2/compute/{id}', { params: { path: { id: web.id } } }));
  const before = first.bills.get(shop.tenant)!;
  const last = await bill(
    api,
    { from, to },
    (bills) => (bills.get(shop.tenant)?.lines['worker'] ?? 0) > (before.lines['worker'] ?? 0),
  );
  const { lines, total } = last.bills.get(shop.tenant)!;
  t.ok((lines['web'] ?? 0) >= (before.lines['web'] ?? Infinity), 'what is gone is billed, by its name');
  const sum = Object.values(lines).reduce((ms, line) => ms + line, 0);
  t.ok(sum > 0 && sum <= total, 'the lines are no more than the total, which was asked for later');
});
