/** The usage of all tenants in pages: by tenant, by container and by hour. */
import t from 'tap';
import { operatorUsage } from '../../../gateway/operator/usage.ts';
import type { CallOf } from '../../../gateway/call.ts';
import type { OperatorUsage } from '../../../schemas/api/usage/usage.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { dayOf, hourMs, type Amounts, type Hours, type Sum } from '../../../schemas/records/usage.ts';
import { callOf, servicesWith } from '../calls.ts';
import { recordingLog } from '../support.ts';

type By = CallOf<'usage.find'>['query']['by'];
interface Used {
  readonly tenant: string;
  readonly id: string;
  readonly hour: number;
  readonly runMs: number;
}

const idAt = (at: number): string => `01890000-0000-7000-8000-00000000000${at}`;
const first = Date.parse('2026-11-01T00:00:00Z') / hourMs;
const amounts = (runMs: number): Amounts => ({ runMs, cpuMs: 1, memByteMs: 1000n });
const within = (hour: number, { from, to }: Hours): boolean => hour >= from && hour < to;

/** The stream has this; each read of it takes so long. */
function stage(stored: readonly Used[], readMs = 0) {
  let nowMs = 0;
  const asked: string[] = [];
  const read = <T>(what: string, value: T): Promise<T> => {
    asked.push(what);
    nowMs += readMs;
    return Promise.resolve(value);
  };
  const log = recordingLog();
  const services = servicesWith(undefined, {
    log,
    clock: { nowMs: () => (first + 40 * 24) * hourMs, monotonicMs: () => nowMs },
    usage: {
      tenants: (hours) => {
        const days = new Map<TenantId, readonly string[]>();
        for (const { tenant, hour } of stored.filter((one) => within(one.hour, hours)))
          days.set(tenant as TenantId, [...new Set([...(days.get(tenant as TenantId) ?? []), dayOf(hour)])]);
        return read('tenants', days);
      },
      sums: (tenant, hours, days) => {
        const sums = new Map<string, Sum>();
        for (const one of stored.filter((used) => used.tenant === tenant && within(used.hour, hours))) {
          const runMs = (sums.get(one.id)?.runMs ?? 0) + one.runMs;
          sums.set(one.id, { ...amounts(runMs), name: `n${one.id.at(-1)}` });
        }
        return read(`${tenant} ${days?.join()}`, sums);
      },
      byHour: (tenant, hours) => {
        const sums = new Map<number, Amounts>();
        for (const one of stored.filter((used) => used.tenant === tenant && within(used.hour, hours)))
          sums.set(one.hour, amounts((sums.get(one.hour)?.runMs ?? 0) + one.runMs));
        return read(tenant, sums);
      },
    },
  });
  const page = async (query: Partial<CallOf<'usage.find'>['query']> = {}) => {
    nowMs = 0;
    const whole = { from: '2026-11-01T00:00:00Z', to: '2026-11-04T00:00:00Z' };
    const asking = { ...whole, by: 'tenant' as By, tenant: undefined, limit: 100, cursor: undefined, ...query };
    const result = await operatorUsage(services)(callOf('usage.find', { query: asking }));
    if (result === 'streamed') throw new Error('a list is no stream');
    const body = JSON.parse(String(result.body) || '{}') as {
      data?: OperatorUsage[];
      next_cursor?: string;
      details?: object;
    };
    return { code: result.code, ...body };
  };
  const all = async (query: Parameters<typeof page>[0]) => {
    const rows: OperatorUsage[] = [];
    let pages = 0;
    for (let cursor: string | undefined; ; pages++) {
      const { data = [], next_cursor: next } = await page({ ...query, cursor });
      rows.push(...data);
      if (next === undefined) return { rows, pages: pages + 1 };
      if (pages > 50) throw new Error('the pages do not end');
      cursor = next;
    }
  };
  return { page, all, asked, log };
}

const stored: readonly Used[] = [
  { tenant: 'gone', id: idAt(1), hour: first, runMs: 1000 },
  { tenant: 'acme', id: idAt(2), hour: first, runMs: 2000 },
  { tenant: 'acme', id: idAt(3), hour: first + 1, runMs: 3000 },
  { tenant: 'acme', id: idAt(2), hour: first + 30, runMs: 4000 },
  { tenant: 'acme', id: idAt(4), hour: first + 71, runMs: 5000 },
  { tenant: 'late', id: idAt(5), hour: first + 72, runMs: 6000 },
];
const seconds = ({ container_seconds: of, at, tenant_id: tenant, name }: OperatorUsage): string =>
  [at?.slice(8, 13), tenant, name, of].filter((part) => part !== undefined).join(' ');

const byTenant = ['acme 14', 'gone 1'];
const byContainer = ['acme n2 6', 'acme n3 3', 'acme n4 5', 'gone n1 1'];
const byHour = ['01T00 3', '01T01 3', '02T06 4', '03T23 5'];

t.test('rows of each kind, in pages of any size', async (t) => {
  const { page, all } = stage(stored);
  t.match(await page({ limit: 1 }), {
    from: '2026-11-01T00:00:00.000Z',
    to: '2026-11-04T00:00:00.000Z',
    data: [{ tenant_id: 'acme', container_seconds: 14, cpu_seconds: 0.003, mem_byte_seconds: '3' }],
  });
  for (const limit of [1, 2, 3, 100]) {
    const shown = async (by: By) => (await all({ by, limit })).rows.map(seconds);
    t.same([await shown('tenant'), await shown('container'), await shown('hour')], [byTenant, byContainer, byHour]);
  }
  const ofAcme = async (by: By) => (await all({ by, tenant: 'acme' as TenantId, limit: 2 })).rows.map(seconds);
  t.same(await ofAcme('tenant'), ['acme 14']);
  t.same(await ofAcme('container'), byContainer.slice(0, 3));
  t.same(await ofAcme('hour'), ['01T00 acme 2', '01T01 acme 3', '02T06 acme 4', '03T23 acme 5']);
  t.same((await all({ tenant: 'late' as TenantId })).rows, [], 'nothing in these hours');
});

t.test('only days are read in which a tenant used anything', async (t) => {
  const { page, asked } = stage(stored);
  await page();
  t.same(asked, ['tenants', 'acme 2026-11-01,2026-11-02,2026-11-03', 'gone 2026-11-01']);
});

t.test('a page that takes long ends early, and the next goes on', async (t) => {
  // The request has 1000 ms: after half of them a page ends.
  for (const [by, expected] of [
    ['tenant', byTenant],
    ['container', byContainer],
    ['hour', byHour],
  ] as const) {
    const { rows, pages } = await stage(stored, 400).all({ by });
    t.same([rows.map(seconds), pages > 1], [expected, true], by);
  }
});

t.test('an hour of so many tenants that they can not be read in time', async (t) => {
  const many = Array.from({ length: 9 }, (_, at) => ({ tenant: `t${at}`, id: idAt(at), hour: first, runMs: 1 }));
  t.equal((await stage(many, 200).page({ by: 'hour' })).code, 'timeout');
});

t.test('faults', async (t) => {
  const { page, asked, log } = stage(stored);
  t.match(await page({ from: 'monday', to: 'tuesday' }), { code: 'invalid', details: { from: [], to: [] } });
  const { next_cursor: ofTenants } = await page({ limit: 1 });
  const { next_cursor: ofHours } = await page({ limit: 1, by: 'hour' });
  asked.length = 0;
  for (const [by, cursor] of [
    ['tenant', 'x'],
    ['hour', ofTenants],
    ['container', ofHours],
  ] as const)
    t.match(await page({ by, cursor }), { code: 'invalid', details: { cursor: [] } });
  t.same(asked, []);
  t.same(log.events, []);
});
