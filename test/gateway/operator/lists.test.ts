/** Lists over all partitions: whole or not at all, and with a bound of work for each page. */
import t from 'tap';
import { findContainers, listOfAll } from '../../../gateway/operator/lists.ts';
import type { Result } from '../../../gateway/http/respond.ts';
import type { Outcome, Question } from '../../../lib/rpc/partition-client.ts';
import { decodePlaceCursor, encodePlaceCursor, type Place } from '../../../schemas/api/cursor.ts';
import { isHostKey, type HostKey, type TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import { tenantId } from '../../actors/support.ts';
import { callOf, servicesWith } from '../calls.ts';

const acme = tenantId('acme');
const place = (tenant: TenantId, insertedAtMs = 0): Place => ({ tenant, insertedAtMs, id: '' });
const parsed = (result: unknown) =>
  JSON.parse(String((result as Result).body)) as { data: string[]; next_cursor?: string };

t.test('a list of hosts is whole or not at all', async (t) => {
  const page = (...keys: string[]): Outcome => ({
    code: 'ok',
    body: JSON.stringify({ data: keys.map((key) => ({ key, region: 'eu' })), more: false }),
  });
  const list = async (...pages: readonly Outcome[]) => {
    const services = servicesWith((ask) => pages[ask.type === 'host.list' ? ask.partition : 0]!);
    const keys = { isKey: isHostKey, keyOf: ({ key }: { key: HostKey }) => key };
    return listOfAll(services, 'host.list', keys)(callOf('host.list', { query: { limit: 10, cursor: undefined } }));
  };
  t.match(parsed(await list(page('b'), page('a', 'c'))), { data: [{ key: 'a' }, { key: 'b' }, { key: 'c' }] });
  t.match(await list(page('a'), { code: 'unavailable', body: '' }), { code: 'unavailable' });
});

type FindQuestion = Extract<Question, { type: 'container.find' }>;
interface Page {
  readonly data: readonly string[];
  readonly next: Place | null;
}

function finding(partitions: number, pageOf: (ask: FindQuestion) => Page | Outcome, monotonicMs = () => 0) {
  const asked: FindQuestion[] = [];
  const services = servicesWith(
    (ask) => {
      if (ask.type !== 'container.find') throw new Error(ask.type);
      asked.push(ask);
      const page = pageOf(ask);
      if ('code' in page) return page;
      const data = page.data.map((container) => ({ container, status: {} }));
      return { code: 'ok', body: JSON.stringify({ data, next: page.next }) };
    },
    { partitions: () => partitions, clock: { nowMs: () => 0, monotonicMs } },
  );
  const find = async (query: object = {}): Promise<Result> =>
    findContainers(services)(
      callOf('container.find', {
        query: { tenant: undefined, host: undefined, status: undefined, cursor: undefined, limit: 10, ...query },
      }),
    ) as Promise<Result>;
  return { asked, find };
}

t.test('partition by partition, until the page is full', async (t) => {
  const { asked, find } = finding(4, ({ partition, limit }) => ({
    data: Array.from({ length: Math.min(limit, 2) }, (_, n) => `${partition}-${n}`),
    next: limit < 2 ? place(acme, 7) : null,
  }));
  const first = parsed(await find({ limit: 5, status: 'failed' }));
  t.match(
    first.data,
    [0, 0, 1, 1, 2].map((partition) => ({ container: new RegExp(`^${partition}-`) })),
  );
  t.same(
    asked.map(({ partition, limit, from, only }) => [partition, limit, from, only]),
    [
      [0, 5, null, { status: 'failed' }],
      [1, 3, null, { status: 'failed' }],
      [2, 1, null, { status: 'failed' }],
    ],
  );
  t.same(decodePlaceCursor(first.next_cursor ?? ''), { partition: 2, from: place(acme, 7) });
  const last = parsed(await find({ cursor: first.next_cursor }));
  t.same(
    asked.slice(3).map(({ partition, from }) => [partition, from]),
    [
      [2, place(acme, 7)],
      [3, null],
    ],
  );
  t.equal(last.data.length, 4);
  t.notOk('next_cursor' in last, 'this was the end');
});

t.test('a page makes a bounded number of asks, however little they find', async (t) => {
  let at = 0;
  const { asked, find } = finding(2, () => ({ data: [], next: place(acme, ++at) }));
  const page = parsed(await find());
  t.same(page.data, []);
  t.equal(asked.length, limits.operatorAsks);
  t.same(decodePlaceCursor(page.next_cursor ?? ''), { partition: 0, from: place(acme, limits.operatorAsks) });
});

t.test('a page ends in time, and says where the next begins', async (t) => {
  let nowMs = 0;
  const slow = (): Page => {
    nowMs += 300;
    return { data: ['a'], next: null };
  };
  // Of 1000 ms.
  const { asked, find } = finding(9, slow, () => nowMs);
  const page = parsed(await find());
  t.equal(asked.length, 2);
  t.same(decodePlaceCursor(page.next_cursor ?? ''), { partition: 2, from: null });
  await find({ cursor: page.next_cursor });
  t.equal(asked.at(2)?.partition, 2, 'a late request makes one ask at least');
});

t.test('a page ends before it is too large to hold', async (t) => {
  const large = 'x'.repeat(limits.answerPartBytes);
  const { asked, find } = finding(4, () => ({ data: [large], next: place(acme) }));
  t.equal(parsed(await find()).data.length, 1);
  t.equal(asked.length, 1);
});

t.test('containers of one tenant are asked of its owner alone', async (t) => {
  const partition = partitionOf(acme, 16);
  const { asked, find } = finding(16, () => ({ data: ['a'], next: null }));
  const host = 'h1' as HostKey;
  t.notOk('next_cursor' in parsed(await find({ tenant: acme, host })));
  t.same(
    asked.map((ask) => [ask.partition, ask.only]),
    [[partition, { tenant: acme, host }]],
  );
  const other = encodePlaceCursor({ partition: (partition + 1) % 16, from: null });
  t.equal((await find({ tenant: acme, cursor: other })).code, 'invalid', 'the cursor of another list');
});

t.test('failures and wrong cursors', async (t) => {
  const { find } = finding(2, ({ partition }) =>
    partition === 0 ? { data: ['a'], next: null } : { code: 'timeout', body: '' },
  );
  t.equal((await find()).code, 'timeout', 'a list is not shown without what a partition has');
  for (const cursor of ['', 'x', '!!!!', encodePlaceCursor({ partition: 2, from: null })]) {
    t.equal((await find({ cursor })).code, 'invalid', cursor);
  }
  const unknown = servicesWith(undefined, { partitions: () => undefined });
  t.match(await findContainers(unknown)(callOf('container.find', { query: {} as never })), { code: 'unavailable' });
});

t.test('a cursor says what it was made of', (t) => {
  const id = '0190c9b0-0000-7000-8000-000000000000' as never;
  for (const cursor of [
    { partition: 0, from: null },
    { partition: 15, from: place(acme) },
    { partition: 3, from: { tenant: acme, insertedAtMs: 1_700_000_000_000, id } },
    { partition: 3, from: { tenant: 'a-B_9'.padEnd(64, 'x') as TenantId, insertedAtMs: 999_999_999_999_999, id } },
  ]) {
    t.same(decodePlaceCursor(encodePlaceCursor(cursor)), cursor);
  }
  for (const text of ['0.a.1', '0.a.b.1.', '0.a.1.x', 'a.b.1.', '-1.a.1.', '0.a/b.1.']) {
    t.equal(decodePlaceCursor(btoa(text).replaceAll('=', '')), undefined, text);
  }
  t.end();
});
