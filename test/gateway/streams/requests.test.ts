import t from 'tap';
import { failure } from '../../../gateway/http/respond.ts';
import type { Guest } from '../../../gateway/streams/host.ts';
import { follow } from '../../../gateway/streams/requests.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { anyCall, servicesWith } from '../calls.ts';
import { streamsByHand } from './looks.ts';

const never = (): Promise<never> => Promise.reject(new Error('nothing is shown without a place'));

t.test('a stream takes one of the tenant’s places, and is refused where there is none', async (t) => {
  const { streams, followed } = streamsByHand();
  const services = servicesWith(undefined, { streams });
  t.equal(await follow(services, anyCall, 'bell', never), 'streamed');
  t.match(followed, [{ requestId: 'r', identity: { tenant: 'acme' }, doorbell: 'bell' }]);
  const guests: Guest[] = [];
  const withPermit = (guest: Guest) => (guests.push(guest), Promise.resolve(failure('unavailable')));
  const full = servicesWith(undefined, { streams: { ...streams, withPermit } });
  t.match(await follow(full, anyCall, 'bell', never), { code: 'unavailable' });
  t.match(guests, [{ tenant: 'acme', client: '192.0.2.1', route: 'container.get' }]);
  t.equal(followed.length, 1);
});

t.test('a token in a URL follows nothing', async (t) => {
  const { streams, followed } = streamsByHand();
  const grant = { tenant: 'acme' as TenantId, peer: 'p' as never, scope: 'download', tokenHash: 'h' } as const;
  const call = { ...anyCall, identity: undefined, grant };
  t.match(await follow(servicesWith(undefined, { streams }), call, 'bell', never), { code: 'unauthenticated' });
  t.same(followed, []);
});
