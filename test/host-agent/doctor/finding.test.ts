import t from 'tap';
import { examine, fail, isWell, lines, ok, warn } from '../../../host-agent/doctor/finding.ts';

t.test('a check that does not end, or throws, is a failure of its own', async (t) => {
  t.match(await examine('engine', () => new Promise(() => undefined), 1), [{ check: 'engine', verdict: 'fail' }]);
  const thrown = await examine('disk', () => Promise.reject(new Error('fetch failed', { cause: new Error('ENOENT') })));
  t.match(thrown, [{ check: 'disk', verdict: 'fail', says: /ENOENT/ }]);
  t.same(await examine('disk', () => Promise.resolve([ok('disk', 'x')])), [ok('disk', 'x')]);
});

t.test('findings as text for people', (t) => {
  const findings = [ok('a', 'fine'), warn('longer', 'odd', 'look'), fail('b', 'bad', 'repair')];
  t.same(lines(findings), [
    'ok    a       fine',
    'warn  longer  odd',
    '              → look',
    'fail  b       bad',
    '              → repair',
    '1 ok, 1 to look at, 1 failed',
  ]);
  t.equal(isWell(findings), false);
  t.equal(isWell(findings.slice(0, 2)), true, 'warnings do not fail');
  t.end();
});
