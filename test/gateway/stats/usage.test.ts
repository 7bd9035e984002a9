/** Hours that a question about usage names, and sums in its answer. */
import t from 'tap';
import { hoursOf, viewOf } from '../../../gateway/stats/usage.ts';
import { hourMs, type Sum } from '../../../schemas/records/usage.ts';

const nowMs = Date.parse('2026-11-24T12:34:56Z');
const shown = (query: { from?: string; to?: string }) => {
  const hours = hoursOf(query, nowMs);
  if (!hours.ok) return hours.faults;
  return [hours.value.from, hours.value.to].map((hour) => new Date(hour * hourMs).toISOString().slice(0, 13));
};

t.test('the hours of a question', (t) => {
  t.same(shown({}), ['2026-11-01T00', '2026-11-24T13'], 'the current month');
  t.same(shown({ to: '2026-11-01T00:00:00Z' }), ['2026-10-01T00', '2026-11-01T00'], 'the month that ends then');
  t.same(shown({ from: '2026-11-03T10:59:59.9Z', to: '2026-11-03T11:00:01Z' }), ['2026-11-03T10', '2026-11-03T12']);
  t.same(shown({ from: '2026-11-03T10:00:00+02:00', to: '2026-11-03T11:00:00+02:00' }), [
    '2026-11-03T08',
    '2026-11-03T09',
  ]);
  t.same(shown({ from: '2026-10-01T00:00:00Z', to: '2026-11-01T00:00:00Z' }), ['2026-10-01T00', '2026-11-01T00']);
  t.end();
});

t.test('faults of a question', (t) => {
  t.match(shown({ from: 'monday', to: '2026-02-30T00:00:00Z' }), { from: [/RFC 3339/], to: [/RFC 3339/] });
  t.match(shown({ from: '2026-11-03T00:00:00Z', to: '2026-11-03T00:00:00Z' }), { from: [/before `to`/] });
  t.match(shown({ from: '2026-12-01T00:00:00Z' }), { from: [/before now/] });
  t.match(shown({ from: '2026-10-01T00:00:00Z', to: '2026-11-01T00:00:00.001Z' }), { from: [/31 days/] });
  t.end();
});

t.test('sums are exact, and the total is that of all pages', (t) => {
  const sum = (runMs: number, memByteMs: bigint): Sum => ({ runMs, cpuMs: 1, memByteMs, name: 'web' });
  const sums = new Map([
    ['b', sum(3_600_001, 2n ** 70n * 1000n)],
    ['a', { ...sum(2, 1999n), name: undefined }],
    ['c', sum(1, 0n)],
  ]);
  const hours = { from: 0, to: 1 };
  const first = viewOf(sums, hours, { after: '', limit: 2 });
  t.same(first.view, {
    from: '1970-01-01T00:00:00.000Z',
    to: '1970-01-01T01:00:00.000Z',
    total: { container_seconds: 3600.004, cpu_seconds: 0.003, mem_byte_seconds: String(2n ** 70n + 1n) },
    containers: [
      { id: 'a', name: null, container_seconds: 0.002, cpu_seconds: 0.001, mem_byte_seconds: '1' },
      { id: 'b', name: 'web', container_seconds: 3600.001, cpu_seconds: 0.001, mem_byte_seconds: String(2n ** 70n) },
    ],
  });
  t.equal(first.next, 'b');
  const second = viewOf(sums, hours, { after: 'b', limit: 2 });
  t.equal(second.view.containers.length, 1);
  t.equal(second.next, undefined);
  t.end();
});
