import t from 'tap';
import {
  checkDns,
  checkRoutes,
  examine,
  normalAddress,
  normalCidr,
  normalised,
} from '../../../gateway/validation/vpn-lists.ts';

function faultsOf(check: typeof checkRoutes, list: unknown): Record<string, string> {
  const faults: Record<string, string> = {};
  check(list, (field, message) => void (faults[field] ??= message));
  return faults;
}

t.test('each item of a list has a normal form, and no two the same', (t) => {
  t.same(faultsOf(checkRoutes, ['10.0.0.0/8', 'fd00::/8']), {});
  t.match(faultsOf(checkRoutes, ['10.0.0.1/8', 'x']), { 'routes.0': /CIDR form/, 'routes.1': /CIDR form/ });
  t.match(faultsOf(checkRoutes, ['fd00::/8', 'FD00:0::/8']), { routes: 'must be distinct' });
  t.match(faultsOf(checkDns, ['10.0.0.1', 'one.example']), { 'dns.1': /address/ });
  t.same(faultsOf(checkDns, 'x'), {}, 'the schema reports what is no list');
  t.same(normalised(['FD00:0::/8'], normalCidr), ['fd00::/8']);
  t.equal(normalAddress('::FFFF'), '::ffff');
  t.end();
});

t.test('a field that the schema refused keeps that fault', (t) => {
  const valid = { ok: false, faults: { a: ['schema'] } } as const;
  const faults = examine({ ok: false, faults: { ...valid.faults, a: ['schema'] } }, { a: 1 }, (_fields, report) => {
    report('a', 'check');
    report('b', 'check');
  });
  t.same(faults, { a: ['schema'], b: ['check'] });
  t.same(
    examine({ ok: true, value: 1 }, [], () => t.fail('not an object')),
    {},
  );
  t.end();
});
