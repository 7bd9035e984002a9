import { Registry } from 'prom-client';
import t from 'tap';
import { Permits } from '../../../lib/permits.ts';
import { createMeters } from '../../../gateway/metrics.ts';
import { StreamHost } from '../../../gateway/streams/host.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { quietLog } from '../support.ts';

const acme = 'acme' as TenantId;
const neverCalled = (): Promise<never> => Promise.reject(new Error('there was no permit'));

t.test('without a free permit the gateway is unavailable, and counts against no tenant or address', async (t) => {
  let rateLimited = 0;
  const meters = { ...createMeters(new Registry()), rateLimited: () => void rateLimited++ };
  const host = new StreamHost({
    permits: new Permits({ inAll: 1, perClient: 1, perTenant: 1 }),
    listen: () => () => {},
    clock: systemClock,
    log: quietLog,
    meters,
    stillGood: () => true,
    polls: { streamMs: 1, waitMs: 1 },
  });
  const guest = { tenant: acme, client: '192.0.2.1', route: 'event.list', releasePermit: () => {} };
  const done = await host.withPermit(guest, () => host.withPermit({ ...guest, client: '192.0.2.2' }, neverCalled));
  t.match(done, { code: 'unavailable', retryAfterSeconds: 5 });
  t.equal(rateLimited, 0);
  t.equal(
    await host.withPermit(guest, async () => Promise.resolve('streamed')),
    'streamed',
    'the permit is free again',
  );
});
