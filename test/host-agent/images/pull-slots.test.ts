/** The choice of the next pull: tables, and properties of every mix of tenants and registries. */
import t from 'tap';
import fc from 'fast-check';
import { hasRoomAside, nextPull, type PullAsk, type RunningPull } from '../../../host-agent/images/pull-slots.ts';
import type { TenantId } from '../../../schemas/ids.ts';

const bounds = { places: 4, placesAside: 2, perTenant: 2, perRegistry: 3 };
/** `a+b@x`: tenants a and b wait for an image of the registry x. */
const ask = (name: string, order: number): PullAsk => {
  const [tenants = '', registry = ''] = name.split('@');
  return { tenants: tenants.split('+') as TenantId[], registry, order };
};
/** `a@x`: in a place; `a@x!`: aside. */
const run = (name: string): RunningPull => {
  const [tenant = '', registry = ''] = name.replace('!', '').split('@');
  return { tenant: tenant as TenantId, registry, isAside: name.endsWith('!') };
};
const names = (text: string): string[] => text.split(' ').filter(Boolean);
const next = (waiting: string, running: string): string | undefined => {
  const found = nextPull(names(waiting).map(ask), names(running).map(run), bounds);
  return found && `${found.tenant}@${found.ask.registry}`;
};

t.test('the next pull', (t) => {
  const rows: [string, string, string, string | undefined][] = [
    ['nothing waits', '', 'a@x', undefined],
    ['nothing runs: the first to ask', 'b@x a@x', '', 'b@x'],
    ['all places are taken', 'c@z', 'a@x a@x b@y b@y', undefined],
    ['a tenant at its bound waits for others', 'a@x a@x b@x', 'a@x a@x', 'b@x'],
    ['a tenant at its bound gets no more, even alone', 'a@x', 'a@x a@x', undefined],
    ['a registry at its bound lets others go first', 'd@x d@y', 'a@x b@x c@x', 'd@y'],
    ['a registry at its bound gets no more, even alone', 'd@x', 'a@x b@x c@x', undefined],
    ['the tenant with fewest', 'a@y b@y', 'a@x', 'b@y'],
    ['of tenants with as many, the registry with fewest', 'b@x c@y', 'a@x', 'c@y'],
    ['pulls aside take no place', 'c@z', 'a@x! a@x b@y! b@y', 'c@z'],
    ['and none of their registry', 'd@x', 'a@x! b@x c@x', 'd@x'],
    ['but count for their tenant', 'a@y', 'a@x! a@x', undefined],
    ['an image that two tenants wait for counts for the one with fewest', 'a+b@y', 'a@x a@x', 'b@y'],
    ['and waits while both are at their bounds', 'a+b@y', 'a@x a@x! b@x b@x!', undefined],
  ];
  for (const [name, waiting, running, expected] of rows) t.equal(next(waiting, running), expected, name);
  t.end();
});

t.test('a pull moves aside while there is room', (t) => {
  const isThere = (running: string) => hasRoomAside(names(running).map(run), bounds);
  t.equal(isThere('a@x b@x c@x d@x'), true);
  t.equal(isThere('a@x! b@x'), true);
  t.equal(isThere('a@x! b@x!'), false);
  t.end();
});

const pairs = fc.constantFrom('a@x', 'a@y', 'b@x', 'b@y', 'c@x', 'c@z', 'd@z');

t.test('pulls that never end delay only their own tenant and registry', (t) => {
  fc.assert(
    fc.property(fc.array(pairs, { maxLength: 30 }), (others) => {
      // Every pull of tenant `slow` hangs; all others end at once.
      const waiting = [...Array<string>(20).fill('slow@slow.example'), ...others].map(ask);
      const hanging: RunningPull[] = [];
      let done = 0;
      for (;;) {
        const found = nextPull(waiting, hanging, bounds);
        if (found === undefined) break;
        waiting.splice(waiting.indexOf(found.ask), 1);
        if (found.tenant === 'slow') hanging.push({ ...found, registry: found.ask.registry, isAside: false });
        else done += 1;
      }
      return done === others.length && hanging.length === bounds.perTenant;
    }),
  );
  t.end();
});

t.test('no bound is exceeded, and no place stays free without a reason', (t) => {
  fc.assert(
    fc.property(fc.array(pairs, { maxLength: 40 }), fc.array(fc.nat(), { maxLength: 60 }), (asked, ends) => {
      const waiting = asked.map(ask);
      const running: RunningPull[] = [];
      const count = (check: (each: RunningPull) => boolean) => running.filter(check).length;
      for (const end of ends) {
        for (;;) {
          const found = nextPull(waiting, running, bounds);
          if (found === undefined) break;
          waiting.splice(waiting.indexOf(found.ask), 1);
          running.push({ tenant: found.tenant, registry: found.ask.registry, isAside: false });
        }
        const fits = waiting.filter(
          (each) =>
            running.length < bounds.places &&
            count(({ tenant }) => [...each.tenants].includes(tenant)) < bounds.perTenant &&
            count(({ registry }) => registry === each.registry) < bounds.perRegistry,
        );
        if (fits.length > 0 || running.length > bounds.places) return false;
        for (const each of running) {
          if (count(({ tenant }) => tenant === each.tenant) > bounds.perTenant) return false;
          if (count(({ registry }) => registry === each.registry) > bounds.perRegistry) return false;
        }
        if (running.length > 0) running.splice(end % running.length, 1);
      }
      return true;
    }),
  );
  t.end();
});
