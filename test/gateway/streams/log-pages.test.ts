/** Pages of lines over several hosts: nothing is left out, nothing comes twice. */
import t from 'tap';
import {
  acrossHosts,
  afterOf,
  isWished,
  joined,
  joinedPage,
  noneJoined,
  type LogWish,
} from '../../../gateway/streams/log-pages.ts';
import type { Order, PastFound } from '../../../gateway/streams/past.ts';
import { decodeLogPlace, encodeLogPlace, type LogPlace } from '../../../schemas/api/cursor.ts';
import type { LogEntry } from '../../../schemas/api/log.ts';
import type { ContainerId } from '../../../schemas/ids.ts';

const entry = (seq: number): LogEntry => ({ ts: '2026-01-01T00:00:00.000Z', stream: 'stdout', line: `${seq}`, seq });
const wish = (more: Partial<LogWish>): LogWish => ({
  ...{ order: 'desc', sinceMs: undefined, untilMs: undefined, contains: undefined, after: undefined, limit: 3 },
  ...more,
});

/** A host's blocks of lines, of which a find looks at so many. */
type Stored = readonly (readonly number[])[];

function find(stored: Stored, asked: LogWish, blocks: number): PastFound<LogEntry> {
  const isOfPage = isWished(asked);
  const { order, after = order === 'asc' ? -Infinity : Infinity } = asked;
  const inOrder = order === 'asc' ? stored : stored.toReversed();
  const from = inOrder.filter((seqs) => seqs.some((seq) => (order === 'asc' ? seq > after : seq < after)));
  const all = from.slice(0, blocks).flatMap((seqs) => (order === 'asc' ? seqs : seqs.toReversed()).map(entry));
  const items = all.filter(isOfPage).map((item) => ({ item, at: 1 }));
  return { items, next: blocks < from.length ? 1 : undefined, edge: all.at(-1) };
}

function readAll(hosts: readonly Stored[], order: Order, more: Partial<LogWish>, blocks: number): number[] {
  const seqs: number[] = [];
  let after: LogWish['after'];
  for (let page = 0; page < 200; page++) {
    const asked = wish({ ...more, order, after });
    const { entries, next } = acrossHosts(
      hosts.map((stored) => find(stored, asked, blocks)),
      asked,
    );
    seqs.push(...entries.map(({ seq }) => seq));
    if (next === undefined) return seqs;
    after = next;
  }
  throw new Error('the pages do not end');
}

const rising = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, at) => from + at);

// The first host had it, then the second one, then the first again; one block was sent twice.
const moved: readonly Stored[] = [
  [[1, 2], [3], [4, 5, 6], [7], [7], [15, 16]],
  [[8, 9], [10], [11, 12, 13, 14]],
];

t.test('all pages together are all lines, once and in order', (t) => {
  for (const limit of [1, 2, 3, 5, 100]) {
    for (const blocks of [1, 2, 3, 100]) {
      const name = `${limit} a page, ${blocks} blocks looked at`;
      t.same(readAll(moved, 'desc', { limit }, blocks), rising(1, 16).toReversed(), name);
      t.same(readAll(moved, 'asc', { limit }, blocks), rising(1, 16), name);
      t.same(readAll(moved, 'asc', { limit, contains: '1' }, blocks), [1, ...rising(10, 16)], name);
      t.same(readAll(moved, 'desc', { limit, contains: '9' }, blocks), [9], name);
    }
  }
  t.end();
});

t.test('times are those of the lines', (t) => {
  const stored: Stored = [[1_000, 1_999, 2_000, 2_999, 3_000]];
  t.same(readAll([stored], 'asc', { sinceMs: 2, untilMs: 3 }, 10), [2_000, 2_999]);
  t.same(readAll([], 'asc', {}, 10), [], 'it never ran');
  t.end();
});

const idAt = (at: number): ContainerId => `01890000-0000-7000-8000-00000000000${at}` as ContainerId;

/** `<container> <line>`: each container has one host or several. */
function readJoined(containers: readonly (readonly Stored[])[], asked: LogWish, blocks: number): string[] {
  const lines: string[] = [];
  let place: LogPlace | undefined;
  for (let page = 0; page < 300; page++) {
    let all = noneJoined;
    for (const [at, hosts] of containers.entries()) {
      const one = { ...asked, after: afterOf(place, asked.order, idAt(at)) };
      const found = hosts.map((stored) => find(stored, one, blocks));
      all = joined(all, { id: idAt(at), name: `${at}` }, acrossHosts(found, one), asked);
    }
    if (all.entries.length > asked.limit + 1) throw new Error('more is held than a page needs');
    const { entries, next } = joinedPage(all, asked);
    lines.push(...entries.map(({ name, line }) => `${name} ${line}`));
    if (next === undefined) return lines;
    place = decodeLogPlace(encodeLogPlace(next));
  }
  throw new Error('the pages do not end');
}

t.test('the lines of several containers are all lines of each, by number and then by container', (t) => {
  // Two have lines of the same numbers, one has few, and one never ran.
  const many = [[rising(1, 4), rising(5, 8), rising(9, 16)]];
  const containers = [many, moved, [[[3], [12]]], [], many];
  const expected = rising(1, 16).flatMap((seq) =>
    [0, 1, ...(seq === 3 || seq === 12 ? [2] : []), 4].map((name) => `${name} ${seq}`),
  );
  for (const limit of [1, 2, 3, 7, 100]) {
    for (const blocks of [1, 2, 100]) {
      const name = `${limit} a page, ${blocks} blocks looked at`;
      t.same(readJoined(containers, wish({ order: 'asc', limit }), blocks), expected, name);
      t.same(readJoined(containers, wish({ order: 'desc', limit }), blocks), expected.toReversed(), name);
      const few = expected.filter((line) => line.endsWith('2'));
      t.same(readJoined(containers, wish({ order: 'asc', limit, contains: '2' }), blocks), few, name);
    }
  }
  t.same(readJoined([], wish({}), 1), []);
  t.end();
});

t.test('a cursor of another list is none', (t) => {
  for (const text of ['', 'x', encodeLogPlace({ seq: 1, id: 'web' as ContainerId }), 'MTIzNA'])
    t.equal(decodeLogPlace(text), undefined);
  t.end();
});
