/** Bounds on requests, and on memory for bodies: of all, of a client, and of a tenant. */
import fc from 'fast-check';
import t from 'tap';
import { Seats, type Seat } from '../../lib/seats.ts';

const bounds = { inAll: 5, perClient: 3, perTenant: 2 };

const seatOf = (taken: Seat | string): Seat => {
  if (typeof taken === 'string') throw new Error(taken);
  return taken;
};

t.test('a client has its share, a tenant its own, and the house its bound', (t) => {
  const seats = new Seats(bounds);
  const of = (client: string): Seat => seatOf(seats.take(client));
  const first = of('a');
  const second = of('a');
  const third = of('a');
  t.equal(seats.take('a'), 'client');
  t.equal(first.claim('acme'), undefined);
  t.equal(second.claim('acme'), undefined);
  t.equal(third.claim('acme'), 'tenant');
  t.equal(third.claim('rival'), undefined, 'it can be claimed for another');
  of('b');
  of('c');
  t.equal(seats.take('d'), 'full');
  t.equal(seats.taken, 5);
  first.leave();
  first.leave();
  t.equal(seats.taken, 4, 'left once');
  t.equal(of('d').claim('acme'), undefined, 'the place of the tenant is free too');
  t.end();
});

t.test('seats have sizes and grow, within the same bounds', (t) => {
  const seats = new Seats({ inAll: 10, perClient: 6, perTenant: 5 });
  t.equal(seats.take('a', 7), 'client');
  t.equal(seats.clients.size, 0, 'a refusal leaves no trace');
  const seat = seatOf(seats.take('a', 2));
  t.equal(seat.grow(5), 'client');
  t.equal(seat.claim('acme'), undefined);
  t.equal(seat.grow(4), 'tenant');
  t.equal(seat.grow(3), undefined);
  t.equal(seatOf(seats.take('b', 1)).claim('acme'), 'tenant');
  const other = seatOf(seats.take('c', 3));
  t.equal(other.grow(2), 'full');
  t.equal(seats.taken, 9);
  seat.leave();
  t.equal(other.grow(2), undefined);
  t.equal(seats.taken, 6);
  t.same([...seats.tenants], []);
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
    readonly seat: Seat;
    readonly client: string;
    tenant: string | null;
    size: number;
  }
  const sum = (of: readonly Open[]): number => of.reduce((total, { size }) => total + size, 0);
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const seats = new Seats(bounds);
      let open: Open[] = [];
      const refusalOf = (client: string, tenant: string | null, size: number): string | undefined => {
        if (sum(open) + size > bounds.inAll) return 'full';
        if (sum(open.filter((one) => one.client === client)) + size > bounds.perClient) return 'client';
        const ofTenant = tenant === null ? [] : open.filter((one) => one.tenant === tenant);
        return tenant !== null && sum(ofTenant) + size > bounds.perTenant ? 'tenant' : undefined;
      };
      for (const { client, tenant, size, more, leaves } of steps) {
        const expected = refusalOf(client, null, size);
        const taken = seats.take(client, size);
        if (typeof taken === 'string' || expected !== undefined) {
          if (taken !== expected) return false;
        } else {
          const one: Open = { seat: taken, client, tenant: null, size };
          const room =
            tenant !== null && sum(open.filter((other) => other.tenant === tenant)) + size <= bounds.perTenant;
          if (tenant !== null && (taken.claim(tenant) === undefined) !== room) return false;
          if (room) one.tenant = tenant;
          open.push(one);
          const refused = refusalOf(client, one.tenant, more);
          if (taken.grow(more) !== refused) return false;
          if (refused === undefined) one.size += more;
        }
        for (const { seat } of open.slice(0, leaves)) seat.leave();
        open.slice(0, leaves)[0]?.seat.leave();
        open = open.slice(leaves);
        if (seats.taken !== sum(open)) return false;
        if (seats.clients.size > open.length || seats.tenants.size > open.length) return false;
      }
      return true;
    }),
  );
  t.end();
});
