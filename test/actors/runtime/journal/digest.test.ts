/** The digest of records: one for the same records, however they came; another for others. */
import t from 'tap';
import { RecordsDigest } from '../../../../actors/runtime/journal/digest.ts';

type Write = readonly [key: string, value: string | null];
const digestOf = (...writes: readonly Write[]) => {
  const digest = new RecordsDigest({
    isKey: (key) => /^(?:record|newest)\./.test(key),
    isNewKey: () => false,
    isNewestKey: (key) => key.startsWith('newest.'),
  });
  for (const [key, value] of writes) digest.set(key, value === null ? null : Buffer.from(value));
  return digest.at(1);
};
const [a, b] = ['record.a', 'record.b'] as const;
const [one, two] = ['1 00000001 {"n":1}', '1 00000002 {"n":2}'] as const;
const none = { count: 0, keys: 0, values: 0 };
const both = digestOf([a, one], [b, two]);

t.test('the way to the same records does not show', (t) => {
  const ways: Record<string, readonly Write[]> = {
    'in another order': [
      [b, two],
      [a, one],
    ],
    'written twice': [
      [a, one],
      [b, two],
      [a, one],
    ],
    'changed and changed back': [
      [a, one],
      [b, one],
      [a, two],
      [b, two],
      [a, one],
    ],
    'deleted and made again': [
      [a, one],
      [b, two],
      [a, null],
      [a, one],
    ],
    'a third that came and went': [
      [a, one],
      ['record.c', one],
      [b, two],
      ['record.c', null],
    ],
    'the delete of what is not there': [
      [a, one],
      ['record.c', null],
      [b, two],
    ],
    'keys of other values': [
      [a, one],
      ['journal.1', 'any'],
      [b, two],
    ],
  };
  for (const [name, writes] of Object.entries(ways)) t.same(digestOf(...writes), both, name);
  t.same(digestOf([a, one], [a, null]), { mark: 1, ...none, added: none });
  const { newest, ...others } = digestOf([a, one], [b, two], ['newest.c', one]);
  t.same(others, both, 'each kind counts for itself');
  t.match(newest, { count: 1 });
  t.end();
});

t.test('other records have another digest, also where sums of checksums are equal', (t) => {
  const others: Record<string, readonly Write[]> = {
    'one lost': [[a, one]],
    'the other lost': [[b, two]],
    'one more': [
      [a, one],
      [b, two],
      ['record.c', one],
    ],
    'an older value': [
      [a, one],
      [b, one],
    ],
    'values exchanged': [
      [a, two],
      [b, one],
    ],
    'under another key': [
      [a, one],
      ['record.c', two],
    ],
  };
  for (const [name, writes] of Object.entries(others)) t.strictNotSame(digestOf(...writes), both, name);
  t.end();
});
