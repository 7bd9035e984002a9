import t from 'tap';
import { integer, optionalInteger, readSettings, renamed, type Settings } from '../../lib/config.ts';

const faultsOf = (settings: Settings, env: Record<string, string>): unknown => {
  try {
    return readSettings(settings, env);
  } catch (error) {
    return (error as { faults: unknown }).faults;
  }
};

t.test('a setting that had another name refuses it, and says the new one', (t) => {
  const settings = { COPIES: renamed(integer('.', { min: 1, max: 5, fallback: 1 }), 'REPLICAS', '_COUNT') };
  t.same(readSettings(settings, { COPIES: '3', REPLICAS: '' }), { COPIES: 3 });
  t.same(faultsOf(settings, { REPLICAS: '3' }), ['REPLICAS is now COPIES: integer 1–5']);
  t.same(
    faultsOf(settings, { COPIES: '3', COPIES_COUNT: '3', REPLICAS: '3' }),
    ['REPLICAS is now COPIES: integer 1–5', 'COPIES_COUNT is now COPIES: integer 1–5'],
    'beside the new one, too',
  );
  t.end();
});

t.test('`off` is a value only where a setting has one, and absent is automatic', (t) => {
  const settings = {
    RATE: integer('.', { min: 1, max: 9, fallback: 5, off: 0 }),
    PERCENT: integer('.', { min: 0, max: 99, fallback: 90, off: Infinity }),
    CAPACITY: optionalInteger('.', { min: 1, max: 9 }),
  };
  t.same(readSettings(settings, {}), { RATE: 5, PERCENT: 90, CAPACITY: undefined });
  t.same(readSettings(settings, { RATE: 'off', PERCENT: 'off', CAPACITY: '7' }), {
    RATE: 0,
    PERCENT: Infinity,
    CAPACITY: 7,
  });
  t.same(faultsOf(settings, { RATE: '0', PERCENT: '100', CAPACITY: '0' }), [
    'RATE must be off, or integer 1–9',
    'PERCENT must be off, or integer 0–99',
    'CAPACITY must be integer 1–9, or absent',
  ]);
  t.same(faultsOf(settings, { CAPACITY: 'off' }), ['CAPACITY must be integer 1–9, or absent']);
  t.end();
});
