/** Bounds on requests, and on memory for bodies: of all, of a client, and of a tenant. */
import fc from 'fast-check';
import t from 'tap';
import { Permits, type Permit } from '../../lib/permits.ts';

const bounds = { inAll: 5, perClient: 3, perTenant: 2 };

const permitOf = (taken: Permit | string): Permit => {
  if (typeof taken === 'string') throw new Error(taken);
  return taken;
};

t.test('a client has its share, a tenant its own, and the house its bound', (t) => {
  const permits = new Permits(bounds);
  const of = (client: string): Permit => permitOf(permits.take(client));
  const first = of('a');
  const second = of('a');
  const third = of('a');
  t.equal(permits.take('a'), 'client');
  t.equal(first.claim('acme'), undefined);
  t.equal(second.claim('acme'), undefined);
  t.equal(third.claim('acme'), 'tenant');
  t.equal(third.claim('rival'), undefined, 'it can be claimed for another');
  of('b');
  of('c');
  t.equal(permits.take('d'), 'full');
  t.equal(permits.taken, 5);
  first.release();
  first.release();
  t.equal(permits.taken, 4, 'released once');
  t.equal(of('d').claim('acme'), undefined, 'the permit of the tenant is free too');
  t.end();
});

t.test('permits have sizes and grow, within the same bounds', (t) => {
  const permits = new Permits({ inAll: 10, perClient: 6, perTenant: 5 });
  t.equal(permits.take('a', 7), 'client');
  t.equal(permits.clients.size, 0, 'a refusal leaves no trace');
  const permit = permitOf(permits.take('a', 2));
  t.equal(permit.grow(5), 'client');
  t.equal(permit.claim('acme'), undefined);
  t.equal(permit.grow(4), 'tenant');
  t.equal(permit.grow(3), undefined);
  t.equal(permitOf(permits.take('b', 1)).claim('acme'), 'tenant');
  const other = permitOf(permits.take('c', 3));
  t.equal(other.grow(2), 'full');
  t.equal(permits.taken, 9);
  permit.release();
  t.equal(other.grow(2), undefined);
  t.equal(permits.taken, 6);
  t.same([...permits.tenants], []);
  t.end();
});

t.test('after whatever was taken, grew and left, nothing is counted that is not taken', (t) => {
  const step = fc.record({
    client: fc.constantFrom('a', 'b', 'c'),
    tenant: fc.option(fc.constantFrom('x', 'y')),
    size: fc.integer({ min: 1, max: 2 }),
    more: fc.integer({ min: 1, max: 2 }),
    leaves: fc.nat({ max: 6 }),
  });
  interface Open {
    readonly permit: Permit;
    readonly client: string;
    tenant: string | null;
    size: number;
  }
  const sum = (of: readonly Open[]): number => of.reduce((total, { size }) => total + size, 0);
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const permits = new Permits(bounds);
      let open: Open[] = [];
      const refusalOf = (client: string, tenant: string | null, size: number): string | undefined => {
        if (sum(open) + size > bounds.inAll) return 'full';
        if (sum(open.filter((one) => one.client === client)) + size > bounds.perClient) return 'client';
        const ofTenant = tenant === null ? [] : open.filter((one) => one.tenant === tenant);
        return tenant !== null && sum(ofTenant) + size > bounds.perTenant ? 'tenant' : undefined;
      };
      for (const { client, tenant, size, more, leaves } of steps) {
        const expected = refusalOf(client, null, size);
        const taken = permits.take(client, size);
        if (typeof taken === 'string' || expected !== undefined) {
          if (taken !== expected) return false;
        } else {
          const one: Open = { permit: taken, client, tenant: null, size };
          const room =
            tenant !== null && sum(open.filter((other) => other.tenant === tenant)) + size <= bounds.perTenant;
          if (tenant !== null && (taken.claim(tenant) === undefined) !== room) return false;
          if (room) one.tenant = tenant;
          open.push(one);
          const refused = refusalOf(client, one.tenant, more);
          if (taken.grow(more) !== refused) return false;
          if (refused === undefined) one.size += more;
        }
        for (const { permit } of open.slice(0, leaves)) permit.release();
        open.slice(0, leaves)[0]?.permit.release();
        open = open.slice(leaves);
        if (permits.taken !== sum(open)) return false;
        if (permits.clients.size > open.length || permits.tenants.size > open.length) return false;
      }
      return true;
    }),
  );
  t.end();
});
