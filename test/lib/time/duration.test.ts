import t from 'tap';
import { duration, readSettings } from '../../../lib/config.ts';
import { durationText, parseDuration } from '../../../lib/time/duration.ts';

t.test('a duration is a number and a unit, or several of them', (t) => {
  const read: Record<string, number> = {
    '250ms': 250,
    '30s': 30_000,
    '1.5s': 1500,
    '5m': 300_000,
    '12h': 43_200_000,
    '30d': 2_592_000_000,
    '1h30m': 5_400_000,
    '.5s': 500,
    '2w': 1_209_600_000,
    '100us': 0.1,
    '100µs': 0.1,
    '100μs': 0.1,
    '0s': 0,
  };
  for (const [text, ms] of Object.entries(read)) t.equal(parseDuration(text), ms, text);
  for (const text of ['', '5', '5000', '-5s', '5 s', '5S', 's', '1e3s', '5s ', '1h30'])
    t.equal(parseDuration(text), undefined, text);
  t.end();
});

t.test('it is written in the largest unit without a fraction', (t) => {
  const written = {
    0: '0s',
    1: '1ms',
    1500: '1500ms',
    8000: '8s',
    90_000: '90s',
    43_200_000: '12h',
    2_592_000_000: '30d',
  };
  for (const [ms, text] of Object.entries(written)) {
    t.equal(durationText(Number(ms)), text);
    t.equal(parseDuration(text), Number(ms));
  }
  t.end();
});

t.test('a setting of a duration has bounds, may be off, and names itself where the old name is given', (t) => {
  const settings = {
    BEAT: duration('.', { min: 100, max: 60_000, fallback: 2000 }),
    SCRUB: duration('.', { min: 1000, max: 86_400_000, fallback: 600_000, orOff: true }),
    UNUSED: duration('.', { min: 0, max: 86_400_000, fallback: 1000, replaces: '_HOURS' }),
  };
  t.same(readSettings(settings, {}), { BEAT: 2000, SCRUB: 600_000, UNUSED: 1000 });
  t.same(readSettings(settings, { BEAT: '1m', SCRUB: 'off', UNUSED: '3h' }), {
    BEAT: 60_000,
    SCRUB: 0,
    UNUSED: 10_800_000,
  });
  const faultsOf = (env: Record<string, string>): unknown => {
    try {
      return readSettings(settings, env);
    } catch (error) {
      return (error as { faults: unknown }).faults;
    }
  };
  t.same(faultsOf({ BEAT: '500.1ms' }), ['BEAT must be a duration of 100ms to 1m, such as 2s'], 'whole milliseconds');
  t.same(faultsOf({ BEAT: '2000' }), ['BEAT must be a duration of 100ms to 1m, such as 2s']);
  t.same(faultsOf({ BEAT: '2m', SCRUB: '0s' }), [
    'BEAT must be a duration of 100ms to 1m, such as 2s',
    'SCRUB must be off, or a duration of 1s to 1d, such as 10m',
  ]);
  t.same(faultsOf({ BEAT_MS: '2000', UNUSED_HOURS: '' }), [
    'BEAT_MS is now BEAT: a duration of 100ms to 1m, such as 2s',
  ]);
  t.same(faultsOf({ UNUSED_HOURS: '3' }), ['UNUSED_HOURS is now UNUSED: a duration of 0s to 1d, such as 1s']);
  t.end();
});
