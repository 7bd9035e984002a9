/** How many requests are answered at a time: in all, of a client, of a tenant. */
import fc from 'fast-check';
import t from 'tap';
import { Seats, type Seat } from '../../gateway/seats.ts';

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

t.test('after whatever was taken and left, nothing is counted that is not taken', (t) => {
  const step = fc.record({
    client: fc.constantFrom('a', 'b', 'c'),
    tenant: fc.option(fc.constantFrom('x', 'y')),
    leaves: fc.nat({ max: 6 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const seats = new Seats(bounds);
      let open: { seat: Seat; client: string; tenant: string | null }[] = [];
      for (const { client, tenant, leaves } of steps) {
        const taken = seats.take(client);
        const ofClient = open.filter((one) => one.client === client).length;
        const expected = open.length >= bounds.inAll ? 'full' : ofClient >= bounds.perClient ? 'client' : undefined;
        if (typeof taken === 'string' || expected !== undefined) {
          if (taken !== expected) return false;
        } else {
          const room = open.filter((one) => one.tenant === tenant).length < bounds.perTenant;
          const claimed = tenant !== null && taken.claim(tenant) === undefined;
          if (tenant !== null && claimed !== room) return false;
          open.push({ seat: taken, client, tenant: claimed ? tenant : null });
        }
        for (const { seat } of open.slice(0, leaves)) seat.leave();
        open = open.slice(leaves);
        if (seats.taken !== open.length) return false;
        if (seats.clients.size > open.length || seats.tenants.size > open.length) return false;
      }
      return true;
    }),
  );
  t.end();
});
