/** Lists by key over partitions: every item once, in order, whatever fits a page of a partition. */
import fc from 'fast-check';
import t from 'tap';
import { listByKey, mergePages, wrongCursor } from '../../../gateway/http/pages.ts';
import { decodeKeyCursor, encodeKeyCursor } from '../../../schemas/api/cursor.ts';
import type { KeyPage } from '../../../schemas/wire/answers.ts';

const keyOf = (key: string): string => key;

t.test('every item comes once, and in order', (t) => {
  const list = fc.uniqueArray(fc.stringMatching(/^[a-z0-9]{1,6}$/), { maxLength: 60 });
  fc.assert(
    fc.property(list, fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 }), (all, limit, fits) => {
      const partitions = [0, 1, 2].map((n) => all.filter((_, at) => at % 3 === n).sort());
      const page = (of: readonly string[], after: string): KeyPage<string> => {
        const rest = of.filter((key) => key > after);
        const data = rest.slice(0, Math.min(limit, fits));
        return { data, more: rest.length > data.length };
      };
      const seen: string[] = [];
      for (let after: string | undefined = '', pages = 0; after !== undefined; pages++) {
        if (pages > 200) throw new Error('it does not end');
        const from: string = after;
        const merged = mergePages(
          partitions.map((of) => page(of, from)),
          limit,
          keyOf,
        );
        if (merged.data.length > limit) throw new Error('more than asked for');
        seen.push(...merged.data);
        after = merged.more ? merged.data.at(-1) : undefined;
      }
      if (seen.join() !== all.toSorted().join()) throw new Error(`${seen.join()} of ${all.toSorted().join()}`);
    }),
    { numRuns: 500 },
  );
  t.pass('500 lists');
  t.end();
});

t.test('cursors', async (t) => {
  const isKey = (key: string): boolean => /^[a-z0-9-]+$/.test(key);
  t.equal(decodeKeyCursor(encodeKeyCursor('host-1'), isKey), 'host-1');
  for (const text of ['', 'a', '!!!!', 'AAAA', 'x'.repeat(201)]) t.equal(decodeKeyCursor(text, isKey), undefined, text);
  const all = ['a', 'b', 'c'];
  const list = async (cursor: string | undefined, limit: number) =>
    listByKey({ cursor, limit }, { isKey, keyOf }, async (after) => {
      const rest = all.filter((key) => key > after);
      return Promise.resolve([{ data: rest.slice(0, limit), more: rest.length > limit }]);
    });
  const next_cursor = encodeKeyCursor('b');
  t.same(JSON.parse(String((await list(undefined, 2)).body)), { data: ['a', 'b'], next_cursor });
  t.same(JSON.parse(String((await list(next_cursor, 2)).body)), { data: ['c'] });
  t.equal(await list('!!!!', 2), wrongCursor);
  const failed = { code: 'timeout', body: '' } as const;
  const none = listByKey({ cursor: undefined, limit: 1 }, { isKey, keyOf }, async () => Promise.resolve(failed));
  t.equal(await none, failed);
});
