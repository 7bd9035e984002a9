/** Cursors of four kinds of list, in the form of the last release and in that of this one. */
import t from 'tap';
import * as cursors from '../../../schemas/api/cursor.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';

const base64url = (text: string): string => Buffer.from(text).toString('base64url');
const now = (...key: readonly unknown[]): string => base64url(JSON.stringify({ v: 1, key }));

const id = '0190c9b0-0000-7000-8000-000000000000' as ContainerId;
const tenant = 'a-B_9'.padEnd(64, 'x') as TenantId;
const isKey = (key: string): boolean => /^[a-z0-9.-]+$/.test(key);
const decodeKey = (text: string): string | undefined => cursors.decodeKeyCursor(text, isKey);

/** Each as the last release wrote it. */
const rows = [
  ['1700000000000.' + id, now('1700000000000', id), { insertedAtMs: 1_700_000_000_000, id }, cursors.decodeCursor],
  ['eu-1.example.net', now('eu-1.example.net'), 'eu-1.example.net', decodeKey],
  ['a', now('a'), 'a', decodeKey],
  ['00', now('0'), { partition: 0, from: null }, cursors.decodePlaceCursor],
  [
    `3.${tenant}.5.${id}`,
    now('3', tenant, '5', id),
    { partition: 3, from: { tenant, insertedAtMs: 5, id } },
    cursors.decodePlaceCursor,
  ],
  [
    '3.acme.0.',
    now('3', 'acme', '0', ''),
    { partition: 3, from: { tenant: 'acme', insertedAtMs: 0, id: '' } },
    cursors.decodePlaceCursor,
  ],
  ['.', now('', ''), { at: undefined, id: '' }, cursors.decodePastCursor],
  ['7.0-12-3', now('7', '0-12-3'), { at: 7, id: '0-12-3' }, cursors.decodePastCursor],
] as const;

t.test('cursors of the last release and of this one are read', (t) => {
  for (const [before, after, cursor, decode] of rows) {
    t.same(decode(base64url(before)), cursor, before);
    t.same(decode(after), cursor, `${before} as {v, key}`);
  }
  t.end();
});

t.test('they are written with a version, which the last release reads', (t) => {
  t.equal(cursors.encodeCursor({ insertedAtMs: 5, id }), now('5', id));
  t.equal(cursors.encodeKeyCursor('eu-1.net'), now('eu-1.net'));
  t.equal(cursors.encodePlaceCursor({ partition: 7, from: null }), now('7'));
  const from = { tenant, insertedAtMs: 5, id: '' } as const;
  t.equal(cursors.encodePlaceCursor({ partition: 7, from }), now('7', tenant, '5', ''));
  t.equal(cursors.encodePastCursor({ at: undefined, id: '0-1-2' }), now('', '0-1-2'));
  t.end();
});

t.test('everything else is no cursor', (t) => {
  const texts = ['', 'A', 'AAAAA', '!!!!', base64url('{'), base64url('{}'), base64url('[1]'), base64url('"a"')];
  const later = base64url(JSON.stringify({ v: 2, key: ['a'] }));
  const malformed = [now(1), now(null), now('a.b', 'x'), base64url('{"v":1}'), base64url('{"v":1,"key":"a"}')];
  for (const text of [...texts, later, ...malformed, 'x'.repeat(403)])
    for (const decode of [
      cursors.decodeCursor,
      cursors.decodePlaceCursor,
      cursors.decodePastCursor,
      cursors.decodeLogCursor,
    ])
      t.equal(decode(text), undefined, text);
  for (const text of [...texts, later, base64url('{"v":1}'), now(1)]) t.equal(decodeKey(text), undefined, text);
  t.end();
});
