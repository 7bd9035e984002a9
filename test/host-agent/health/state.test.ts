/** A container's health after a row of checks. */
import t from 'tap';
import { afterCheck, nextCheckMs, unchecked, type HealthState } from '../../../host-agent/health/state.ts';

const check = { interval: 10, retries: 3, start_period: 30 };

const after = (results: readonly (string | undefined)[], upMs = 60_000): HealthState =>
  results.reduce<HealthState>((state, fault) => afterCheck(state, fault, check, upMs), unchecked);

t.test('so many failures in a row make it unhealthy, one success healthy', (t) => {
  t.match(after(['no', 'no']), { health: 'starting', failures: 2, fault: 'no' });
  t.match(after(['no', 'no', 'late']), { health: 'unhealthy', failures: 3, fault: 'late' });
  t.match(after([undefined, 'no', 'no']), { health: 'healthy', failures: 2, fault: 'no' });
  t.match(after([undefined, 'no', 'no', 'no']), { health: 'unhealthy' });
  t.same(after(['no', 'no', 'no', undefined]), { health: 'healthy', failures: 0, fault: undefined });
  t.end();
});

t.test('failures in the start period do not count, unless it was healthy before', (t) => {
  t.same(after(['no', 'no', 'no', 'no'], 29_999), { health: 'starting', failures: 0, fault: 'no' });
  t.match(after([undefined, 'no', 'no', 'no'], 29_999), { health: 'unhealthy' });
  t.end();
});

t.test('checks follow each other soon while it starts', (t) => {
  t.equal(nextCheckMs(unchecked, check, 0), 1_000);
  t.equal(nextCheckMs(unchecked, check, 30_000), 10_000);
  t.equal(nextCheckMs({ ...unchecked, health: 'healthy' }, check, 0), 10_000);
  t.end();
});
