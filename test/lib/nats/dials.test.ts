/** Pauses before a program dials a NATS server again. */
import t from 'tap';
import { Dials, natsSettledMs, type DialsOptions } from '../../../lib/nats/dials.ts';
import { limits } from '../../../schemas/limits.ts';

const server = (listen: string) => ({ listen }) as never;

function dialling(options: Partial<DialsOptions> = {}) {
  let ms = 0;
  const dials = new Dials({ isUrgent: false, nowMs: () => ms, random: () => 1, ...options });
  const dial = (count = 1): number[] =>
    Array.from({ length: count }, () => {
      void dials.next([server('a')], null);
      return dials.waitMs();
    });
  return { dials, dial, pass: (byMs: number) => (ms += byMs) };
}

const refusedTimes = ({ dials, dial }: ReturnType<typeof dialling>, count: number): number[] =>
  Array.from({ length: count }, () => {
    dials.refused();
    return dial()[0]!;
  });

t.test('a server that is away is dialled ever later, up to a bound', (t) => {
  t.same(dialling().dial(7), [250, 500, 1000, 2000, 4000, 5000, 5000]);
  t.same(dialling({ isUrgent: true }).dial(4), [250, 500, 500, 500], 'callers wait for gateways and actors');
  t.end();
});

t.test('refused credentials are offered ever later', (t) => {
  const one = dialling();
  one.dials.connected();
  t.same(refusedTimes(one, 9), [250, 500, 1000, 2000, 4000, 8000, 16_000, limits.natsRefusedMaxMs, 30_000]);
  const urgent = dialling({ isUrgent: true });
  urgent.dials.connected();
  t.equal(refusedTimes(urgent, 12).at(-1), 30_000);
  t.end();
});

t.test('a server that is away after a refusal is dialled as one that is away', (t) => {
  const one = dialling();
  one.dials.connected();
  refusedTimes(one, 9);
  t.same(one.dial()[0], 5000);
  t.end();
});

t.test('after a connection that lasted the first dials are quick again', (t) => {
  const one = dialling();
  one.dial(9);
  one.dials.connected();
  t.equal(one.dials.waitMs(), 5000, 'a server may end it at once');
  one.pass(natsSettledMs);
  t.equal(one.dials.waitMs(), 250);
  t.same(one.dial(2), [250, 500]);
  t.end();
});

t.test('a connection that the server ends at once counts as a dial in vain', (t) => {
  const one = dialling();
  one.dial(9);
  one.dials.connected();
  one.pass(100);
  t.same(one.dial(), [5000]);
  t.end();
});

t.test('before the first connection, a server that asked for credentials has refused them', (t) => {
  let refusals = 0;
  const one = dialling({ onRefused: () => refusals++ });
  one.dial();
  one.dials.asked();
  one.dial();
  t.equal(refusals, 1);
  one.dials.connected();
  one.dials.asked();
  one.dial();
  t.equal(refusals, 1, 'later the server says it');
  t.end();
});

t.test('the wait of one round of servers is the same, and random', (t) => {
  const dials = new Dials({ isUrgent: false, nowMs: () => 0, random: () => 0 });
  const waits = Array.from({ length: 6 }, () => {
    void dials.next([server('a'), server('b'), server('c')], null);
    return dials.waitMs();
  });
  t.same(waits, [125, 125, 125, 250, 250, 250]);
  t.end();
});

t.test('a server that was left is dialled last', (t) => {
  const { dials } = dialling();
  const servers = [server('a'), server('b')];
  dials.avoid('a');
  t.same(dials.next(servers, null), server('b'));
  t.same(dials.next(servers, null), server('b'));
  t.equal(dials.next(servers, null), null, 'any is better than none');
  dials.avoid('a');
  dials.connected();
  t.equal(dials.next(servers, null), null);
  t.end();
});
