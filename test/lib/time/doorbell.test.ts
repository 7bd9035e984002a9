import t from 'tap';
import { Doorbell } from '../../../lib/time/doorbell.ts';

t.test('a ring without a waiter is kept for the next wait; a hush forgets it', async (t) => {
  const doorbell = new Doorbell();
  doorbell.ring();
  t.equal(await doorbell.wait(0), true);
  t.equal(await doorbell.wait(0), false);
  doorbell.ring();
  doorbell.hush();
  t.equal(await doorbell.wait(0), false);
  const waiting = doorbell.wait(60_000);
  doorbell.ring();
  t.equal(await waiting, true);
});
