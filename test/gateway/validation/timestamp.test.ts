import fc from 'fast-check';
import t from 'tap';
import { parseExpiry, parseTimestamp } from '../../../gateway/validation/timestamp.ts';
import { label } from '../vpn/support.ts';

t.test('a timestamp is read as it was written', (t) => {
  fc.assert(
    fc.property(fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true }), (date) => {
      return parseTimestamp(date.toISOString()) === date.getTime();
    }),
  );
  const table: readonly (readonly [text: string, ms: number | undefined])[] = [
    ['2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29)],
    ['2023-02-29T00:00:00Z', undefined],
    ['2024-01-01t00:00:00z', Date.UTC(2024, 0, 1)],
    ['2024-01-01T00:00:00+14:00', Date.UTC(2023, 11, 31, 10)],
    ['2024-01-01T00:00:00+24:00', undefined],
    ['2024-01-01T24:00:00Z', undefined],
    ['2024-01-01T00:60:00Z', undefined],
    ['2024-12-31T23:59:60Z', undefined],
    ['2024-13-01T00:00:00Z', undefined],
    ['2024-00-01T00:00:00Z', undefined],
    ['2024-01-00T00:00:00Z', undefined],
    ['0000-01-01T00:00:00Z', undefined],
    ['9999-12-31T23:59:59.999Z', Date.UTC(9999, 11, 31, 23, 59, 59, 999)],
    ['9999-12-31T23:59:59-00:01', undefined],
    ['2024-01-01T00:00:00', undefined],
    ['2024-01-01 00:00:00Z', undefined],
    ['2024-01-01T00:00:00.Z', undefined],
    ['2024-01-01T00:00:00Z\n', undefined],
    ['+002024-01-01T00:00:00Z', undefined],
  ];
  for (const [text, ms] of table) t.equal(parseTimestamp(text), ms, label(text));
  t.end();
});

t.test('an expiry is a time in the future', (t) => {
  const nowMs = Date.UTC(2026, 0, 1);
  t.same(parseExpiry('2026-01-01T00:00:00.001Z', nowMs), { ok: true, ms: nowMs + 1 });
  t.same(parseExpiry('2026-01-01T00:00:00Z', nowMs), { ok: false, fault: 'must be in the future' });
  t.match(parseExpiry('tomorrow', nowMs), { ok: false, fault: /RFC 3339/ });
  t.end();
});
