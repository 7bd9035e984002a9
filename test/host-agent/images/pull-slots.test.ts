/** Which pull is next: tables, and properties of every mix of tenants and registries. */
import t from 'tap';
import fc from 'fast-check';
import { nextPull, type PullAsk } from '../../../host-agent/images/pull-slots.ts';
import type { TenantId } from '../../../schemas/ids.ts';

const bounds = { places: 4, perTenant: 2, perRegistry: 3 };
const ask = (name: string, order: number): PullAsk => {
  const [tenant = '', registry = ''] = name.split('@');
  return { tenant: tenant as TenantId, registry, order };
};
const asks = (names: string): PullAsk[] => names.split(' ').filter(Boolean).map(ask);
const nameOf = (each: PullAsk | undefined): string | undefined => each && `${each.tenant}@${each.registry}`;

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
  ];
  for (const [name, waiting, running, expected] of rows) {
    t.equal(nameOf(nextPull(asks(waiting), asks(running), bounds)), expected, name);
  }
  t.end();
});

const names = fc.constantFrom('a@x', 'a@y', 'b@x', 'b@y', 'c@x', 'c@z', 'd@z');

t.test('pulls that never end delay only their own tenant and registry', (t) => {
  fc.assert(
    fc.property(fc.array(names, { maxLength: 30 }), (others) => {
      // Every pull of tenant `slow` hangs; all others end at once.
      const waiting = [...Array<string>(20).fill('slow@slow.example'), ...others].map(ask);
      const hanging: PullAsk[] = [];
      let done = 0;
      for (;;) {
        const next = nextPull(waiting, hanging, bounds);
        if (next === undefined) break;
        waiting.splice(waiting.indexOf(next), 1);
        if (next.tenant === 'slow') hanging.push(next);
        else done += 1;
      }
      return done === others.length && hanging.length === bounds.perTenant;
    }),
  );
  t.end();
});

t.test('no bound is exceeded, and no place stays free without a reason', (t) => {
  fc.assert(
    fc.property(fc.array(names, { maxLength: 40 }), fc.array(fc.nat(), { maxLength: 60 }), (asked, ends) => {
      const waiting = asked.map(ask);
      const running: PullAsk[] = [];
      const count = (check: (each: PullAsk) => boolean) => running.filter(check).length;
      for (const end of ends) {
        for (;;) {
          const next = nextPull(waiting, running, bounds);
          if (next === undefined) break;
          waiting.splice(waiting.indexOf(next), 1);
          running.push(next);
        }
        const fits = waiting.filter(
          (each) =>
            running.length < bounds.places &&
            count(({ tenant }) => tenant === each.tenant) < bounds.perTenant &&
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
